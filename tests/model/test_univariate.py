"""Named functions of one number: formulas, domains and refused parameters."""

import math

import numpy as np
import pytest
from scipy import stats

from certimap import ModelError, gaussian, laplace, log, logistic, poisson, polynomial, student_t


def test_formulas_are_log_densities_up_to_constants():
    s = 0.7
    for g, density in [
        (gaussian(0.3, 2.0), stats.norm(0.3, math.sqrt(2.0))),
        (laplace(-0.2, 1.5), stats.laplace(-0.2, 1.5)),
        (student_t(0.1, 0.5, 4.0), stats.t(4.0, 0.1, 0.5)),
    ]:
        mode = g.parameters[0]
        assert g(s) - g(mode) == pytest.approx(density.logpdf(s) - density.logpdf(mode), abs=1e-12)
    assert logistic(-1)(s) == pytest.approx(-math.log1p(math.exp(s)))
    assert poisson(3)(s) == pytest.approx(3 * s - math.exp(s))
    assert log(2.0)(s) == pytest.approx(2 * math.log(s))
    assert polynomial([1.0, -2.0, 3.0])(s) == pytest.approx(np.polyval([3.0, -2.0, 1.0], s))


def test_logistic_does_not_overflow():
    assert logistic(1)(-1e4) == -1e4
    assert logistic(1)(1e4) == 0.0


def test_log_of_zero_is_minus_infinity_unless_its_weight_is_zero():
    assert log(1.0)(0.0) == -math.inf
    assert log(0.0)(0.0) == 0.0
    assert log().domain() == (0.0, math.inf)
    assert gaussian(0.0).domain() == (-math.inf, math.inf)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: gaussian(math.nan), r"mean must be finite, got nan"),
        (lambda: gaussian(0.0, 0.0), r"variance must be a positive finite number, got 0.0"),
        (lambda: laplace(0.0, -1.0), r"scale must be a positive finite number, got -1.0"),
        (lambda: laplace(math.inf), r"location must be finite, got inf"),
        (lambda: logistic(0), r"logistic: label must be -1 or \+1, got 0"),
        (lambda: poisson(-1), r"poisson: count must be a finite number >= 0, got -1"),
        (lambda: log(-1.0), r"log: weight must be a finite number >= 0 \(the function must be concave\), got -1.0"),
        (lambda: student_t(0.0, 1.0, 0.0), r"degrees_of_freedom must be a positive finite number, got 0.0"),
        (lambda: polynomial([]), r"polynomial: at least one coefficient is needed"),
        (lambda: polynomial([1.0, math.inf]), r"coefficient must be finite, got inf"),
    ],
)
def test_wrong_parameters_are_named(make, message):
    with pytest.raises(ModelError, match=message):
        make()
