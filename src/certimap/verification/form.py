"""The form of a certificate: every field has the type that the dataclasses state, whatever made the object."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from certimap.certificate import Certificate, CertificateError, CutRecord, LeafRecord, NodeRecord, Tightening

_FIELDS: dict[Any, tuple[tuple[str, Any], ...]] = {
    record: tuple(get_type_hints(record).items())
    for record in (Certificate, CutRecord, NodeRecord, Tightening, LeafRecord)
}


def check_form(certificate: Certificate) -> None:
    """Refuse a certificate with a field of another type; what the values mean is checked elsewhere."""
    for name, hint in _FIELDS[Certificate]:
        if not _fits(getattr(certificate, name), hint):
            raise CertificateError(f"malformed certificate: {name} does not have the form {_shown(hint)}")


def _fits(value: Any, hint: Any) -> bool:
    if hint in _FIELDS:
        return type(value) is hint and all(_fits(getattr(value, name), part) for name, part in _FIELDS[hint])
    origin, parts = get_origin(hint), get_args(hint)
    if origin is tuple:  # of any length
        return isinstance(value, tuple) and all(_fits(v, parts[0]) for v in value)
    if origin is np.ndarray:
        kinds = "iu" if parts[1] == np.dtype[np.int64] else "f"
        return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in kinds
    if origin is types.UnionType:
        return any(_fits(value, part) for part in parts)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if hint is float or hint is int:
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint)) if get_origin(hint) is None else str(hint).replace("certimap.", "")
