"""The planner in a process of its own: the side that plans.

It reads a length and a Question in MessagePack from stdin, answers the same way on stdout, and ends when stdin does.
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import BinaryIO

import msgspec

from synergy_core.cache import Memory
from synergy_core.collector import collector_paused
from synergy_core.colocation.predictors.model_format import SharingModel
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.partitions.by_parts import plan_by_parts
from synergy_core.plan import plan
from synergy_core.policies.allocation.budget import Budget
from synergy_extender.colocation.models import FOLDER_VARIABLE, predictors, read_models
from synergy_extender.planner.forked import Forked
from synergy_extender.planner.overtime import Overtime
from synergy_extender.planner.question import (
    LENGTH,
    PROCESSES_VARIABLE,
    Answer,
    Asked,
    Planned,
    Question,
    answer_of,
    asked_after,
)
from synergy_extender.snapshot.times import move_on

NICENESS = 10
"""Where cores are scarce a plan waits for the filter, which runs inside the kube-scheduler's serial loop."""
_QUESTIONS = msgspec.msgpack.Decoder(Question)


class Planner:
    """Answers questions; between them it keeps the last snapshot, and what `plan()` may use again."""

    def __init__(self, models: Mapping[str, SharingModel] | None = None, processes: int = 1) -> None:
        """`models` are the fitted predictors of what sharing a GPU costs, by GPU type. With more than one of
        `processes`, a cluster that has parts is planned in so many at most."""
        self._models = models or {}
        self._forked = Forked(processes) if processes > 1 else None
        self._asked: Asked | None = None
        self._memory = Memory()
        self._memory.solutions.solver = Overtime()

    def answer(self, request: bytes) -> Answer | str:
        """The plan; an error of the planner as its text."""
        try:
            question = _QUESTIONS.decode(request)
            snapshot = self._next(question)
            started = time.perf_counter()
            until = started + question.solve_s
            self._memory.solutions.budget = Budget(lambda: until - time.perf_counter())
            with collector_paused():
                answer = self._plan(snapshot, self._with_models(question.config))
            return answer_of(Planned(answer, time.perf_counter() - started), snapshot.jobs)
        except Exception as error:  # noqa: BLE001 - a planner's error must not end the process, it goes to the log
            return f"{type(error).__name__}: {error}"

    def _next(self, question: Question) -> core.Snapshot:
        """The snapshot that the question is about."""
        self._asked = asked_after(self._asked, question)
        snapshot = self._asked.base
        move_on(snapshot.jobs, self._asked.clocks, snapshot.now)
        return snapshot

    def _plan(self, snapshot: core.Snapshot, config: PlanConfig) -> Plan:
        if self._forked is None:
            return plan(snapshot, config, self._memory)
        return plan_by_parts(snapshot, config, self._forked, self._memory)

    def _with_models(self, config: PlanConfig) -> PlanConfig:
        if not self._models or config.colocation == "none":
            return config
        return replace(config, predictors=predictors(self._models, config.colocation))


def serve(requests: BinaryIO, answers: BinaryIO, planner: Planner) -> None:
    """Answer requests until there are no more."""
    while len(header := requests.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(header)
        answer = msgspec.msgpack.encode(planner.answer(requests.read(length)))
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    os.nice(NICENESS)
    processes = int(os.environ.get(PROCESSES_VARIABLE, "1"))
    serve(sys.stdin.buffer, sys.stdout.buffer, Planner(read_models(os.environ.get(FOLDER_VARIABLE, "")), processes))
