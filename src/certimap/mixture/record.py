"""A mixture problem as plain arrays, so that a saved certificate can carry what it speaks about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem

CLUSTERING = "clustering"  # where certificates keep the record among their details


def problem_record(problem: MixtureProblem) -> dict[str, Any]:
    """Data, prior and constraints of the points; `problem_of` gives an equal problem back."""
    first = np.unique(problem.point_item, return_index=True)[1]
    rows = np.repeat(np.arange(len(problem.items)), np.diff(problem.conflict_start))
    once = rows < problem.conflict_items
    prior = problem.prior
    return {
        "n_clusters": problem.n_clusters,
        "data": problem.data,
        "sample_weight": problem.sample_weight,
        "covariance_type": prior.covariance_type,
        "weight_concentration": prior.weight_concentration,
        "mean_precision": prior.mean_precision,
        "mean": prior.mean,
        "degrees_of_freedom": prior.degrees_of_freedom,
        "covariance": prior.covariance,
        "tied_to": first[problem.point_item],
        "cannot_link": np.stack([first[rows[once]], first[problem.conflict_items[once]]], axis=1),
        "known_labels": problem.fixed[problem.point_item],
        "sizes": np.array([problem.min_size, problem.max_size]),
        "soft_links": first[problem.soft_pairs],
        "soft_weights": problem.soft_weights,
        "soft_together": problem.soft_together,
        "soft_constant": problem.soft_constant,
    }


def problem_of(record: Mapping[str, Any]) -> MixtureProblem:
    """The problem of a record; ValueError for a malformed one."""
    try:
        prior = NormalWishartPrior(
            covariance_type=record["covariance_type"],
            weight_concentration=float(record["weight_concentration"]),
            mean_precision=float(record["mean_precision"]),
            mean=np.array(record["mean"]),
            degrees_of_freedom=float(record["degrees_of_freedom"]),
            covariance=np.array(record["covariance"]),
        )
        tied_to = np.asarray(record["tied_to"], dtype=np.int64)
        must = [(int(first), i) for i, first in enumerate(tied_to) if i != first]
        together = np.asarray(record["soft_together"], dtype=bool)
        links = [
            (int(i), int(j), float(weight))
            for (i, j), weight in zip(record["soft_links"], record["soft_weights"], strict=True)
        ]
        apart = [link for link, wanted in zip(links, together, strict=True) if not wanted]
        if record["soft_constant"]:
            apart.append((*must[0], float(record["soft_constant"])))
        low, high = (int(size) for size in record["sizes"])
        return MixtureProblem.from_points(
            record["data"],
            prior,
            int(record["n_clusters"]),
            sample_weight=record["sample_weight"],
            must_link=must,
            cannot_link=[(int(i), int(j)) for i, j in record["cannot_link"]],
            min_size=low,
            max_size=high,
            known_labels=record["known_labels"],
            soft_must_link=[link for link, wanted in zip(links, together, strict=True) if wanted],
            soft_cannot_link=apart,
        )
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the record of the clustering is malformed: {error!r}") from None
