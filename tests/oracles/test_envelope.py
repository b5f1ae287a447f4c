"""The default separation by cutting planes, on a family that offers conjugates only."""

from __future__ import annotations

import numpy as np
import pytest

from certimap.oracles.cuts import Box, Cuts
from certimap.oracles.envelope import envelope_cut

ROOT = Box(np.zeros(2), np.ones(2))


class Points:
    """theta given at finitely many points."""

    global_cuts = True

    def __init__(self, points: np.ndarray, values: np.ndarray) -> None:
        self.points, self.values = points, values

    def conjugate(self, i: int, u: np.ndarray, box: Box) -> tuple[float, np.ndarray]:
        heights = self.values - self.points @ u
        best = int(np.argmax(heights))
        return float(heights[best]), self.points[best]


SQUARE = Points(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0, 1.0, -2.0]))


@pytest.mark.parametrize(
    ("y", "envelope"), [((0.5, 0.5), 1.0), ((0.25, 0.25), 0.5), ((0.75, 0.75), -0.5), ((1, 1), -2.0)]
)
def test_the_cut_is_the_envelope(y: tuple[float, float], envelope: float) -> None:
    at = np.array(y)
    cut = envelope_cut(SQUARE, 3, at, 5.0, ROOT, 1e-6)
    assert cut is not None
    assert cut.term.tolist() == [3]
    assert cut.u[0] @ at + cut.h[0] <= envelope + 0.1 * (5.0 - envelope) + 1e-6
    assert (SQUARE.values <= SQUARE.points @ cut.u[0] + cut.h[0] + 1e-12).all()
    near = envelope_cut(SQUARE, 3, at, envelope + 1e-3, ROOT, 1e-6)
    assert near is not None
    assert near.u[0] @ at + near.h[0] == pytest.approx(envelope, abs=2e-4)


def test_nothing_is_cut_at_the_envelope() -> None:
    assert envelope_cut(SQUARE, 0, np.array([0.5, 0.5]), 1.0, ROOT, 1e-6) is None
    assert envelope_cut(SQUARE, 0, np.array([0.5, 0.5]), -7.0, ROOT, 1e-6) is None


def test_a_point_outside_the_hull_is_cut_deeply() -> None:
    corner = Points(SQUARE.points[:3], SQUARE.values[:3])
    cut = envelope_cut(corner, 0, np.array([1.0, 1.0]), -50.0, ROOT, 1e-6)
    assert cut is not None
    assert cut.u[0].sum() + cut.h[0] < -50.0


def test_joined_cuts_keep_their_witnesses() -> None:
    plain = Cuts.of(np.array([0]), np.zeros((1, 2)), np.zeros(1))
    witnessed = Cuts.of(np.array([1]), np.ones((1, 2)), np.ones(1), witness=np.full((1, 2), 0.5))
    assert Cuts.join([plain, plain], 2).witness is None
    joined = Cuts.join([plain, witnessed], 2)
    assert joined.witness is not None
    assert np.isnan(joined.witness[0]).all()
    assert (joined.witness[1] == 0.5).all()
