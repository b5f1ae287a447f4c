"""Log tables and reports."""
