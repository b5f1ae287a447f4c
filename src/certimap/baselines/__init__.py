"""What the field uses for the same models, each evaluated on the same objective as certimap's own answer."""

from certimap.baselines.run import MethodRun

__all__ = ["MethodRun"]
