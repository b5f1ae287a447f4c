"""Factor families: values, certified conjugates and cuts of each kind of factor.

Importing a family's module registers its oracle; all of them are imported here.
"""

from certimap.oracles import gated, potts, ridge, tables

__all__ = ["gated", "potts", "ridge", "tables"]
