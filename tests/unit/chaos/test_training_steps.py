"""The count of steps sees what is lost, what is done twice, and who is sent away before its lease ends."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from chaos.observer.book import Book
from chaos.played.gang import Around, Gang, Training
from chaos.played.kubelet import Kubelet
from chaos.report import Report
from support.api_server.told_client import ToldClient
from support.waiting import eventually
from synergy_job.departure import Departure


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def training(book: Book) -> Training:
    return Training("j", 100, library=False, book=book)


def trains(training: Training, run: int, to: int, *, saved: bool) -> None:
    """One run from its start to its end."""
    training.resume(run)
    training.advance(run, to)
    if saved:
        training.save(run)
    del training.live[run]


def test_runs_that_save_before_they_leave_lose_nothing(book: Book, training: Training) -> None:
    trains(training, 1, 30, saved=True)
    trains(training, 2, 60, saved=True)
    assert training.resume(3) == 60
    assert (training.lost, training.doubled, book.broken) == (0, 0, [])


def test_steps_that_a_run_could_not_save_are_lost(book: Book, training: Training) -> None:
    trains(training, 1, 30, saved=True)
    trains(training, 2, 37, saved=False)
    assert training.resume(3) == 30
    assert training.live == {3: 30}
    assert training.lost == 7
    assert "j run 3 repeats steps 30 to 37: run 2 was ended without a chance to save them" in book.broken[0]


def test_steps_that_a_fault_takes_are_not_lost_by_us(book: Book, training: Training) -> None:
    book.hurt(("j", 2), "node n1 failed")
    trains(training, 1, 30, saved=True)
    trains(training, 2, 37, saved=False)
    trains(training, 3, 33, saved=True)
    assert training.resume(4) == 33
    assert (training.lost, book.broken) == (0, [])


def test_a_run_that_merely_ended_early_has_no_excuse_for_lost_steps(book: Book, training: Training) -> None:
    book.ended(("j", 1), "a pod was deleted")
    trains(training, 1, 7, saved=False)
    training.resume(2)
    assert training.lost == 7


def test_steps_of_two_runs_at_once_are_doubled(book: Book, training: Training) -> None:
    training.resume(1)
    training.advance(1, 20)
    training.save(1)
    training.resume(2)
    assert "j run 2 begins to train while run 1 trains" in book.broken[0]
    training.advance(1, 25)
    training.advance(2, 24)
    training.advance(2, 26)
    assert training.doubled == 6
    del training.live[1]
    training.advance(2, 40)
    assert training.doubled == 6


class Containers(Kubelet):
    """Remembers how they ended; writes nothing."""

    def __init__(self) -> None:
        super().__init__(ToldClient(), time.time)
        self.codes: list[int] = []
        self.fail = False

    async def token(self, pod: Any) -> str:
        return "a token"

    async def end(self, pod: Any, code: int, *, message: str = "", reason: str = "") -> None:
        if self.fail:
            raise ValueError("no such container")
        self.codes.append(code)


class AtOnce(random.Random):
    """Containers that are lost end without a wait."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


class Told:
    """A reporter whose first answer is that the worker has to leave at once."""

    def __init__(
        self, client: object, departure: Departure, progress: Callable[[bool], object], *, fence: object
    ) -> None:
        self._departure = departure

    def start(self) -> None:
        self._departure.request(0.0)

    def stop(self) -> None:
        pass


@pytest.fixture
def containers() -> Containers:
    return Containers()


