"""Certified pricing of full-covariance clusters: C++ sources, their binding, whitening and root boxes."""
