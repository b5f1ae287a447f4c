"""Run the registered benchmarks, all or those named on the command line; every result is one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

from benchmarks import engine, kmeans_1d, topics_search

BENCHMARKS: dict[str, Callable[[], Iterable[str]]] = {
    "grids": engine.grids,
    "root": engine.root_bound,
    "sparse-logistic": engine.sparse_logistic,
    "switching-regression": engine.switching_regression,
    "kmeans-1d": kmeans_1d.run,
    "topics-map": topics_search.map_values,
    "topics-scale": topics_search.scale,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; default: all")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}")
    for name in names:
        for line in BENCHMARKS[name]():
            print(line, flush=True)


main()
