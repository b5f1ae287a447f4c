"""Readers and writers of model files."""

from certimap.io.bif import read_bif
from certimap.io.uai import read_uai, write_uai

__all__ = ["read_bif", "read_uai", "write_uai"]
