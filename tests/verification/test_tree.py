"""Proofs by trees: genuine certificates pass, and no mutation that breaks the proof does."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.verification.by_hand import (
    NO_INTEGERS,
    NO_NUMBERS,
    binary_split,
    certify,
    frustrated_triangle,
)

import certimap as cm
from certimap.certificate import Certificate, CertificateError, LeafRecord, NodeRecord, Tightening
from certimap.graph.compile import compile_model
from certimap.verification.checker import verify

MODEL = frustrated_triangle()
PROOF = certify(MODEL, binary_split(MODEL, "x[0]"))


def changed_cut(certificate: Certificate, k: int, **changes: object) -> Certificate:
    cuts = list(certificate.cuts)
    cuts[k] = replace(cuts[k], **changes)
    return replace(certificate, cuts=tuple(cuts))


def changed_leaf(certificate: Certificate, k: int, **changes: object) -> Certificate:
    leaves = list(certificate.leaves)
    leaves[k] = replace(leaves[k], **changes)
    return replace(certificate, leaves=tuple(leaves))


def changed_node(certificate: Certificate, k: int, **changes: object) -> Certificate:
    nodes = list(certificate.nodes)
    nodes[k] = replace(nodes[k], **changes)
    return replace(certificate, nodes=tuple(nodes))


# ------------------------------------------------------------------------------------------------------ genuine proofs
def test_a_genuine_proof_is_accepted() -> None:
    assert PROOF.status == "OPTIMAL"
    report = verify(PROOF, MODEL)
    assert report.upper_bound == pytest.approx(PROOF.upper_bound, abs=1e-12)
    assert report.lower_bound == pytest.approx(PROOF.log_map, abs=1e-12)
    assert (report.nodes, report.leaves, report.cuts, report.trusted) == (3, 2, 6, ())


@pytest.mark.parametrize("seed", range(5))
def test_the_root_alone_proves_a_weaker_bound(seed: int) -> None:
    model = frustrated_triangle(size=3, seed=seed)
    report = verify(certify(model), model)
    assert report.upper_bound >= report.lower_bound


def test_a_merged_block_proves_more_than_its_parts() -> None:
    apart = certify(MODEL)
    merged = certify(MODEL, blocks=((1, 3, 5),))
    assert apart.status == "BOUNDED"
    assert verify(merged, MODEL).gap < 1e-9 < verify(apart, MODEL).gap


def test_a_weak_cut_is_no_lie_if_the_claim_is_weak_too() -> None:
    weak = replace(changed_cut(PROOF, 0, u=PROOF.cuts[0].u + np.array([0, 0, 5.0, 0])), upper_bound=math.inf)
    report = verify(replace(weak, status="FEASIBLE"), MODEL)
    assert math.isfinite(report.upper_bound)
    assert report.upper_bound > PROOF.upper_bound + 0.1


def test_a_block_without_a_cut_is_bounded_by_a_constant() -> None:
    leaf = PROOF.leaves[0]
    fewer = changed_leaf(PROOF, 0, cuts=leaf.cuts[1:], cut_weights=leaf.cut_weights[1:])
    report = verify(replace(fewer, upper_bound=10.0, status="BOUNDED"), MODEL)
    assert PROOF.upper_bound < report.upper_bound < 10.0


def test_cut_weights_are_rescaled_to_sum_to_one() -> None:
    scaled = changed_leaf(PROOF, 0, cut_weights=PROOF.leaves[0].cut_weights * 0.25)
    assert verify(scaled, MODEL).upper_bound == pytest.approx(PROOF.upper_bound, abs=1e-12)


def test_a_cut_with_its_leafs_box_is_accepted_there() -> None:
    graph = compile_model(MODEL)
    cut = PROOF.cuts[0]  # of the leaf that excludes state 0 of x[0]
    upper = graph.upper[cut.columns].copy()
    upper[np.flatnonzero(cut.columns == PROOF.nodes[1].column)] = 0.0
    verify(changed_cut(PROOF, 0, lower=graph.lower[cut.columns], upper=upper), MODEL)


# ----------------------------------------------------------------------------------------------------------- mutations
def uncovered(c: Certificate) -> Certificate:
    """The child that holds x[0] = 0 is turned into a second copy of the other."""
    return changed_node(c, 2, lower=0.0, upper=0.0)


def narrowed_cut_box(c: Certificate) -> Certificate:
    width = len(c.cuts[0].columns)
    return changed_cut(c, 0, lower=np.zeros(width), upper=np.zeros(width))


def dropped_leaf(c: Certificate) -> Certificate:
    return replace(c, leaves=c.leaves[1:])


def flipped_weights(c: Certificate) -> Certificate:
    return changed_leaf(c, 0, row_weights=-c.leaves[0].row_weights)


MUTATIONS: dict[str, tuple[Callable[[Certificate], Certificate], str]] = {
    "cut slope": (lambda c: changed_cut(c, 0, u=c.cuts[0].u + np.array([0, 0, 0.5, 0])), "multipliers prove"),
    "cut slope not finite": (lambda c: changed_cut(c, 0, u=c.cuts[0].u * np.nan), "finite numbers"),
    "cut columns": (lambda c: changed_cut(c, 0, columns=c.cuts[0].columns[::-1]), "scope"),
    "cut of another block": (lambda c: changed_cut(c, 0, block=1), "scope"),
    "cut of no block": (lambda c: changed_cut(c, 0, block=-1), "no block"),
    "cut used outside its box": (narrowed_cut_box, "outside the box"),
    "cut box with one side": (lambda c: changed_cut(c, 0, lower=np.zeros(4)), "one side"),
    "dropped leaf": (dropped_leaf, "leaf 1 has no proof"),
    "two records of a leaf": (lambda c: replace(c, leaves=(*c.leaves, c.leaves[0])), "two records"),
    "inner node as a leaf": (lambda c: changed_leaf(c, 0, node=0), "no leaf"),
    "uncovered interval": (uncovered, "leave values"),
    "children of two columns": (lambda c: changed_node(c, 1, column=c.nodes[1].column + 1), "different columns"),
    "child before its parent": (lambda c: changed_node(c, 1, parent=2), "does not precede"),
    "interval not a number": (lambda c: changed_node(c, 1, upper=math.nan), "not made of numbers"),
    "no root": (lambda c: replace(c, nodes=()), "no root"),
    "row weights of the wrong sign": (flipped_weights, "multipliers prove"),
    "cut weights of the wrong sign": (
        lambda c: changed_leaf(c, 0, cut_weights=-c.leaves[0].cut_weights),
        "multipliers prove",
    ),
    "weights not finite": (lambda c: changed_leaf(c, 0, row_weights=np.full(3, np.inf)), "finite"),
    "cut that does not exist": (lambda c: changed_leaf(c, 0, cuts=c.leaves[0].cuts - 1), "outside"),
    "false emptiness": (lambda c: changed_leaf(c, 0, empty=True), "empty"),
    "bound too low": (lambda c: replace(c, upper_bound=c.upper_bound - 1e-6), "multipliers prove"),
    "value too high": (lambda c: replace(c, log_map=c.log_map + 1e-6), "has value"),
    "tampered point": (lambda c: replace(c, assignment={"x": np.array([0, 0, 0])}), "has value"),
    "point outside the domain": (lambda c: replace(c, assignment={"x": np.array([0, 0, 7])}), "does not fit"),
    "no point": (lambda c: replace(c, assignment=None), "without a point"),
    "status": (lambda c: replace(c, status="BOUNDED"), "status"),
    "claimed infeasible": (
        lambda c: replace(c, upper_bound=-math.inf, log_map=-math.inf, assignment=None, status="INFEASIBLE"),
        "multipliers prove",
    ),
    "another model": (lambda c: replace(c, model="0" * 64), "another model"),
    "unknown algorithm": (lambda c: replace(c, algorithm="magic"), "magic"),
    "missing block": (lambda c: replace(c, blocks=c.blocks[1:], private=c.private[1:]), "none of the certificate's"),
    "factor in two blocks": (lambda c: replace(c, blocks=(*c.blocks, c.blocks[0]), private=()), "several blocks"),
    "absorbed factor in a block": (lambda c: replace(c, blocks=(*c.blocks, (0,)), private=()), "does not have"),
    "shared variable made private": (lambda c: replace(c, private=(("x[0]",), (), ())), "private"),
    "tolerance": (lambda c: replace(c, tolerance=-1.0), "tolerance"),
    "not a number": (lambda c: replace(c, upper_bound=math.nan), "not a number"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_rejected(name: str) -> None:
    mutate, message = MUTATIONS[name]
    with pytest.raises(CertificateError, match=message):
        verify(mutate(PROOF), MODEL)


def test_a_certificate_of_a_slightly_different_model_is_rejected() -> None:
    other = frustrated_triangle(seed=1)
    with pytest.raises(CertificateError, match="another model"):
        verify(PROOF, other)
    with pytest.raises(CertificateError):
        verify(replace(PROOF, model=other.fingerprint()), other)


def test_local_optimality_is_reported_as_not_checked() -> None:
    bounded = certify(MODEL)
    report = verify(replace(bounded, status="LOCALLY_OPTIMAL"), MODEL)
    assert report.status.name == "LOCALLY_OPTIMAL"
    assert "neighbourhood" in report.trusted[0]
    with pytest.raises(CertificateError, match="the numbers give OPTIMAL"):
        verify(replace(PROOF, status="LOCALLY_OPTIMAL"), MODEL)


def test_a_bound_without_a_point_is_still_a_bound() -> None:
    report = verify(replace(PROOF, assignment=None, log_map=-math.inf, status="UNKNOWN"), MODEL)
    assert report.lower_bound == -math.inf
    assert report.upper_bound == pytest.approx(PROOF.upper_bound)


def scrambled(certificate: Certificate, rng: np.random.Generator) -> Certificate:
    """A few random changes anywhere in the proof; the claims are withdrawn, so that only the derivation counts."""
    c = replace(certificate, upper_bound=math.inf, status="FEASIBLE")
    graph = compile_model(MODEL)
    for _ in range(int(rng.integers(1, 4))):
        k = int(rng.integers(len(c.cuts)))
        cut, leaf = c.cuts[k], int(rng.integers(2))
        node = int(rng.integers(1, 3))
        match int(rng.integers(8)):
            case 0:
                c = changed_cut(c, k, u=cut.u + rng.normal(size=4))
            case 1:
                c = changed_cut(c, k, h=-100.0)
            case 2:
                box = np.sort(rng.integers(2, size=(2, 4)), axis=0).astype(float)
                c = changed_cut(c, k, lower=box[0], upper=box[1])
            case 3:
                c = changed_cut(c, k, feasibility=True)
            case 4:
                weights = c.leaves[leaf].cut_weights * np.exp(rng.normal(size=3))
                c = changed_leaf(c, leaf, cut_weights=weights, empty=bool(rng.random() < 0.3))
            case 5:
                c = changed_leaf(c, leaf, row_weights=rng.normal(size=len(graph.rows)))
            case 6:
                low, high = np.sort(rng.choice([-0.5, 0.0, 0.5, 1.0], 2))
                c = changed_node(c, node, lower=float(low), upper=float(high))
            case _:
                value, row = float(rng.integers(2)), int(rng.integers(len(graph.rows)))
                step = Tightening(int(rng.integers(graph.n_columns)), value, value, row)
                c = changed_node(c, node, tightenings=(*c.nodes[node].tightenings, step))
    return c


def test_whatever_is_accepted_is_true() -> None:
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(600):
        try:
            report = verify(scrambled(PROOF, rng), MODEL)
        except CertificateError:
            continue
        accepted += 1
        assert report.upper_bound >= PROOF.log_map
    assert 60 < accepted < 540


# ------------------------------------------------------------------------------------- tightenings, infeasible models
def alternating_chain() -> cm.Model:
    """Three binaries, neighbours different and ends different: infeasible, but the linear program is feasible."""
    model = cm.Model()
    x = model.binary("x", shape=3)
    model.constrain(cm.cannot_link(x[0], x[1]), cm.cannot_link(x[1], x[2]), cm.cannot_link(x[0], x[2]))
    return model


def emptied(model: cm.Model, first: tuple[NodeRecord, ...]) -> Certificate:
    empty = tuple(LeafRecord(i, True, NO_INTEGERS, NO_NUMBERS, NO_INTEGERS, NO_NUMBERS) for i in (1, 2))
    return Certificate(
        algorithm="branch-and-cut",
        model=model.fingerprint(),
        log_map=-math.inf,
        upper_bound=-math.inf,
        tolerance=0.0,
        status="INFEASIBLE",
        assignment=None,
        nodes=first,
        leaves=empty,
    )


def propagate(model: cm.Model, column: int, value: float) -> tuple[Tightening, ...]:
    """Plain propagation to emptiness, recorded; rows of the model have coefficient 1 everywhere."""
    graph = compile_model(model)
    lower, upper, steps = graph.lower.copy(), graph.upper.copy(), []
    lower[column] = upper[column] = value
    dense = graph.rows.matrix.toarray()
    for _ in range(10):
        for r, row in enumerate(dense):
            for j in np.flatnonzero(row):
                others = [k for k in np.flatnonzero(row) if k != j]
                high = min(upper[j], math.floor(graph.rows.upper[r] - lower[others].sum()))
                low = max(lower[j], graph.rows.lower[r] - upper[others].sum())
                if low > lower[j] or high < upper[j]:
                    steps.append(Tightening(int(j), float(low), float(high), r))
                    lower[j], upper[j] = low, high
                    if low > high:
                        return tuple(steps)
    raise AssertionError("not empty")


def test_tightenings_prove_emptiness() -> None:
    model = alternating_chain()
    root, out, inside = binary_split(model, "x[0]")
    nodes = (
        root,
        replace(out, tightenings=propagate(model, out.column, 0.0)),
        replace(inside, tightenings=propagate(model, inside.column, 1.0)),
    )
    report = verify(emptied(model, nodes), model)
    assert (report.status.name, report.upper_bound, report.lower_bound) == ("INFEASIBLE", -math.inf, -math.inf)
    for k in (1, 2):
        for i, step in enumerate(nodes[k].tightenings):
            steps = list(nodes[k].tightenings)
            steps[i] = replace(step, row=(step.row + 1) % len(compile_model(model).rows))
            mutated = replace(nodes[k], tightenings=tuple(steps))
            with pytest.raises(CertificateError, match=f"node {k}"):
                verify(emptied(model, (*nodes[:k], mutated, *nodes[k + 1 :])), model)


def test_a_box_without_a_proof_of_emptiness_is_not_empty() -> None:
    model = alternating_chain()
    with pytest.raises(CertificateError, match="do not prove that the box is empty"):
        verify(emptied(model, binary_split(model, "x[0]")), model)


def test_a_continuous_tightening_is_held_to_exact_arithmetic() -> None:
    """0.1 x + 0.2 y <= 0.3, to the tolerance of rows, with x >= 1 bounds y by a rational number: not a bit less."""
    model = cm.Model()
    x, y = model.real("x", 1, 2), model.real("y", 0, 9)
    model.constrain(0.1 * x + 0.2 * y <= 0.3)
    model.add(1.0 * y)
    side = Fraction(float(compile_model(model).rows.widest_upper[0]))
    implied = (side - Fraction(0.1)) / Fraction(0.2)
    least = float(implied) if Fraction(float(implied)) >= implied else math.nextafter(float(implied), math.inf)
    assert model.value({"x": 1.0, "y": 1.0 + 4.9e-9}) > -math.inf, "such a point counts as feasible"
    assert least > 1.0 + 4.9e-9
    leaf = LeafRecord(0, False, NO_INTEGERS, NO_NUMBERS, NO_INTEGERS, NO_NUMBERS)

    def claim(bound: float) -> Certificate:
        step = Tightening(1, 0.0, bound, 0)
        return Certificate(
            algorithm="branch-and-cut",
            model=model.fingerprint(),
            log_map=0.5,
            upper_bound=1.5,
            tolerance=0.0,
            status="BOUNDED",
            assignment={"x": 1.0, "y": 0.5},
            nodes=(NodeRecord(-1, -1, 0.0, 0.0, (step,)),),
            leaves=(leaf,),
        )

    assert verify(claim(least), model).upper_bound == pytest.approx(least, abs=1e-14)
    with pytest.raises(CertificateError, match="implies"):
        verify(claim(math.nextafter(least, 0.0)), model)


def test_an_integer_gap_between_children_may_be_open() -> None:
    model = cm.Model()
    n = model.integer("n", 0, 5)
    model.add(-1.0 * n)
    leaves = tuple(LeafRecord(i, False, NO_INTEGERS, NO_NUMBERS, NO_INTEGERS, NO_NUMBERS) for i in (1, 2))

    def claim(split: tuple[float, float]) -> Certificate:
        nodes = (NodeRecord(-1, -1, 0.0, 0.0), NodeRecord(0, 0, 0.0, split[0]), NodeRecord(0, 0, split[1], 5.0))
        return Certificate(
            algorithm="branch-and-cut",
            model=model.fingerprint(),
            log_map=0.0,
            upper_bound=0.0,
            tolerance=0.0,
            status="OPTIMAL",
            assignment={"n": 0},
            nodes=nodes,
            leaves=leaves,
        )

    assert verify(claim((2.0, 3.0)), model).upper_bound == pytest.approx(0.0, abs=1e-14)
    assert verify(claim((2.5, 3.0)), model).leaves == 2
    with pytest.raises(CertificateError, match="leave values"):
        verify(claim((1.9, 3.0)), model)
    with pytest.raises(CertificateError, match="leave values"):
        verify(claim((2.0, 3.5)), model)
