"""A recorder that is killed and started again keeps the same history as one that never was."""

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.dashboard.histories import audited, check_times, told_of
from support.operator.job_life import Audit, Life
from synergy_dashboard.recorder.changes import facts_of
from synergy_dashboard.recorder.trimming import trim
from synergy_dashboard.store.bundle import Position
from synergy_dashboard.store.store import Store

Json = dict[str, Any]
KEY = ("team", "job")
UID = "uid-job"
Event = tuple[float, Json]
"""The time of a write and the object after it."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history without content."""
    file = tmp_path_factory.mktemp("template") / "history.db"
    store = Store(f"sqlite:///{file}")
    store.migrate()
    store.close()
    return file


@contextmanager
def copy_of(template: Path) -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(shutil.copy(template, folder))
        store = Store(f"sqlite:///{file}")
        assert store.lead()
        try:
            yield store
        finally:
            store.close()


def life(seed: int, writes: int) -> tuple[list[Event], Audit]:
    job, audit = Life("job", random.Random(seed)), Audit()
    events = []
    for version, status in enumerate(job.statuses(writes), 1):
        events.append((job.now, trim(job.item(version))))
        audit.see(status)
    return events, audit


def tell(store: Store, events: Sequence[Event], *, late_s: float = 0.0, commit: bool = True) -> None:
    """One transaction of the recorder with these events, from what the store remembers."""
    remembered = store.remembered()
    old = remembered.objects.get(KEY)
    bundles, version = [], remembered.version
    for at_s, item in events:
        bundles.append(facts_of(old, item, at_s + late_s))
        old, version = item, item["metadata"]["resourceVersion"]
    if commit and events:
        store.apply(bundles, Position(version=version, objects={KEY: old}))


def history(store: Store) -> Json:
    return {
        "job": store.job(*KEY),
        "runs": store.runs_of(UID),
        "resizes": store.resizes_of(UID),
        "waits": store.waits_of(UID),
        "samples": store.samples_of(UID),
    }


FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
LIVES = st.integers(0, 2**32)
BATCHES = st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=30)
"""How many events a batch has, and whether the recorder is killed before it has written them."""


@FEW
@given(seed=LIVES, writes=st.integers(1, 25), batches=BATCHES)
def test_restarts_leave_no_trace(template: Path, seed: int, writes: int, batches: list[tuple[int, bool]]) -> None:
    events, audit = life(seed, writes)
    with copy_of(template) as alone, copy_of(template) as killed:
        tell(alone, events)
        done = 0
        for size, dies in batches:
            tell(killed, events[done : done + size], commit=not dies)
            done += 0 if dies else size
        tell(killed, events[done:])
        assert history(killed) == history(alone)
        assert told_of(alone, UID) == audited(audit)
        check_times(alone, UID)


@FEW
@given(seed=LIVES, writes=st.integers(1, 25))
def test_a_change_that_is_written_twice_counts_once(template: Path, seed: int, writes: int) -> None:
    events, audit = life(seed, writes)
    with copy_of(template) as store:
        old = None
        for at_s, item in events:
            for late_s in (0.0, 0.001):
                store.apply([facts_of(old, item, at_s + late_s)])
            old = item
        assert told_of(store, UID) == audited(audit)
        check_times(store, UID)


@FEW
@given(seed=LIVES, writes=st.integers(1, 25), kept=st.lists(st.booleans(), min_size=30, max_size=30))
def test_after_gaps_each_run_is_there_once(template: Path, seed: int, writes: int, kept: list[bool]) -> None:
    """The API server had forgotten what happened meanwhile: only some of the states are seen."""
    events, audit = life(seed, writes)
    seen = [event for event, keep in zip(events, kept, strict=False) if keep] + events[-1:]
    with copy_of(template) as store:
        for event in seen:
            tell(store, [event])
        told = store.runs_of(UID)
        assert [run.run for run in told] == sorted(audit.runs)
        check_times(store, UID)
        for run in told:
            truth = audit.runs[run.run]
            assert (run.ended_s is not None) == ("outcome" in truth), run
            if run.outcome not in ("", "Unknown"):
                assert run.outcome == truth["outcome"]
            if run.seen:
                assert (run.gpu_type, run.purpose) == (truth["gpu_type"], truth["purpose"]), asdict(run)
            else:
                assert run.granted_s <= (run.ended_s or 0.0)
