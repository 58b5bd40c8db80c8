"""Processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import wait

from synergy_simulator.runners.code import SameCode, code
from synergy_simulator.runners.runner import Found, Item


@dataclass(frozen=True, slots=True)
class Processes:
    """So many simulations at a time; None: one for each core."""

    count: int | None = None

    def run(
        self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
    ) -> list[Found]:
        """See `Runner`. One item, or one at a time, needs no further process."""
        if len(items) <= 1 or self.count == 1:
            answers = []
            for index, item in enumerate(items):
                answers.append(function(item))
                done(index, answers[-1])
            return answers
        return self._on_others(function, items, done)

    def _on_others(
        self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
    ) -> list[Found]:
        others = set(multiprocessing.active_children())
        checked = SameCode(function, code())
        pool = ProcessPoolExecutor(self.count, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
        found: dict[int, Found] = {}
        try:
            futures = {pool.submit(checked, item): index for index, item in enumerate(items)}
            for one in as_completed(futures):
                found[futures[one]] = one.result()
                done(futures[one], found[futures[one]])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise
        pool.shutdown()
        return [found[index] for index in range(len(items))]


def _begin() -> None:
    """Of a process: the first one decides when it ends, by a word or by ending itself, however that comes about."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        wait([first.sentinel])
        os._exit(1)
