"""Bayesian Gaussian mixture: cluster blocks in closed form, primal search, certified pricing."""

# Registers the block with branch-and-price.
from certimap.mixture.block import GaussianBlock
from certimap.mixture.factor import GaussianClusters, gaussian_clusters, mixture_model

__all__ = ["GaussianBlock", "GaussianClusters", "gaussian_clusters", "mixture_model"]
