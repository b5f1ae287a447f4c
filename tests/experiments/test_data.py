"""The paper's data sets, and the nested must-links."""

import numpy as np
import pytest

from certimap.experiments.data import DATA_SETS, DataSet, iris

SHAPES = {"iris": (150, 3, 3), "wine": (178, 6, 3), "brca": (569, 3, 2)}


@pytest.mark.parametrize("name", DATA_SETS)
def test_data_are_prepared_as_the_paper_says(name: str) -> None:
    data = DATA_SETS[name]()
    assert (*data.points.shape, data.n_clusters) == SHAPES[name] and data.name == name
    assert np.allclose(data.points.mean(axis=0), 0.0)
    assert data.labels is not None and len(np.unique(data.labels)) == data.n_clusters
    assert len(data.feature_names) == data.points.shape[1]
    covariance = np.cov(data.points.T, bias=True)
    if name == "brca":
        assert np.allclose(np.diag(covariance), 1.0)
    else:
        assert np.allclose(covariance, np.diag(np.diag(covariance))) and (np.diff(np.diag(covariance)) < 0).all()


def test_iris_in_the_plane() -> None:
    whole, plane = DATA_SETS["iris"](), iris(2)
    assert plane.name == "iris, 2 components" and np.array_equal(plane.points, whole.points[:, :2])


def test_fewer_links_are_among_more() -> None:
    data = DATA_SETS["iris"]()
    assert data.labels is not None
    links = data.must_links(32, seed=0)
    assert len(set(links)) == 32 and all(i < j and data.labels[i] == data.labels[j] for i, j in links)
    for n in (0, 2, 4, 8, 16):
        assert data.must_links(n, seed=0) == links[:n]
    assert data.must_links(32, seed=1) != links
    assert len(data.problem(links).items) < len(data.problem().items) == 150
    few = DataSet("few", data.points[48:53], data.labels[48:53], 3, data.feature_names, "")
    assert set(few.must_links(4, seed=0)) == {(0, 1), (2, 3), (2, 4), (3, 4)}
    with pytest.raises(ValueError, match="n must be at most 4, got 5: few has no more pairs"):
        few.must_links(5, seed=0)
    with pytest.raises(ValueError, match="points of equal labels, mine has none"):
        DataSet("mine", data.points, None, 3, data.feature_names, "").must_links(1, seed=0)
