"""Robust sparse regression: heavy-tailed noise and at most two features, solved to a proven optimum.

    max over w, z   sum_i log t(y_i - x_i.w; scale, degrees of freedom) - sum_j w_j^2 / (2 s^2)
    subject to      -3 z_j <= w_j <= 3 z_j,  sum_j z_j <= 2

The student-t log-density is not concave, so a local method can end in a wrong fit that outliers hold in place.
"""

import numpy as np

from certimap import Model, at_most, gaussian, linear, ridge, solve, student_t, verify

REACH = 3.0


def regression(x: np.ndarray, y: np.ndarray, features: int) -> Model:
    n_features = x.shape[1]
    model = Model()
    w = model.real("w", -REACH, REACH, shape=n_features)
    z = model.binary("z", shape=n_features)
    for xi, yi in zip(x, y, strict=True):
        prediction = linear(zip(w, xi, strict=True))
        model.add(ridge(prediction, student_t(yi, scale=0.2, degrees_of_freedom=3.0)))
    for wj, zj in zip(w, z, strict=True):
        model.add(ridge(wj, gaussian(0.0, variance=4.0)))
        model.constrain(wj - REACH * zj <= 0, wj + REACH * zj >= 0)
    model.constrain(at_most(features, z))
    return model


def main() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 3))
    y = x @ np.array([1.5, 0.0, -1.0]) + 0.1 * rng.normal(size=12)
    y[:2] += 6.0  # two gross outliers
    model = regression(x, y, features=2)
    result = solve(model, gap=1e-3)
    print(result.status.name, f"log p = {result.log_map:.4f}, bound {result.upper_bound:.4f}")
    print("weights:", np.round(result.assignment["w"], 2), " least squares:", np.round(np.linalg.lstsq(x, y)[0], 2))
    print("verified upper bound:", f"{verify(result.certificate, model).upper_bound:.4f}")


if __name__ == "__main__":
    main()
