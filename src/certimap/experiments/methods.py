"""Names of the methods, and which of them stands for which of the paper's."""

from certimap.baselines import scip, variational_mixture
from certimap.experiments import printed

VARIATIONAL, BRANCH_AND_BOUND = variational_mixture.NAME, scip.NAME
OURS = "certimap"
LABEL = "labels"
MIXTURE_SAMPLER, TOPIC_SAMPLER = "Gibbs, mode of bins", "Gibbs, mode"

PAPER_NAME = {
    VARIATIONAL: printed.VARIATIONAL,
    MIXTURE_SAMPLER: printed.SAMPLER,
    TOPIC_SAMPLER: printed.SAMPLER,
    BRANCH_AND_BOUND: printed.BRANCH_AND_BOUND,
    OURS: printed.GBD,
    LABEL: "Label",
}


def paper_name(method: str) -> str:
    """The paper's name of a method; empty for one that it does not have."""
    return PAPER_NAME.get(method, "")
