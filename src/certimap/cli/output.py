"""The console that commands print to."""

from rich.console import Console


def plain_console() -> Console:
    """Prints text as it is: file names and labels are not markup, and lines are not broken in pipes."""
    return Console(markup=False, highlight=False, soft_wrap=True)
