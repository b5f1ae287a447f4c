"""The best few clusterings as users see them: under names that agree with those of the best one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from certimap.certificate import Certificate
from certimap.mixture.clusters import IntArray
from certimap.mixture.problem import MixtureProblem
from certimap.results import RankedPartition, Ranking

RANKING = "ranking"  # where certificates keep it among their details


def ranking_of(problem: MixtureProblem, certificate: Certificate | None, upper_bound: float, wanted: int) -> Ranking:
    """The ranking that the certificate claims; without one no clustering is ranked and the upper bound bounds all."""
    if certificate is None or RANKING not in certificate.details:
        return Ranking((), upper_bound, wanted)
    record = certificate.details[RANKING]
    values = [float(value) for value in record["values"]]
    best = np.asarray(record["labels"][0])
    ranked = (
        RankedPartition(aligned(problem, np.asarray(labels), best), value, values[0] - value)
        for labels, value in zip(record["labels"], values, strict=True)
    )
    return Ranking(tuple(ranked), float(record["others"]), wanted)


def aligned(problem: MixtureProblem, labels: IntArray, reference: IntArray) -> IntArray:
    """The same clusters, named so that as many points as possible have the reference's label; known labels stay."""
    K = problem.n_clusters
    common = np.zeros((K, K))
    np.add.at(common, (labels, reference), 1.0)
    known = np.flatnonzero(problem.fixed[problem.point_item] >= 0)
    common[labels[known], labels[known]] += 2.0 * len(labels)
    return np.asarray(linear_sum_assignment(-common)[1][labels], dtype=np.int64)
