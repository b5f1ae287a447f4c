"""Made-up documents for where 20 Newsgroups is missing: each mixes a few of five themes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

NAME = "a made-up collection"
DOCUMENTS = 400
SEED = 0
LENGTHS = (15, 45)  # tokens of a document
MIXING = 0.3  # Dirichlet concentration of the themes of a document: most have one or two

THEMES = (
    """star planet orbit moon comet telescope galaxy eclipse gravity asteroid lens mirror horizon meteor nebula
    satellite launch rocket crater equinox dawn zenith spectrum parallax dust ring shadow tide axis mission probe
    observatory""",
    """bread flour oven butter salt garlic onion pepper sauce soup dough sugar recipe kettle spoon knife roast simmer
    cheese lemon basil pasta rice stew honey cake crust yeast broth pan taste dinner""",
    """sail harbour anchor mast wind wave deck rope hull tiller compass island storm current buoy lighthouse crew
    captain voyage knot keel rudder port starboard reef chart cabin gale ballast dock oar sailor""",
    """garden soil seed rose tulip compost rain leaf root branch pruning hedge lawn spade bee blossom apple cherry
    greenhouse weed mulch fern moss worm frost harvest orchard pond bulb vine petal trellis""",
    """chess pawn rook bishop knight queen king castle opening endgame gambit check mate sacrifice tempo clock
    tournament rating fork pin blunder draw file rank defence attack variation board rival match score champion""",
)


@lru_cache(maxsize=1)
def made_up_texts() -> tuple[str, ...]:
    """The same documents on every call; within a theme word r has a probability proportional to 1/(r + 4)."""
    rng = np.random.default_rng(SEED)
    themes = [theme.split() for theme in THEMES]
    texts = []
    for _ in range(DOCUMENTS):
        mixture = rng.dirichlet(np.full(len(themes), MIXING))
        words = []
        for theme in rng.choice(len(themes), size=int(rng.integers(*LENGTHS)), p=mixture):
            share = 1.0 / (np.arange(len(themes[theme])) + 5.0)
            words.append(themes[theme][int(rng.choice(len(share), p=share / share.sum()))])
        texts.append(" ".join(words))
    return tuple(texts)