@pytest_asyncio.fixture
async def around(book: Book, containers: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Around:
    monkeypatch.setattr("chaos.played.gang._TICK_SECONDS", 0.001)
    monkeypatch.setattr("chaos.played.gang.RATE", 1000.0)
    monkeypatch.setattr("chaos.played.gang.CHECKPOINT_STEPS", 10**9)
    monkeypatch.setattr("chaos.played.gang.Reporter", Told)
    return Around(book, containers, tmp_path, AtOnce())


def gang_of(training: Training, run: int, around: Around) -> Gang:
    gang = Gang(("j", run), 1, training, around)
    access = {"SYNERGY_EXTENDER_URL": "https://extender", "SYNERGY_CA_CERT": "", "SYNERGY_FENCE_SECONDS": "40"}
    container = {"env": [{"name": name, "value": value} for name, value in access.items()]}
    spec = {"nodeName": "n1", "containers": [container]}
    gang.pods[0] = {"metadata": {"uid": f"u{run}"}, "spec": spec, "status": {"phase": "Running"}}
    return gang


async def until(true: Callable[[], bool]) -> None:
    async def probe() -> bool:
        return true()

    await eventually(probe, seconds=10.0, what="the gang", every=0.001)


async def lives(gang: Gang, training: Training, containers: Containers, end: Callable[[], None]) -> None:
    """It trains some steps, then `end` comes over it."""
    count = len(containers.codes)
    start = training.checkpoint
    gang.begin()
    await until(lambda: training.live.get(gang.run[1], 0) > start)
    end()
    await until(lambda: len(containers.codes) > count)
    assert training.live == {}


async def test_a_gang_with_a_signal_saves_and_one_without_does_not(
    book: Book, around: Around, containers: Containers
) -> None:
    training = Training("j", 10**9, library=False, book=book)
    first, second = gang_of(training, 1, around), gang_of(training, 2, around)
    await lives(first, training, containers, first.terminate)
    assert training.checkpoint == training.reached > 0
    await lives(second, training, containers, lambda: second.loses("worker 0 is gone"))
    assert training.checkpoint < training.reached
    assert (containers.codes, training.lost, book.broken) == ([143, 1], 0, [])
    third = gang_of(training, 3, around)
    reached = training.reached - training.checkpoint
    await lives(third, training, containers, third.terminate)
    assert training.lost == reached
    assert len(book.broken) == 1


async def test_a_gang_to_its_end_loses_nothing(book: Book, around: Around, containers: Containers) -> None:
    training = Training("j", 20, library=False, book=book)
    gang_of(training, 1, around).begin()
    await until(lambda: containers.codes == [0])
    assert (training.checkpoint, training.lost, training.doubled, book.broken) == (20, 0, 0, [])


@pytest.mark.parametrize(
    ("lease", "ended", "broken"), [(100.0, "", True), (0.5, "", False), (None, "", False), (100.0, "suspended", False)]
)
async def test_nobody_is_told_to_leave_before_its_lease_ends(
    around: Around, containers: Containers, lease: float | None, ended: str, broken: bool
) -> None:
    book = around.book
    training = Training("j", 10**9, library=True, book=book)
    gang = gang_of(training, 1, around)
    if lease is not None:
        book.leases[gang.run] = time.time() + lease
    if ended:
        book.ended(gang.run, ended)
    gang.begin()
    await until(lambda: containers.codes == [75])
    assert ("j run 1 was told to leave" in " ".join(book.broken)) == broken
    assert bool(book.broken) == broken


async def test_an_error_of_the_harness_is_no_silence(
    book: Book, around: Around, containers: Containers, training: Training
) -> None:
    gang = gang_of(training, 1, around)
    containers.fail = True
    gang.begin()
    gang.terminate()
    await until(lambda: bool(book.broken))
    assert "the harness failed: ValueError" in book.broken[0]


@pytest.mark.parametrize(
    "bad", [{"steps_lost": 1}, {"steps_doubled": 1}, {"promises_broken": ["n1 over-allocated"]}, {"finished": 1}, {}]
)
def test_a_report_with_anything_broken_is_not_good(bad: dict[str, Any]) -> None:
    clean: dict[str, Any] = {"steps_lost": 0, "steps_doubled": 0, "promises_broken": [], "finished": 2}
    report = Report(seed=1, faults={}, jobs=2, seconds=1.0, notes={}, **(clean | bad))
    assert report.good == (not bad)
