"""The ledger: incumbent and bound, stop rules, and the orderly answer to Ctrl-C."""

import math
import os
import signal
import threading

import pytest

from certimap import StopReason
from certimap.engines.ledger import Ledger, Limits, resident_megabytes


def test_offers_replace_the_incumbent_only_when_better():
    ledger = Ledger(Limits())
    assert ledger.offer({"a": 0}, 1.0)
    assert not ledger.offer({"a": 1}, 1.0)
    assert not ledger.offer({"a": 1}, math.nan)
    assert not ledger.offer({"a": 1}, -math.inf)
    assert ledger.offer({"a": 2}, 1.5)
    assert (ledger.assignment, ledger.log_map) == ({"a": 2}, 1.5)


def test_the_best_bound_stays_and_never_falls_below_the_incumbent():
    ledger = Ledger(Limits())
    ledger.offer({}, 1.0)
    for bound, kept in ((3.0, 3.0), (4.0, 3.0), (2.0, 2.0), (0.5, 1.0), (-math.inf, 1.0)):
        ledger.prove(bound)
        assert ledger.upper_bound == kept


def test_the_cutoff_lies_one_tolerance_above_the_incumbent():
    ledger = Ledger(Limits(gap=0.1))
    assert ledger.cutoff == -math.inf
    ledger.offer({}, -20.0)
    assert ledger.cutoff == pytest.approx(-18.0)
    ledger.offer({}, 0.5)
    assert ledger.cutoff == pytest.approx(0.6)


def test_records_reach_history_and_callback():
    seen = []
    ledger = Ledger(Limits(), seen.append)
    ledger.offer({}, 1.0)
    ledger.prove(2.0)
    ledger.nodes, ledger.iterations = 3, 4
    ledger.record("B", open_nodes=2, cuts=7)
    assert seen == ledger.history
    line = seen[0]
    assert (line.source, line.nodes, line.iteration, line.open_nodes, line.cuts) == ("B", 3, 4, 2, 7)
    assert (line.bound, line.incumbent, line.gap) == (2.0, 1.0, 1.0)
    assert line.seconds >= 0.0


@pytest.mark.parametrize(
    "limits, reason",
    [
        (Limits(max_nodes=5), StopReason.NODES),
        (Limits(max_iterations=7), StopReason.ITERATIONS),
        (Limits(time_limit=1e-9), StopReason.TIME),
        (Limits(memory_limit=1.0), StopReason.MEMORY),
        (Limits(gap=2.0), StopReason.TOLERANCE),
        (Limits(max_nodes=6, max_iterations=8, time_limit=3600.0, memory_limit=1e9), None),
    ],
)
def test_every_limit_gives_its_reason(limits, reason):
    ledger = Ledger(limits)
    ledger.nodes, ledger.iterations = 5, 7
    ledger.offer({}, 0.0)
    ledger.prove(1.5)
    assert ledger.stop_reason() is reason


def test_resident_memory_is_in_megabytes():
    assert 10.0 < resident_megabytes() < 1e6


def test_the_first_ctrl_c_asks_and_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    ledger = Ledger(Limits())
    with pytest.raises(KeyboardInterrupt), ledger.interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        assert ledger.stop_reason() is StopReason.INTERRUPTED
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second Ctrl-C did not raise")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_solve_within_a_solve_stops_with_the_outer_one():
    outer = Ledger(Limits(max_nodes=1))
    inner = Ledger(Limits(), parent=outer)
    outer.nodes = 1
    assert inner.stop_reason() is None, "nodes are counted by each on its own"
    outer.interrupted = True
    assert inner.stop_reason() is StopReason.INTERRUPTED
    assert Ledger(Limits(), parent=Ledger(Limits(time_limit=1e-9))).urgent_reason() is StopReason.TIME


def test_an_interrupt_raised_by_the_callback_is_an_orderly_stop():
    def interrupt(_):
        raise KeyboardInterrupt

    ledger = Ledger(Limits(), interrupt)
    ledger.record("C", open_nodes=0)
    assert ledger.stop_reason() is StopReason.INTERRUPTED


def test_other_errors_of_the_callback_reach_the_caller():
    def fail(_):
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        Ledger(Limits(), fail).record("C", open_nodes=0)


def test_threads_other_than_the_main_one_leave_signals_alone():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def inside():
        with Ledger(Limits()).interruptible():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]


def test_seconds_left_respects_the_outer_solve():
    outer = Ledger(Limits(time_limit=100.0))
    inner = Ledger(Limits(time_limit=1000.0), parent=outer)
    assert Ledger(Limits()).seconds_left is None
    assert 0.0 < inner.seconds_left <= 100.0
    assert Ledger(Limits(), parent=outer).seconds_left <= 100.0
