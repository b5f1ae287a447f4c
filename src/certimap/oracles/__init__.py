"""Factor families: values, certified conjugates and cuts of each kind of factor.

Importing a family's module registers its oracle; all of them are imported here.
"""

from certimap.oracles import black_box, concave, gated, parity, potts, ridge, spectral, tables

__all__ = ["black_box", "concave", "gated", "parity", "potts", "ridge", "spectral", "tables"]
