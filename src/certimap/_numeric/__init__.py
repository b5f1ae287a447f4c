"""Numerical primitives shared by every layer; imports nothing else from the package."""
