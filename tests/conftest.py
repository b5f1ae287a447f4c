"""Settings shared by all tests."""

from hypothesis import settings

# The same examples on every run and machine; compilation makes the first call too slow for a deadline.
settings.register_profile("certimap", derandomize=True, deadline=None)
settings.load_profile("certimap")
