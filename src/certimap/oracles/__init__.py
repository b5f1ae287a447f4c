"""Factor families: values, certified conjugates and cuts of each kind of factor, certified pricing of partitions.

Importing a family's module registers its oracle or block; all of them are imported here.
"""

from certimap.oracles import black_box, concave, gated, one_dimensional_clusters, parity, potts, ridge, spectral, tables

__all__ = [
    "black_box",
    "concave",
    "gated",
    "one_dimensional_clusters",
    "parity",
    "potts",
    "ridge",
    "spectral",
    "tables",
]
