"""How much of the history one answer reads: that of the user's namespaces, and a bounded number of facts."""

import asyncio
import csv
import io
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.dashboard.server import dashboard
from support.extender.cluster import NOW
from synergy_dashboard.api.past import amounts, export
from synergy_dashboard.api.past.decisions import decisions
from synergy_dashboard.api.past.overheads import overheads
from synergy_dashboard.api.past.routes import TABS
from synergy_dashboard.api.rounds_page import rounds_page
from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Share, WaitFact
from synergy_dashboard.live.scope import EVERYTHING, Scope
from synergy_dashboard.store.bundle import Facts, WaitNow
from synergy_dashboard.store.store import Store

DAY = 86400.0
ROUND = 300.0
OF_B = 500


def job(uid: str, namespace: str = "team", **more: Any) -> JobFact:
    known = {"tenant": "t", "created_s": NOW - 10 * DAY, "gpus": 2, "gpu_types": (), "steps": 5, "weight": 1.0}
    return JobFact(uid=uid, namespace=namespace, name=uid, **{**known, **more})


def run(uid: str, number: int, begin: float, end: float | None = None, **more: Any) -> RunFact:
    share = Share(node="n1", gpus=2, cpu_millis=6000, memory_bytes=1)
    known = {"purpose": "Train", "gpu_type": "V100", "gpus": 2, "shares": (share,)}
    return RunFact(uid=uid, run=number, granted_s=begin, ended_s=end, **{**known, **more})


def resize(uid: str, at_s: float) -> ResizeFact:
    return ResizeFact(
        uid=uid, run=1, at_s=at_s, shares=(Share(node="n1", gpus=2, cpu_millis=int(at_s), memory_bytes=1),)
    )


