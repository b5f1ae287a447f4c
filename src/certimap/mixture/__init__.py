"""Bayesian Gaussian mixture: cluster blocks in closed form, primal search, certified pricing."""
