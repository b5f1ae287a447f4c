"""Primal search of the mixture: multi-start classification EM, single moves and exchanges under all constraints."""

from certimap.mixture.search.multistart import LocalOptimum, SearchResult, search

__all__ = ["LocalOptimum", "SearchResult", "search"]
