"""Factor families: values, certified conjugates and cuts of each kind of factor."""
