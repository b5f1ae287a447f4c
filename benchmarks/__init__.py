"""Measurements against peers, each made in the same run: `python -m benchmarks [names]`."""
