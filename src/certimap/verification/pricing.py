"""What the check of a partition proof asks of each kind of clusters; values are exact or rounded against the claim."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certimap.certificate import CertificateError
from certimap.verification.proof import Replay
from certimap.verification.subsets import GroupRules


@dataclass(frozen=True)
class PriceClaim:
    """No set that the rules admit has c(S) - lambda(S) above `price`; `record` is what the solver says about why."""

    multipliers: Sequence[Fraction]
    rules: GroupRules
    price: Fraction
    record: Mapping[str, Any]


class PricingCheck(ABC):
    """Checks claims about c(S) - lambda(S), soft links included."""

    @abstractmethod
    def value(self, members: Collection[int]) -> tuple[Fraction, Fraction]:
        """Numbers not above and not below c(S) of these items."""

    def excess(self, labels: Sequence[int]) -> Fraction:
        """By how much the partition with these labels is worth less than its clusters together; never negative."""
        return Fraction(0)

    @abstractmethod
    def check_price(self, claim: PriceClaim) -> None:
        """Prove the claim; `CertificateError` if it is false or cannot be confirmed."""

    @abstractmethod
    def columns_above(self, claim: PriceClaim, threshold: Fraction) -> Collection[frozenset[int]]:
        """Prove the claim, and find every nonempty admitted set with c(S) - lambda(S) above the threshold."""

    @property
    def replay(self) -> Replay | None:
        """What was searched again, for kinds whose proofs can be too long for all of it."""
        return None

    def reduced(self, members: Collection[int], claim: PriceClaim) -> Fraction:
        """Not below c(S) - lambda(S)."""
        return self.value(members)[1] - sum((claim.multipliers[i] for i in members), Fraction(0))


def too_heavy() -> CertificateError:
    return CertificateError("a cluster has a larger reduced value than its leaf claims as the largest")
