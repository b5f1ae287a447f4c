"""The sentences of the reports."""

from __future__ import annotations


def _text(words: str) -> str:
    return " ".join(words.split())


VOI = _text(
    """Variation of information (VoI) is a distance between clusterings, 0 where they are equal. The labels were made
    without a look at the posterior: a clustering of larger posterior density need not be closer to them. With
    certimap's default prior, for example, the MAP of iris joins most of two species that overlap."""
)

LOG_MAP = (
    _text(
        """The sum of the paper's terms 1 to 6 at each method's own point, and at the same labels with the parameters
        that are optimal for them, in nats (natural logarithms). The paper does not print its priors, on which these
        values depend: its figures and ours are on different scales and cannot agree digit by digit. What can be
        compared is the order of the methods. All of ours are under certimap's default prior: Dirichlet concentration
        a0 = 1, mean precision b0 = 1 about the mean of the points, nu0 = D + 2 degrees of freedom for D features, and
        the covariance of the points as the inverse of W0."""
    ),
    _text(
        """In the paper's tables Var Bayes is variational Bayes, Sampler the Gibbs sampler, whose mode it reads off
        binned samples, BNB branch and bound (BARON), and GBD its own method, beside which certimap stands here. The
        best sample of the same chain is ours to add."""
    ),
    _text(
        """An upper bound of certimap comes with a certificate that `certimap verify` checks. Branch and bound is SCIP
        on the direct formulation; its bound is claimed: it holds as far as SCIP's floating-point tolerances do. The
        paper's bounds are local, since its inner problems are not concave."""
    ),
)

MUST_LINK = _text(
    """The paper does not print its pairs. Ours are drawn at random among points of one species; the first 2 of them
    are the table's 2 links, and so on. So more links never make the maximum larger, and a bound for fewer links is
    one for more."""
)

RUNNING_TIME = _text(
    """Wall-clock seconds on one thread of this machine; both Gibbs rows are one chain of 1,000 sweeps. The paper's
    times are of other programs on another machine."""
)

GRAPHS = _text(
    """Drawn from `Model` objects that hold every term of the paper's appendix as a factor. At optimal parameters they
    have the same value as the closed form by which the methods are compared."""
)

TRACES = _text(
    """1,000 sweeps from uniformly drawn labels; the hatched part is left out. A trace that looks settled says nothing
    about regions that the chain has not visited."""
)

CONVERGENCE = _text(
    """Distance from the upper bound to the value of certimap's answer. The bound of branch and bound is drawn where it
    stood when its time was over."""
)

TOPIC_LOG_MAP = _text(
    """The sum of the paper's terms 1 to 4 with Dirichlet parameters 1.1 for topics and words, which the paper does not
    print. Its documents are a random draw that is not printed either, so that neither values nor words can agree; the
    order of the methods can be compared."""
)

TOP_WORDS = _text(
    """The ten most probable words of two topics. The topics of the other methods are matched with certimap's by the
    overlap of their distributions, so that columns of one topic are about the same thing; words that at least two
    methods share are in bold, as in the paper. A dash stands where a topic of the MAP has no more words."""
)

PERPLEXITY = _text(
    """Half-document completion: the topics are learned on the training documents, the mixture of each held-out document
    on one half of its tokens, in the same way for every method, and the other half is predicted. Lower perplexity is
    better. certimap's topics are those of its MAP, and smoothed: the posterior means given the MAP's assignment of
    tokens, which is what the Gibbs sampler averages. The prior is the same for all and tuned for none. The paper's
    documents are not known, so that its figures are on another scale."""
)

LEAD = (
    _text(
        """Tables and figures of Dubey, Lee and Flaherty, Maximum a Posteriori Inference for Factor Graphs via Benders'
        Decomposition, computed again by certimap and by the methods that the paper compares with. The paper's figures
        stand in brackets beside ours. All methods are measured on one objective: the log-density of the posterior, of
        which the maximum a posteriori (MAP) point is the maximum."""
    ),
)

DISTANCES = _text(
    """0 for equal clusterings, at most 2 log K nats for K clusters. Points without a label are left out of the
    distances to the labels."""
)

LIMITS = _text(
    """Values come from searches that this rarely cuts short. Bounds are what the time buys: with more of it they fall,
    and where the gap is closed the value is proved to be the maximum."""
)

ONE_OBJECTIVE = _text(
    """The log-density of the posterior with certimap's default prior, without the constants of the model, at each
    method's own point and at the same labels with the parameters that are optimal for them. An upper bound of
    certimap comes with a certificate; that of branch and bound, which is SCIP on the direct formulation, holds as far
    as SCIP's floating-point tolerances do."""
)
