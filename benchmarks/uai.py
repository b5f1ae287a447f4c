"""A folder of .uai networks, each line one network: `python -m benchmarks.uai folder [--limit 60] [--peer]`.

Where NAME.sol stands beside NAME.uai, its value is printed as the reference, and a bound below it or an answer called
optimal below it ends the run with an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks import peers
from certimap import CertificateError, Model, Result, Status, verify
from certimap.graph.tables import as_tables
from certimap.io.uai import read_solution, read_uai
from certimap.solver import solve

GAP = 1e-6
ROUNDING = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uai", description=__doc__)
    parser.add_argument("folder", type=Path, help="of .uai files, with .sol files of known solutions")
    parser.add_argument("names", nargs="*", help="of networks; default: all")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each network")
    parser.add_argument("--peer", action="store_true", help="solve by toulbar2 as well")
    parser.add_argument("--verify", action="store_true", help="check every certificate")
    arguments = parser.parse_args()
    paths = sorted(p for p in arguments.folder.glob("*.uai") if not arguments.names or p.stem in arguments.names)
    closed = contradicted = 0
    for path in paths:
        model = read_uai(path)
        started = time.perf_counter()
        result = solve(model, gap=GAP, time_limit=arguments.limit)
        seconds = time.perf_counter() - started
        parts = [_line(path.stem, result, seconds)]
        solution = path.with_suffix(".sol")
        if solution.exists():
            reference = model.value(read_solution(solution, model))
            wrong = _contradicts(result, reference)
            contradicted += wrong
            parts.append(f"reference {reference:.6f}{' CONTRADICTED' if wrong else ''}")
        if arguments.verify:
            parts.append(_verified(result, model))
        if arguments.peer and (tables := as_tables(model)) is not None:
            peer = peers.toulbar2_tables(tables, int(arguments.limit))
            parts.append(f"{peer} | time ratio {peer.seconds / seconds:.2f}")
        closed += result.status is Status.OPTIMAL
        print(" | ".join(parts), flush=True)
    print(f"{closed} of {len(paths)} closed to {GAP:g}, {contradicted} contradicted")
    sys.exit(contradicted > 0)


def _line(name: str, result: Result, seconds: float) -> str:
    engine = "no proof" if result.certificate is None else result.certificate.algorithm
    return (
        f"{name}: {result.log_map:.6f} bound {result.upper_bound:.6f} {result.status.name} "
        f"({result.stop_reason.value}) {engine} {result.statistics['nodes']} nodes {seconds:.2f} s"
    )


def _contradicts(result: Result, reference: float) -> bool:
    slack = ROUNDING * max(1.0, abs(reference))
    worse = result.log_map < reference - slack - GAP * max(1.0, abs(result.log_map))
    return result.upper_bound < reference - slack or (result.status is Status.OPTIMAL and worse)


def _verified(result: Result, model: Model) -> str:
    if result.certificate is None:
        return "nothing to verify"
    try:
        report = verify(result.certificate, model)
    except CertificateError as error:
        return f"REJECTED: {error}"
    return f"verified in {report.seconds:.2f} s"


main()
