"""Searching recorded pricing trees again: which boxes, how much of the solver's work they hold, and what comes out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.pricing import PriceClaim, PricingCheck, too_heavy
from certimap.verification.proof import Effort, Replay

PATIENCE = 50  # times the solver's nodes that a replay may take, and
LEAST_PATIENCE = 200_000


def recorded_nodes(record: Mapping[str, object]) -> int:
    """The solver's nodes, as the certificate states them."""
    try:
        return int(np.asarray(record["nodes"], dtype=np.int64).sum())
    except (KeyError, TypeError, ValueError) as error:
        raise CertificateError(f"the pricing of a leaf is malformed: {error}") from None


class Sampler:
    """Draws boxes so that they hold a share of the solver's nodes, and keeps count."""

    def __init__(self, effort: Effort, share: float) -> None:
        self._share = 1.0 if effort.full else min(1.0, share)
        self._rng = np.random.default_rng(effort.seed)
        self.replay = Replay(0, 0, 0, 0, 0, effort.seed)

    def draw(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """All boxes, or boxes drawn uniformly until they hold the share."""
        if self._share >= 1.0 or len(nodes) <= 1:
            return np.arange(len(nodes))
        order = self._rng.permutation(len(nodes))
        held = np.cumsum(nodes[order])
        return np.sort(order[: 1 + int(np.searchsorted(held, self._share * held[-1]))])

    def count(self, nodes: NDArray[np.int64], chosen: NDArray[np.int64], visited: int) -> None:
        done = self.replay
        self.replay = replace(
            done,
            boxes=done.boxes + len(nodes),
            replayed=done.replayed + len(chosen),
            nodes=done.nodes + int(nodes.sum()),
            replayed_nodes=done.replayed_nodes + int(nodes[chosen].sum()),
            visited=done.visited + visited,
        )


def patience(nodes: NDArray[np.int64], chosen: NDArray[np.int64]) -> int:
    """Nodes that the replay of the chosen boxes may take."""
    return max(LEAST_PATIENCE, PATIENCE * int(nodes[chosen].sum()))


class ClusterBounds(Protocol):
    def value(self, members: Collection[int]) -> tuple[Fraction, Fraction]:
        """Numbers not above and not below c(S) of these items."""


Values = TypeVar("Values", bound=ClusterBounds)


class RepeatedPricing(PricingCheck, Generic[Values]):
    """A check that searches again. One search serves both questions, see `_search`."""

    def __init__(self, values: Values, sampler: Sampler) -> None:
        self._values = values
        self._sampler = sampler

    @property
    def replay(self) -> Replay:
        return self._sampler.replay

    def value(self, members: Collection[int]) -> tuple[Fraction, Fraction]:
        return self._values.value(members)

    def check_price(self, claim: PriceClaim) -> None:
        self._search(claim, claim.price)

    def columns_above(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        return self._search(claim, min(threshold, claim.price))

    @abstractmethod
    def _search(self, claim: PriceClaim, threshold: Fraction) -> set[frozenset[int]]:
        """Prove the claim, and find every nonempty admitted set above the threshold."""


class FoundSets:
    """Sets that a search hands back: none may refute the price, the admitted ones above the threshold are listed.

    `value` is not below c(S), soft links included; `family_value` not below what the search's own bound may count.
    """

    def __init__(
        self,
        claim: PriceClaim,
        threshold: Fraction,
        value: Callable[[Collection[int]], Fraction],
        family_value: Callable[[Sequence[int], Sequence[int]], Fraction],
    ) -> None:
        self._claim, self._threshold = claim, threshold
        self._value, self._family_value = value, family_value
        self._seen: set[bytes] = set()
        self.listed: set[frozenset[int]] = set()

    def add(self, chosen: NDArray[np.bool_]) -> None:
        key = np.packbits(chosen).tobytes()
        if key in self._seen:
            return
        self._seen.add(key)
        rules, price = self._claim.rules, self._claim.price
        groups = np.flatnonzero(chosen).tolist()
        members = [i for g in groups for i in rules.groups[g]]
        reduced = self._value(members) - sum((self._claim.multipliers[i] for i in members), Fraction(0))
        admitted = rules.admit(chosen.tolist())
        if admitted and reduced > price:
            raise too_heavy()
        if self._family_value(groups, members) > price:
            raise CertificateError(
                "the price of a leaf cannot be confirmed: it bounds the admitted sets only, not the family of its proof"
            )
        if admitted and members and reduced > self._threshold:
            self.listed.add(frozenset(members))


def below(value: Fraction) -> float:
    """A float that is not above the fraction."""
    rounded = float(value)
    return rounded if Fraction(rounded) <= value else math.nextafter(rounded, -math.inf)