class CountingStore(Store):
    """Counts questions, and the facts in their answers."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = self.read = 0

    def _counted(self, found: Sequence[Any]) -> Any:
        self.asked += 1
        self.read += len(found)
        return found

    def runs(self, *asked: Any) -> Sequence[tuple[JobFact, RunFact]]:
        return self._counted(super().runs(*asked))

    def resizes(self, *asked: Any) -> Sequence[tuple[JobFact, ResizeFact]]:
        return self._counted(super().resizes(*asked))

    def waits(self, *asked: Any) -> Sequence[tuple[JobFact, WaitFact]]:
        return self._counted(super().waits(*asked))

    def jobs(self, *asked: Any) -> Sequence[JobFact]:
        return self._counted(super().jobs(*asked))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    """In ten days the job of namespace b was resized often. That of namespace a has one run, of this round."""
    opened = CountingStore(f"sqlite:///{tmp_path / 'history.db'}")
    opened.migrate()
    assert opened.lead()
    runs = (run("b", 1, NOW - 10 * DAY), run("a", 1, NOW - 50))
    resizes = tuple(resize("b", NOW - 10 * DAY * (place + 1) / OF_B) for place in range(OF_B))
    waits = (WaitNow(uid="b", at_s=NOW - 10 * DAY, reason="NoFreeGPU"),)
    opened.apply([Facts(jobs=(job("a", "a"), job("b", "b")), runs=runs, resizes=resizes, waits=waits)])
    yield opened
    opened.close()


def test_decisions_read_only_the_namespaces_of_the_user(store: CountingStore) -> None:
    (found,) = decisions(store, Scope(frozenset({"a"})), now=NOW, rounds=10, round_s=ROUND)
    assert [one.job for one in found.decided] == ["a/a"]
    assert store.read == 1
    assert store.asked == 3, "the history of namespace a begins in the first stretch"
    every = decisions(store, Scope(frozenset({"b"})), now=NOW, rounds=1000, round_s=ROUND)
    assert sum(one.what == "resized" for found in every for one in found.decided) == OF_B


def test_rounds_read_only_the_namespaces_of_the_user(store: CountingStore) -> None:
    asked = {"now": NOW, "until_s": NOW, "rounds": 2000, "round_s": ROUND}
    page = rounds_page(store, {"a"}, **asked)
    assert [one.came for one in page.rounds if one.came] == [["a/a"]]
    assert (store.read, sum(len(one.resized) for one in page.rounds)) == (1, 0)
    assert sum(len(one.resized) for one in rounds_page(store, {"b"}, **asked).rounds) > 30


def test_an_export_reads_resized_jobs_not_their_resizes(store: CountingStore) -> None:
    past = export._past(store, 0.0, NOW, {"b"})
    assert ([one.uid for one in past.jobs()], past.resized) == (["b"], {"b"})
    assert [one.uid for one in past.runs] == ["b", "a"], "runs of others say when GPUs were free"
    assert store.read == 1 + 1 + 2


@pytest.mark.parametrize("kind", ["runs", "resizes", "waits"])
async def test_of_more_than_an_answer_reads_the_last_rounds_are_told_whole(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amounts, "MOST_FACTS", 10)
    async with dashboard() as world:
        last = NOW // ROUND * ROUND
        moments = [last - ROUND * (place // 4) + place % 4 for place in range(400)]  # four in each round
        world.history.all_jobs = [job("a")]
        open_run = run("a", 1, NOW - 10 * DAY)
        world.history.all_runs = [open_run]
        if kind == "runs":
            world.history.all_runs = [run("a", place, at_s - 0.5, at_s) for place, at_s in enumerate(moments)]
        elif kind == "resizes":
            world.history.all_resizes = [resize("a", at_s) for at_s in moments]
        else:
            world.history.all_waits = [
                WaitFact(uid="a", since_s=at_s, until_s=None, reason="R", message="", position=None) for at_s in moments
            ]
        found = decisions(world.history, EVERYTHING, now=NOW, rounds=50, round_s=ROUND)
        assert [one.starts_s for one in found] == [last, last - ROUND], "of the third not all was read"
        whats = [sorted(one.what for one in found.decided) for found in found]
        assert all(told.count({"runs": "ended", "resizes": "resized", "waits": "waits"}[kind]) == 4 for told in whats)
        if kind != "waits":
            page = await world.get("rounds?rounds=50")
            assert (page["since_s"], page["until_s"]) == (last - ROUND, last + ROUND)
            assert [one["start_s"] for one in page["rounds"]] == [last, last - ROUND]
            left = [len(one["left"]) for one in page["rounds"]]
            assert left == ([4, 4] if kind == "runs" else [0, 0])


async def test_an_export_says_that_there_were_too_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amounts, "MOST_FACTS", 10)
    async with dashboard() as world:
        speed = {"steps_per_s": 2.0, "started_s": None}
        world.history.all_jobs = [job(f"j{place}", created_s=NOW - 999 + place) for place in range(20)]
        world.history.all_runs = [
            run(f"j{place}", 1, NOW - 999 + place, NOW - 990 + place, **speed) for place in range(20)
        ]
        async with world.http() as http:
            answer = await http.get("/api/v1/export?since_s=0")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as content:
        notes = content.read("notes.txt").decode()
        rows = list(csv.DictReader(io.StringIO(content.read("trace.csv").decode())))
    assert "what starts cost is that of the newest 0 jobs: there were more than 10 runs since the first" in notes
    assert len(rows) == 10


async def test_the_event_loop_runs_while_an_export_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ticked, ticks = asyncio.get_running_loop(), threading.Event(), [0]

    def tick() -> None:
        ticks[0] += 1
        if ticks[0] == 5:
            ticked.set()
        else:
            loop.call_soon(tick)

    def slow(*given: Any) -> tuple[float, float]:
        loop.call_soon_threadsafe(tick)
        assert ticked.wait(5), "the event loop waits for the overheads"
        return overheads(*given)

    monkeypatch.setattr(export, "overheads", slow)
    async with dashboard() as world:
        world.history.all_jobs = [job("a")]
        world.history.all_runs = [run("a", 1, NOW - 900, NOW - 700, steps_per_s=2.0)]
        async with world.http() as http:
            assert (await http.get("/api/v1/export?since_s=0")).status_code == 200
    assert ticks == [5]


def test_overheads_take_work_in_proportion_to_the_runs() -> None:
    def steps(number: int) -> int:
        """Lines of Python that are run for so many runs, one after the other on one node."""
        told = [(job(f"j{place}"), [run(f"j{place}", 1, 10.0 * place, 10.0 * place + 9)]) for place in range(number)]
        counted = [0]

        def trace(frame: Any, event: str, arg: Any) -> Any:
            counted[0] += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            overheads(told, (), {"n1": 2})
        finally:
            sys.settrace(before)
        return counted[0]

    assert steps(400) < 5 * steps(100)


async def test_rounds_are_drawn_one_page_at_a_time_for_few_tabs_of_a_user() -> None:
    async with dashboard() as world:
        world.live.past_namespaces |= {"team"}
        world.history.all_jobs = [job("a")]
        runs, go_on, now, most = world.history.runs, threading.Event(), [0], [0]

        def slow(*given: Any) -> Any:
            now[0] += 1
            most[0] = max(most[0], now[0])
            go_on.wait(20)
            now[0] -= 1
            return runs(*given)

        world.history.runs = slow  # type: ignore[method-assign]
        async with world.http() as http:
            asked = [asyncio.create_task(http.get("/api/v1/rounds")) for _ in range(TABS + 1)]
            (refused,), tabs = await asyncio.wait(asked, timeout=20, return_when=asyncio.FIRST_COMPLETED)
            assert (refused.result().status_code, len(tabs)) == (429, TABS)
            assert "being made for you" in refused.result().json()["error"]
            other = asyncio.create_task(world.get("rounds", user="ann"))
            await asyncio.sleep(0.05)  # time in which it must not begin
            go_on.set()
            assert all(page.json()["rounds"] for page in await asyncio.gather(*tabs))
            assert (await other)["rounds"]
        assert most == [1]
        assert (await world.get("rounds"))["rounds"]
