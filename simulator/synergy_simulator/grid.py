"""Several simulations on all cores."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import wait

from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.own_policies import known_policy
from synergy_simulator.report.summary import Summary, summarize
from synergy_simulator.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Case:
    """A simulation to be made."""

    label: str
    workload: Workload
    options: Options


def label_of(options: Options) -> str:
    """The name of a run that has nothing else to distinguish it."""
    config = options.plan
    sharing = "" if config.colocation == "none" else f", {config.colocation}"
    return f"{config.policy} on {config.mechanism}{sharing}"


def run_one(case: Case) -> Summary:
    """Simulate a case, in whichever process."""
    known_policy(case.options.plan.policy)
    return summarize(case.label, simulate(case.workload, case.options))


def run_all(
    cases: Sequence[Case],
    *,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda _done: None,
    run: Callable[[Case], Summary] = run_one,
) -> list[Summary]:
    """Simulate each case; the answers are in their order. `processes` at a time, by default one per core.

    `run` is what is done with each; it has to be known to other processes by name. What it raises ends all at once, as
    an interruption does.
    """
    if len(cases) <= 1 or processes == 1:
        answers = []
        for case in cases:
            answers.append(run(case))
            progress(len(answers))
        return answers
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        futures = {pool.submit(run, case): index for index, case in enumerate(cases)}
        found: dict[int, Summary] = {}
        for done in as_completed(futures):
            found[futures[done]] = done.result()
            progress(len(found))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()
    return [found[index] for index in range(len(cases))]


def _begin() -> None:
    """Of a process: the first one decides when it ends, by a word or by ending itself, however that comes about."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        wait([first.sentinel])
        os._exit(1)
