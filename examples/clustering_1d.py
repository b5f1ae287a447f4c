"""Clustering numbers with constraints, exactly: k-means on the line with must-links, cannot-links and sizes."""

import numpy as np

from certimap import Model, at_least, cannot_link, clusters_1d, must_link, solve, verify

CLUSTERS = 3


def clustering(y: np.ndarray) -> Model:
    model = Model()
    z = model.categorical("z", CLUSTERS, shape=len(y))
    model.add(clusters_1d(z, y, variance=0.25))
    model.constrain(must_link(z[0], z[-1]).named("the first and the last belong together"))
    model.constrain(cannot_link(z[1], z[2]).named("the second and the third do not"))
    model.constrain([at_least(5, z, value=k).named(f"cluster {k} has 5 members or more") for k in range(CLUSTERS)])
    return model


def main() -> None:
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.normal(centre, 0.5, size=8) for centre in (0.0, 2.0, 5.0)])
    model = clustering(y)
    result = solve(model)
    labels = result.assignment["z"]
    print(result.status.name, f"value {result.log_map:.6f}, bound {result.upper_bound:.6f}")
    for k in range(CLUSTERS):
        print(f"cluster {k}:", np.round(np.sort(y[labels == k]), 2))
    print("verified upper bound:", f"{verify(result.certificate, model).upper_bound:.6f}")


if __name__ == "__main__":
    main()
