"""Certified pricing of Gaussian clusters: C++ sources, their binding, whitening and root boxes."""
