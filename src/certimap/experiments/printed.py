"""The figures that the paper prints, as they stand there."""

from __future__ import annotations

# Its names of the methods, and those that stand for them here.
VARIATIONAL, SAMPLER, BRANCH_AND_BOUND, GBD = "Var Bayes", "Sampler", "BNB", "GBD"

# Variation of information between clusterings (its table of VoI scores).
VOI: dict[str, dict[tuple[str, str], float]] = {
    "iris": {
        ("Label", VARIATIONAL): 0.124,
        ("Label", SAMPLER): 0.146,
        ("Label", GBD): 0.149,
        (VARIATIONAL, SAMPLER): 0.122,
        (VARIATIONAL, GBD): 0.116,
        (SAMPLER, GBD): 0.122,
    },
    "wine": {
        ("Label", VARIATIONAL): 0.033,
        ("Label", SAMPLER): 0.261,
        ("Label", GBD): 0.048,
        (VARIATIONAL, SAMPLER): 0.252,
        (VARIATIONAL, GBD): 0.032,
        (SAMPLER, GBD): 0.264,
    },
    "brca": {
        ("Label", VARIATIONAL): 0.097,
        ("Label", SAMPLER): 0.206,
        ("Label", GBD): 0.080,
        (VARIATIONAL, SAMPLER): 0.210,
        (VARIATIONAL, GBD): 0.079,
        (SAMPLER, GBD): 0.196,
    },
}

# log MAP and upper bound by data set and method.
LOG_MAP: dict[str, dict[str, tuple[float, float | None]]] = {
    "iris": {
        VARIATIONAL: (-150.997, None),
        SAMPLER: (-171.044, None),
        BRANCH_AND_BOUND: (-90.149, 230925.3),
        GBD: (-89.411, -81.5),
    },
    "wine": {
        VARIATIONAL: (-676.813, None),
        SAMPLER: (-1172.079, None),
        BRANCH_AND_BOUND: (-646.203, 1156346.8),
        GBD: (-646.200, -200.4),
    },
    "brca": {
        VARIATIONAL: (-681.272, None),
        SAMPLER: (-1195.411, None),
        BRANCH_AND_BOUND: (-660.976, 127090.3),
        GBD: (-660.971, -657.3),
    },
}

# log MAP and upper bound on iris by the number of must-links; without links as in the table above.
MUST_LINK: dict[int, dict[str, tuple[float, float]]] = {
    0: {GBD: (-89.411, -81.5), BRANCH_AND_BOUND: (-90.149, 230925.3)},
    2: {GBD: (-90.146, -81.751), BRANCH_AND_BOUND: (-90.149, 230000.6)},
    4: {GBD: (-90.146, -78.566), BRANCH_AND_BOUND: (-90.149, 229878.16)},
    8: {GBD: (-90.146, -78.566), BRANCH_AND_BOUND: (-90.149, 228843.24)},
    16: {GBD: (-89.055, -81.486), BRANCH_AND_BOUND: (-90.149, 227252.85)},
    32: {GBD: (-90.146, -78.089), BRANCH_AND_BOUND: (-90.149, 207962.17)},
}

# Seconds, and when optimality was certified.
RUNNING_TIME: dict[str, dict[str, tuple[float, str]]] = {
    "iris": {VARIATIONAL: (0.064, "n/a"), SAMPLER: (74.250, "n/a"), GBD: (4074.856, "epoch 2, iteration 6")},
    "wine": {VARIATIONAL: (0.017, "n/a"), SAMPLER: (94.99, "n/a"), GBD: (3238.427, "epoch 4, iteration 4")},
    "brca": {VARIATIONAL: (0.044, "n/a"), SAMPLER: (191.504, "n/a"), GBD: (9837.053, "epoch 3, iteration 3")},
}

# Topic model: 50 documents, 25 words, 5 topics.
TOPIC_LOG_MAP: dict[str, float] = {VARIATIONAL: -1.11275e6, SAMPLER: -1.1124280e6, GBD: -1.10113e6}
TOPIC_SIZES = (50, 25, 5)

TOP_WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    GBD: (
        ("israel", "time", "just", "like", "image", "format", "3d", "ac", "available", "based"),
        ("edu", "mail", "send", "3d", "com", "objects", "image", "file", "format", "stuff"),
    ),
    SAMPLER: (
        ("like", "time", "just", "data", "com", "format", "gov", "help", "objects", "send"),
        ("key", "line", "like", "mail", "format", "time", "send", "objects", "message", "israel"),
    ),
    VARIATIONAL: (
        ("israel", "key", "like", "time", "just", "line", "image", "message", "mail", "help"),
        ("just", "like", "time", "mail", "key", "help", "edu", "gov", "israel", "com"),
    ),
}

# Held-out log likelihood and perplexity: 300 documents, 150 words, 5 topics, 30 documents held out.
PERPLEXITY: dict[str, tuple[float, float]] = {
    VARIATIONAL: (-2237.730, 177.670),
    SAMPLER: (-2220.319, 170.652),
    GBD: (-2271.184, 191.976),
}
PERPLEXITY_SIZES = (300, 150, 5)
HELD_OUT = 30
