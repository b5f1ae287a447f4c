"""Run the registered benchmarks, all or those named on the command line; every result is one line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable

from benchmarks import engine, kmeans_1d, mixture, mixture_gpu, topics, topics_perplexity

BENCHMARKS: dict[str, Callable[[], Iterable[str]]] = {
    "grids": engine.grids,
    "root": engine.root_bound,
    "sparse-logistic": engine.sparse_logistic,
    "switching-regression": engine.switching_regression,
    "kmeans-1d": kmeans_1d.run,
    "mixture-values": mixture.values,
    "mixture-proofs": mixture.proofs,
    "mixture-long-proof": mixture.long_proof,
    "mixture-frontier": mixture.frontier,
    "mixture-must-links": mixture.must_links,
    "mixture-scale": mixture.scale,
    "mixture-gpu": mixture_gpu.run,
    "topics-map": topics.map_values,
    "topics-proof": topics.proofs,
    "topics-perplexity": topics_perplexity.perplexities,
    "topics-scale": topics.scale,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--data-home", help="folder with scikit-learn's 20 Newsgroups; default: its own cache")
    arguments = parser.parse_args()
    if arguments.data_home is not None:
        os.environ["SCIKIT_LEARN_DATA"] = arguments.data_home
    names = arguments.names or list(BENCHMARKS)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}")
    for name in names:
        for line in BENCHMARKS[name]():
            print(line, flush=True)


main()
