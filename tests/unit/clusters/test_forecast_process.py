"""The process of a round of forecasts: it is ended if it is too long at one of them, and what it told before counts."""

import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from synergy_clusters.choice import Prospect
from synergy_clusters.forecast import process
from synergy_clusters.forecast.child import LENGTH, Message
from synergy_clusters.forecast.look import NoForecastError
from synergy_clusters.forecast.process import Answers, placed
from synergy_clusters.forecast.prospects import Asked, Placed, Question, place
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Node, Profile, Snapshot

ONE = Profile(cpu_millis=(1000,), memory_bytes=(1 << 30,), steps_per_s=((1.0,),))
IN_EAST = Placed(Prospect(600.0, 700.0, "east"))


def question(*names: str) -> Question:
    node = Node(name="n", gpu_type="V100", gpus=1, cpu_millis=4000, memory_bytes=16 << 30)
    state = Snapshot(nodes=(node,), jobs=(), now=600.0, config={"policy": "fifo"})
    jobs = [
        Asked(name, {"east": Job(name=name, gpus=1, steps_total=100, arrival_s=600.0, profiles={"V100": ONE})})
        for name in names
    ]
    return Question({"east": (state, PlanConfig(policy="fifo", explain=False))}, jobs, 600.0)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Played":
    return Played(tmp_path, monkeypatch)


class Played:
    """A process in place of the true one, which tells some messages."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        patch.setenv("PYTHONPATH", os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", ""))))
        patch.setattr(process, "_CHILD", "played_forecast")
        patch.setattr(process, "MOST_SECONDS", 2.0)

    @property
    def starts(self) -> int:
        """How often it was started."""
        return len((self._folder / "starts").read_text())

    def tells(self, *messages: Message, then: str) -> None:
        told = b"".join(LENGTH.pack(len(one)) + one for one in map(pickle.dumps, messages))
        lines = [
            "import os, pathlib, sys, time",
            f"pathlib.Path({str(self._folder / 'pid')!r}).write_text(str(os.getpid()))",
            f"with open({str(self._folder / 'starts')!r}, 'a') as starts: starts.write('x')",
            "sys.stdin.buffer.read()",
            f"sys.stdout.buffer.write({told!r})",
            "sys.stdout.buffer.flush()",
            then,
        ]
        (self._folder / "played_forecast.py").write_text("\n".join(lines))

    @property
    def lives(self) -> bool:
        return Path("/proc", (self._folder / "pid").read_text()).exists()


async def test_the_process_says_what_the_function_says() -> None:
    asked = question("a", "b")
    found = await placed(asked)
    assert found == Answers(dict(place(asked)))
    assert found.placed["b"].best == Prospect(700.0, 800.0, "east")


async def test_no_process_is_started_for_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_CHILD", "no_such_module")
    assert await placed(question()) == Answers({})


async def test_a_process_that_is_too_long_at_a_forecast_is_ended_and_its_answers_count(played: Played) -> None:
    played.tells(("a", "east"), ("a", IN_EAST), ("b", "east"), ("b", "west"), then="time.sleep(600)")
    found = await placed(question("a", "b", "c"))
    unreached = Placed(None, {"west": "a forecast took longer than 2 s"}, reached=False)
    why = "a forecast took longer than 2 s"
    assert found == Answers({"a": IN_EAST, "b": unreached, "c": unreached}, "west", why, ended_by="b")
    assert not played.lives


async def test_a_process_that_dies_is_told_of_the_job_and_the_cluster_that_it_was_at(played: Played) -> None:
    played.tells(("a", "east"), ("a", IN_EAST), ("b", "west"), then="os.kill(os.getpid(), 9)")
    found = await placed(question("a", "b"))
    assert (found.placed["a"], found.ended_at, found.ended_by) == (IN_EAST, "west", "b")
    assert found.placed["b"] == Placed(None, {"west": "the process of a forecast died"}, reached=False)


@pytest.mark.parametrize("then", ["time.sleep(600)", "sys.exit(1)"])
async def test_a_process_that_begins_no_forecast_is_a_failure(played: Played, then: str) -> None:
    played.tells(then=then)
    with pytest.raises(NoForecastError):
        await placed(question("a"))
    assert played.starts == 2, "it may die by chance once"
    assert not played.lives


async def test_a_process_that_cannot_be_started_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the container may have no further process: jobs get their clusters without a forecast then."""
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with pytest.raises(NoForecastError, match=r"does not start: .*/no/such/program"):
        await placed(question("a"))


async def test_a_process_that_dies_before_it_has_told_a_cluster_is_started_again(played: Played) -> None:
    answer = pickle.dumps(("a", IN_EAST))
    second = f"sys.stdout.buffer.write({LENGTH.pack(len(answer)) + answer!r})"
    played.tells(then=f"if pathlib.Path(starts.name).stat().st_size == 2: {second}")
    assert await placed(question("a")) == Answers({"a": IN_EAST})


class Deadly:
    """A cluster at which the process dies while it reads it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


async def test_a_process_that_dies_before_its_first_forecast_is_told_of_the_cluster_that_it_read() -> None:
    asked = question("a")
    large = b"x" * (1 << 22)  # it dies long before all of it is written
    states: Any = {**asked.clusters, "west": Deadly(), "north": large}
    found = await placed(replace(asked, clusters=states))
    unreached = Placed(None, {"west": "the process of a forecast died"}, reached=False)
    assert found == Answers({"a": unreached}, "west", "the process of a forecast died")


async def test_time_is_counted_for_each_forecast_anew(played: Played) -> None:
    slow = "for job in ('a', 'b', 'c'):\n    time.sleep(1.2)\n    sys.stdout.buffer.write(MESSAGE[job])\n"
    answers = {job: pickle.dumps((job, IN_EAST)) for job in ("a", "b", "c")}
    framed = {job: LENGTH.pack(len(one)) + one for job, one in answers.items()}
    played.tells(("", "east"), then=f"MESSAGE = {framed!r}\n{slow}    sys.stdout.buffer.flush()")
    assert await placed(question("a", "b", "c")) == Answers(dict.fromkeys(("a", "b", "c"), IN_EAST))
