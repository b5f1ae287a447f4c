"""Certificates with random faults: each is refused by a `CertificateError`, or what it claims is true all the same."""

import copy
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from tests.helpers import enumerate_map
from tests.models import discrete_model

from certimap import Certificate, CertificateError, Model, cannot_link, verify
from certimap.certificate import CutRecord, LeafRecord, NodeRecord, Tightening
from certimap.solver import solve

FAULTS = 50  # per certificate
OTHER_TYPES = (None, "x", True, 1.5, -3, math.inf, math.nan, (), {}, ["x"], np.zeros(2), "OPTIMAL", "INFEASIBLE")


def places(part, at=()):
    """Every place in nested containers, as a path of keys."""
    children = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in children:
        yield (*at, key)
        yield from places(value, (*at, key))


def unfolded(part):
    """Tuples as lists, so that they can be changed."""
    if isinstance(part, dict):
        return {key: unfolded(value) for key, value in part.items()}
    return [unfolded(value) for value in part] if isinstance(part, list | tuple) else part


def folded(fields):
    """The certificate of changed fields; what no longer has their form stays as it is."""
    out = dict(fields)
    for key, record in (("cuts", CutRecord), ("nodes", NodeRecord), ("leaves", LeafRecord)):
        if isinstance(out[key], list):
            out[key] = tuple(record(**r) if isinstance(r, dict) and r else r for r in out[key])
    for node in out["nodes"] if isinstance(out["nodes"], tuple) else ():
        if isinstance(node, NodeRecord) and isinstance(node.tightenings, list):
            steps = tuple(Tightening(**s) if isinstance(s, dict) and s else s for s in node.tightenings)
            object.__setattr__(node, "tightenings", steps)
    for key in ("blocks", "private"):
        if isinstance(out[key], list):
            out[key] = tuple(tuple(part) if isinstance(part, list) else part for part in out[key])
    if isinstance(out["conflict"], list):
        out["conflict"] = tuple(out["conflict"])
    return Certificate(**out)


def with_fault(rng, fields):
    """One number, list or field changed."""
    known = [path for path in places(fields) if path[0] != "model"]
    sorts = sorted({path[0] for path in known})
    sort = sorts[rng.integers(len(sorts))]
    inside = [path for path in known if path[0] == sort]
    *way, last = inside[rng.integers(len(inside))]
    holder = fields
    for key in way:
        holder = holder[key]
    value = holder[last]
    if isinstance(value, np.ndarray) and value.size and rng.random() < 0.8:
        changed = value.copy()
        i = rng.integers(value.size)
        changed[i] = (
            changed[i] + rng.choice([-1, 1]) if value.dtype.kind == "i" else rng.choice([0, -1, 1.1]) * value[i]
        )
        holder[last] = changed if rng.random() < 0.8 else value[:-1]
    elif isinstance(value, list) and value and rng.random() < 0.8:
        k = rng.integers(len(value))
        holder[last] = value[:k] + value[k + 1 :] if rng.random() < 0.5 else [*value, copy.deepcopy(value[k])]
    elif isinstance(value, int | float) and rng.random() < 0.8:
        holder[last] = type(value)(value + rng.choice([-1, 1, -1e-6, 1e-6])) if math.isfinite(value) else 0.0
    else:
        holder[last] = OTHER_TYPES[rng.integers(len(OTHER_TYPES))]
    return fields


def is_true(claim, model, optimum):
    slack = 2e-9 * max(1.0, abs(claim.upper_bound)) if math.isfinite(claim.upper_bound) else 0.0
    if optimum > claim.upper_bound + slack:
        return False
    if claim.status == "OPTIMAL" and claim.log_map < optimum - claim.tolerance * max(1.0, abs(optimum)) - 1e-8:
        return False
    if claim.assignment is None:
        return claim.log_map == -math.inf
    feasible = not model.violated(claim.assignment)
    return feasible and abs(model.value(claim.assignment) - claim.log_map) <= 2e-9 * max(1.0, abs(claim.log_map))


@pytest.mark.parametrize("algorithm", ["branch-and-cut", "gbd", "elimination"])
@pytest.mark.parametrize("seed", range(5))
def test_no_fault_makes_a_false_claim_pass(seed, algorithm):
    rng = np.random.default_rng(seed)
    model = discrete_model(rng, max_states=200)
    optimum, _ = enumerate_map(model)
    certificate = solve(model, algorithm=algorithm, max_nodes=40).certificate
    assert certificate is not None
    fields = unfolded(asdict(certificate))
    refused = 0
    for _ in range(FAULTS):
        faulty = folded(with_fault(rng, copy.deepcopy(fields)))
        try:
            verify(faulty, model)
        except CertificateError:
            refused += 1
        else:
            assert is_true(faulty, model, optimum)
    assert refused > FAULTS // 4


def test_a_conflict_names_parts_of_an_infeasible_model_only():
    model = Model()
    x = model.binary("x", shape=3)
    model.constrain([cannot_link(x[i], x[j]) for i, j in ((0, 1), (1, 2), (0, 2))])
    certificate = solve(model).certificate
    assert certificate.conflict == tuple(model.constraints)
    with pytest.raises(CertificateError, match="names 'x is odd'"):
        verify(replace(certificate, conflict=("x is odd",)), model)
    feasible = Model()
    feasible.binary("x")
    with pytest.raises(CertificateError, match="a conflict is named"):
        verify(replace(solve(feasible).certificate, conflict=("x",)), feasible)
