"""The paper's factor graphs: their value is the closed form, their bounds bound, their arrows belong to them."""

from dataclasses import replace

import numpy as np
import pytest

from certimap.baselines.mixture_posterior import log_density
from certimap.baselines.topic_posterior import log_density as topic_log_density
from certimap.experiments.factor_form import (
    FactorForm,
    LogTerm,
    PullTerm,
    mixture_factor_form,
    topic_factor_form,
)
from certimap.experiments.figures import COUNTS, POINTS
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.report.graph_plots import check_structure
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem

PRIOR = NormalWishartPrior.from_data(POINTS, weight_concentration_prior=1.5)


def mixture() -> FactorForm:
    return mixture_factor_form(POINTS, PRIOR, 2)


def test_mixture_has_the_value_of_the_posterior() -> None:
    problem = MixtureProblem.from_points(POINTS, PRIOR, 2)
    z, weights = np.array([0, 0, 1]), np.array([0.7, 0.3])
    means, precisions = np.array([[0.2], [2.5]]), np.array([[[1.5]], [[0.8]]])
    form = mixture()
    point = {"z": np.eye(2)[z], "pi": weights, "mu": means.ravel(), "Lambda": precisions.ravel()}
    assert form.model.value(point) == pytest.approx(log_density(problem, z, weights, means, precisions))


def test_topics_have_the_value_of_the_posterior() -> None:
    prior = TopicPrior(1.1, 1.3)
    problem = TopicProblem.from_counts(COUNTS, prior, 2)
    z = np.array([[0, 0, 1], [1, 0, 1]])
    theta, beta = np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]])
    form = topic_factor_form(COUNTS, prior, 2)
    value = form.model.value({"z": z, "Theta": theta, "beta": beta})
    assert value == pytest.approx(topic_log_density(problem, z.ravel(), theta, beta))


def test_the_optimum_is_inside_the_boxes() -> None:
    problem = MixtureProblem.from_points(POINTS, PRIOR, 2)
    form = mixture()
    values = []
    for code in range(8):
        z = np.array([(code >> i) & 1 for i in range(3)])
        best = problem.objective.parameters(z)
        point = {"z": np.eye(2)[z], "pi": best.weights, "mu": best.means.ravel(), "Lambda": best.precisions.ravel()}
        values.append(form.model.value(point))  # refuses points outside
        assert values[-1] == pytest.approx(problem.log_map(z))


@pytest.mark.parametrize("gated", [False, True])
def test_bounds_of_the_black_boxes(gated: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        y, b, c, r = rng.normal(), rng.uniform(0.1, 2.0), rng.uniform(0.0, 2.0), rng.uniform(0.0, 2.0)
        gate = np.sort(rng.integers(0, 2, size=2)).astype(float)[: 2 * gated]
        m, s = np.sort(rng.normal(size=2)), np.sort(rng.uniform(0.1, 3.0, size=2))
        for term, low, high in (
            (PullTerm(y, b, gated), [*gate[:1], m[0], s[0]], [*gate[1:], m[1], s[1]]),
            (LogTerm(c, r, gated), [*gate[:1], s[0]], [*gate[1:], s[1]]),
        ):
            lower, upper = np.array(low), np.array(high)
            points = lower + rng.random((200, len(lower))) * (upper - lower)
            if gated:
                points[:, 0] = rng.choice(gate, size=200)
            assert max(term.value(x) for x in points) <= term.upper(lower, upper)


def test_wrong_shapes_are_refused() -> None:
    plane = NormalWishartPrior.from_data([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="points on the line, got dimension 2"):
        mixture_factor_form(np.eye(2), plane, 2)
    with pytest.raises(ValueError, match=r"documents of one length, got 1\.\.2 tokens"):
        topic_factor_form([[1, 1], [1, 0]], TopicPrior(1.1, 1.1), 2)


def test_arrows_belong_to_the_factors() -> None:
    form = mixture()
    check_structure(form.model, form.structure)
    parents = dict(form.structure.parents)
    for wrong in ({**parents, "z": ()}, {**parents, "mu": ("Lambda", "pi")}):
        with pytest.raises(ValueError, match="the structure does not belong to the model"):
            check_structure(form.model, replace(form.structure, parents=wrong))
