"""Clustering iris flowers with a Gaussian mixture under an expert's constraints, with a bound on every other clustering
that is verified again."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from certimap import GaussianMixtureMAP, verify

EVERY = 5  # flower of the 150: the proof takes seconds
MUST_LINK = [(10, 14), (21, 28)]  # rows of flowers that an expert holds for one species
CANNOT_LINK = [(12, 24), (13, 27)]  # and for two
SOFT = [(11, 17, 0.5)]  # a doubtful one: keeping them apart costs half a nat


def main() -> None:
    bunch = load_iris()
    points = PCA(2, svd_solver="full").fit_transform(bunch.data)[::EVERY]
    model = GaussianMixtureMAP(3, random_state=0)
    model.fit(points, must_link=MUST_LINK + SOFT, cannot_link=CANNOT_LINK, min_cluster_size=5)
    print(model.status_.name, f"value {model.log_map_:.6f}, bound {model.upper_bound_:.6f}")
    species = bunch.target_names[bunch.target[::EVERY]]
    for k in range(model.n_components):
        names, counts = np.unique(species[model.labels_ == k], return_counts=True)
        print(f"cluster {k}:", ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True)))
    for check in model.constraints_.checks(model.labels_, model.n_components):
        print(check.kind, check.subject, "kept" if check.satisfied else f"violated at a cost of {check.cost:g}")
    print("verified upper bound:", f"{verify(model.certificate_, model.model()).upper_bound:.6f}")


if __name__ == "__main__":
    main()
