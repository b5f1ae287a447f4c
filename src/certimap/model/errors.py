"""The error raised for a wrong model; hard or infeasible models never raise."""


class ModelError(ValueError):
    """The model is wrong: the message names the variable, factor or constraint, what was given and what is allowed."""
