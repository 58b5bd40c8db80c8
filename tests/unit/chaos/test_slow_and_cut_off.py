"""Slow checkpoints, nodes that are cut off, and what may count as a failure: each broken promise is seen."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from chaos.observer.book import BY_ITSELF, SLOW_SAVE, Book
from chaos.observer.uptime import Uptime
from chaos.observer.watchman import Watchman
from chaos.played.gang import Around, Gang, Training
from chaos.played.hearing import Answers, ReachedClient
from chaos.played.kubelet import Kubelet
from chaos.played.player import Player
from support.api_server.told_client import ToldClient
from synergy_api import names
from synergy_job.checkpoints.fence import Fence
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import LeaseAnswer, LeaseClient, LeaseError, Report
from synergy_kube.resources import PODS, TRAINING_JOBS

RUN = ("j", 1)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def training(book: Book) -> Training:
    made = Training("j", 1000, library=True, book=book)
    made.resume(1)
    made.advance(1, 50)
    return made


@pytest.fixture
def gang(book: Book, training: Training, tmp_path: Path) -> Gang:
    return Gang(RUN, 1, training, Around(book, Kubelet(ToldClient(), time.time), tmp_path, Random(1)))


def test_only_the_next_saves_are_slow(training: Training) -> None:
    training.slows(30.0)
    assert [training.begin_save() for _ in range(3)] == [30.0, 30.0, 0.0]


@pytest.mark.parametrize("over", [False, True])
def test_no_older_run_saves_once_a_newer_one_has_begun(book: Book, training: Training, *, over: bool) -> None:
    training.resume(2)
    book.broken.clear()  # both at once is seen too
    training.advance(2, 70)
    training.save(2)
    if over:
        del training.live[2]
    training.save(1)
    assert "run 1 writes a checkpoint after run 2 has begun to train" in book.broken[0]
    assert training.checkpoint == 70, "a later run reads the later run's checkpoint"


async def test_a_fence_that_is_shut_lets_no_checkpoint_through(gang: Gang, training: Training) -> None:
    gang._fence = Fence(0.0)
    assert await gang._save(1, "yielded") == "yielded"
    assert training.checkpoint == 0
    gang._fence = Fence(60.0)
    await gang._save(1, "yielded")
    assert training.checkpoint == 50


@pytest.mark.parametrize(
    ("times", "fault", "hurt"),  # what the save takes, and what the status says of the one before
    [
        ((20.0, 0.0), "", ""),  # everybody has so long: its steps count as lost
        ((60.0, 0.0), "", SLOW_SAVE),
        ((60.0, 61.0), "", ""),
        ((20.0, 0.0), "a pod was deleted", "a pod was deleted"),
    ],
)
async def test_who_may_be_killed_in_the_midst_of_a_save(
    gang: Gang, training: Training, times: tuple[float, float], fault: str, hurt: str
) -> None:
    book = gang._book
    training.slows(times[0])
    book.saves["j"] = times[1]
    if fault:
        book.ended(RUN, fault)
    saved = asyncio.create_task(gang._save(1, "yielded"))
    await asyncio.sleep(0)
    assert gang.saving
    gang.cut_short(0)
    assert await saved == "broken"
    assert (training.checkpoint, book.why_hurt(RUN)) == (0, hurt)
    del training.live[1]
    training.resume(2)
    assert bool(book.broken) == (not hurt)


@pytest.mark.parametrize(
    ("told", "heard", "excused"),  # seconds from the end of the lease: told to leave, last told to train on
    [(9.0, -2.0, True), (2.0, -2.0, False), (-1.0, -8.0, False), (None, -2.0, True), (9.0, 1.0, False)],
)
async def test_only_who_heard_nobody_after_its_leases_end_may_save_late(
    gang: Gang, training: Training, told: float | None, heard: float, *, excused: bool
) -> None:
    end = time.time() - 30.0
    gang._book.leases[RUN] = end
    gang._departure.told_at = None if told is None else end + told
    gang._answers.trains_on_at = end + heard
    training.slows(20.0)
    saved = asyncio.create_task(gang._save(1, "yielded"))
    await asyncio.sleep(0)
    gang.cut_short(0)
    await saved
    assert bool(gang._book.why_hurt(RUN)) == excused


async def test_a_checkpoint_that_is_not_cut_short_tells_how_long_it_took(gang: Gang, training: Training) -> None:
    training.slows(0.05)
    await gang._save(1, "")
    assert training.checkpoint == 50
    assert gang._progress()(False).save_seconds == pytest.approx(0.05, abs=0.5)


@pytest.mark.parametrize(("told", "saves", "broken"), [(40.0, 0.0, True), (40.0, 60.0, False), (40.0, 10.0, True)])
def test_who_saves_for_long_may_be_asked_that_much_earlier(
    book: Book, gang: Gang, told: float, saves: float, *, broken: bool
) -> None:
    book.leases[RUN] = time.time() + 90.0
    book.saves["j"] = saves
    gang._departure.request(told)
    gang._check_lease()
    assert bool(book.broken) == broken


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_neither_report_nor_answer_gets_through_a_cut(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    sent: list[Report] = []
    reachable = [when == "meanwhile"]

    def send(_: LeaseClient, report: Report) -> LeaseAnswer:
        sent.append(report)
        reachable[0] = False
        return LeaseAnswer(leave=False, yield_in_s=0.0, next_report_s=1.0)

    monkeypatch.setattr(LeaseClient, "send", send)
    client = ReachedClient(LeaseAccess("https://extender", "token", ""), lambda: reachable[0], Answers())
    with pytest.raises(LeaseError):
        client.send(Report(1, 0, 1.0))
    assert len(sent) == (when == "meanwhile")


def test_a_node_that_is_cut_off_has_not_failed(book: Book) -> None:
    book.cuts_off("n1")
    assert (book.cut_now("n1"), book.failed_now("n1"), book.failed_lately("n1")) == (True, False, True)
    book.is_back("n1")
    assert (book.cut_now("n1"), book.failed_now("n1"), book.failed_lately("n1")) == (False, False, True)


def pod(*, deleting: bool = False) -> dict[str, Any]:
    labels = {names.LABEL_JOB: "j", names.LABEL_RUN: "1", names.LABEL_RANK: "0", names.LABEL_ROLE: names.ROLE_WORKER}
    metadata = {"name": "j-1-0", "namespace": "team", "uid": "u", "labels": labels}
    return {
        "metadata": metadata | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
        "spec": {"containers": [{"name": "train", "env": [{"name": "WORLD_SIZE", "value": "1"}]}], "nodeName": "n1"},
        "status": {"phase": "Running"},
    }


async def test_a_worker_on_a_cut_off_node_hears_of_its_deletion_when_the_node_is_back(tmp_path: Path) -> None:
    client, book = ToldClient(), Book()
    async with Player(client, "team", book, tmp_path / "tokens", seed=1) as player:
        player.knows("j", 10**6, library=True)
        gang = player._gang(pod())
        gang._training.resume(1)
        await client.tell(PODS, "ADDED", pod())
        held = player.node_is_cut_off("n1")
        await client.tell(PODS, "MODIFIED", pod(deleting=True))
        await client.tell(PODS, "DELETED", pod(deleting=True))
        assert (gang.told, book.why_hurt(RUN), player.running()) == (False, "", [])
        player.node_rejoins("n1", held)
        assert gang.told


@pytest_asyncio.fixture
async def observed(book: Book) -> AsyncIterator[ToldClient]:
    client = ToldClient()
    async with Watchman(client, "team", book, Uptime(lambda: True)):
        yield client


@pytest.mark.parametrize(
    ("why", "broken"),
    [("", True), (f"{BY_ITSELF}yielded", True), (SLOW_SAVE, True), ("a worker crashed", False)],
)
async def test_a_preemption_never_counts_as_a_failure(
    book: Book, observed: ToldClient, why: str, *, broken: bool
) -> None:
    if why:
        book.ended(RUN, why)
    for failures in (0, 1):
        last = {"run": 1, "outcome": "Failed", "saveSeconds": 33.0}
        service = {"run": 1, "endedRun": failures, "failures": failures, "last": last}
        job = {"metadata": {"name": "j", "namespace": "team"}, "spec": {"gpus": 1, "steps": 9}}
        await observed.tell(TRAINING_JOBS, "MODIFIED", job | {"status": {"phase": "Queued", "service": service}})
    assert ("counts as a failure" in " ".join(book.broken)) == broken
    assert book.saves == {"j": 33.0}
