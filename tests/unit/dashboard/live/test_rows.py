"""Rows that are kept up to date by change are those that all jobs and nodes give anew."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, job_object, node_object, share
from synergy_api.cluster.pools import node_capacities
from synergy_api.timestamps import format_time
from synergy_dashboard.live.changes import RowChanges, reasons_of, tenants_of
from synergy_dashboard.live.rows import Rows
from synergy_dashboard.live.scope import EVERYTHING, Scope
from synergy_view.queue import queue
from synergy_view.seen import SeenJob, read
from synergy_view.top import top

_NAMES = ("a", "b", "c", "d")
_NAMESPACES = ("team", "other")
_NODES = ("n1", "n2")
_TEAM = Scope(frozenset({"team"}))

_services = st.fixed_dictionaries(
    {},
    optional={
        "attainedGPUSeconds": st.integers(0, 10_000).map(float),
        "runningSince": st.just(format_time(NOW - 60)),
        "receivedSeconds": st.just({"V100": 7.0}),
    },
)
_shares = st.lists(st.sampled_from(_NODES), min_size=1, max_size=2, unique=True).map(
    lambda nodes: allocation(*(share(node, 2) for node in nodes), stepsPerSecond=2.0, proportionalStepsPerSecond=1.0)
)
_statuses = st.one_of(
    st.fixed_dictionaries(
        {
            "phase": st.just("Queued"),
            "queue": st.fixed_dictionaries(
                {"position": st.integers(1, 9), "reason": st.sampled_from(("NoFreeGPU", "LowPriority"))}
            ),
            "service": _services,
        }
    ),
    st.fixed_dictionaries({"phase": st.just("Running"), "allocation": _shares, "service": _services}),
    st.fixed_dictionaries({"phase": st.sampled_from(("Succeeded", "Failed")), "service": _services}),
    st.fixed_dictionaries(
        {"phase": st.just("Yielding"), "allocation": _shares.map(lambda one: {**one, "state": "Released"})}
    ),
)
_jobs = st.builds(
    lambda name, namespace, status, gpus, types, tenant, steps: read(
        job_object(
            name,
            gpus=gpus,
            namespace=namespace,
            uid=f"{namespace}-{name}",
            spec={"gpuTypes": types, "tenant": tenant},
            status={**status, "progress": {"run": 1, "steps": steps}},
        )
    ),
    st.sampled_from(_NAMES),
    st.sampled_from(_NAMESPACES),
    _statuses,
    st.integers(1, 4),
    st.sampled_from(([], ["V100"], ["T4", "V100"])),
    st.sampled_from(("", "vision")),
    st.integers(0, 900),
)
_nodes = st.lists(
    st.builds(
        lambda name, gpus, gpu_type, ready: node_object(name, gpus=gpus, gpu_type=gpu_type, ready=ready),
        st.sampled_from(_NODES),
        st.integers(1, 8),
        st.sampled_from(("V100", "T4")),
        st.booleans(),
    ),
    max_size=2,
    unique_by=lambda node: str(node["metadata"]["name"]),
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _jobs),
        st.tuples(st.just("drop"), st.tuples(st.sampled_from(_NAMESPACES), st.sampled_from(_NAMES))),
        st.tuples(st.just("nodes"), _nodes),
        st.tuples(st.just("take"), st.booleans()),
    ),
    max_size=25,
)


class _Page:
    """What a page knows that hears of all changes and asks for nothing else."""

    def __init__(self) -> None:
        self.known = RowChanges()

    def hear(self, changes: RowChanges) -> None:
        self.known.merge(changes)

    def rows(self, part: str) -> dict[str, Any]:
        return {name: row for name, row in getattr(self.known, part).items() if row is not None}


@given(_steps)
def test_after_any_changes_the_rows_are_those_made_from_scratch(steps: list[tuple[str, Any]]) -> None:
    rows, page, jobs, nodes = Rows(), _Page(), dict[str, SeenJob](), list[dict[str, Any]]()
    for kind, what in steps:
        if kind == "put":
            jobs[what.full_name] = what
            rows.put(what, NOW)
        elif kind == "drop":
            jobs.pop("/".join(what), None)
            rows.drop("/".join(what))
        elif kind == "nodes":
            nodes = what
            rows.set_nodes(node_capacities(nodes, []))
        else:
            page.hear(rows.take(NOW, whole=what))
    page.hear(rows.take(NOW))
    assert not rows.stale
    picture = top(list(jobs.values()), node_capacities(nodes, []), NOW)
    waiting = queue(jobs.values(), NOW)
    assert tuple(rows.types(NOW)) == picture.types
    assert tuple(rows.nodes(EVERYTHING)) == picture.nodes
    assert tuple(rows.running(EVERYTHING)) == picture.jobs
    assert _rounded(rows.tenants(EVERYTHING, NOW)) == _rounded(picture.tenants)
    assert rows.queue(EVERYTHING, NOW) == waiting
    assert rows.reasons(EVERYTHING) == dict(Counter(row.reason for row in waiting))
    assert page.rows("jobs") == {row.job: row for row in picture.jobs}
    assert page.rows("queue") == {f"{row.namespace}/{row.job}": row for row in waiting}
    assert page.rows("nodes") == {row.node: row for row in picture.nodes}
    assert tuple(page.known.types or ()) == picture.types
    assert _rounded(tenants_of(page.known.groups or {}, EVERYTHING)) == _rounded(picture.tenants)
    assert reasons_of(page.known.reasons or {}, EVERYTHING) == rows.reasons(EVERYTHING)
    _sees_only_its_own(rows, page, jobs)


def _sees_only_its_own(rows: Rows, page: _Page, jobs: dict[str, SeenJob]) -> None:
    """The same rows as a cluster would show that has the visible jobs only; nodes and types are those of all."""
    own = [job for job in jobs.values() if job.namespace == "team"]
    picture = top(own, [], NOW)
    assert tuple(rows.running(_TEAM)) == picture.jobs
    assert rows.queue(_TEAM, NOW) == queue(own, NOW)
    assert _rounded(rows.tenants(_TEAM, NOW)) == _rounded(picture.tenants)
    assert all(name.startswith("team/") for row in rows.nodes(_TEAM) for name in row.jobs)
    assert [row.gpus_given for row in rows.nodes(_TEAM)] == [row.gpus_given for row in rows.nodes(EVERYTHING)]
    heard = page.known.seen_by(_TEAM)
    names = {*heard.jobs, *heard.queue}
    assert all(name.startswith("team/") for name in names)
    assert all(name.startswith("team/") for row in heard.nodes.values() if row is not None for name in row.jobs)
    assert rows.tenants_hidden(_TEAM) == len({job.tenant for job in jobs.values()} - {job.tenant for job in own})


def _rounded(tenants: Any) -> list[tuple[Any, ...]]:
    """Hours are summed in another order."""
    return [
        (row.tenant, row.running, row.waiting, row.gpus_given, row.gpus_wanted, round(row.gpu_hours, 6))
        for row in tenants
    ]


def _seen(name: str, **more: Any) -> SeenJob:
    return read(job_object(name, **more))


def test_progress_of_a_job_changes_its_row_and_nothing_else() -> None:
    rows = Rows()
    held = {"phase": "Running", "allocation": allocation(share("n1"))}
    rows.set_nodes(node_capacities([node_object("n1")], []))
    rows.put(_seen("runs", status={**held, "progress": {"run": 1, "steps": 1}}), NOW)
    rows.take(NOW)
    rows.put(_seen("runs", status={**held, "progress": {"run": 1, "steps": 2}}), NOW + 5)
    changes = rows.take(NOW + 5)
    assert {name: row and row.steps_done for name, row in changes.jobs.items()} == {"team/runs": 2}
    assert (changes.queue, changes.nodes, changes.types, changes.groups, changes.reasons) == ({}, {}, None, None, None)


def test_a_job_that_starts_leaves_the_queue_and_enters_the_jobs() -> None:
    rows = Rows()
    rows.set_nodes(node_capacities([node_object("n1")], []))
    rows.put(_seen("j", status={"queue": {"position": 1, "reason": "NoFreeGPU"}}), NOW)
    rows.take(NOW)
    rows.put(_seen("j", status={"phase": "Running", "allocation": allocation(share("n1"))}), NOW)
    changes = rows.take(NOW)
    assert changes.queue == {"team/j": None}
    assert changes.jobs["team/j"] is not None
    assert changes.nodes["n1"] is not None
    assert changes.nodes["n1"].jobs == ("team/j",)
    assert changes.reasons == {}


def test_the_time_that_a_job_waits_is_no_change_but_is_told_by_the_queue() -> None:
    rows = Rows()
    waits = {"queue": {"position": 1, "reason": "NoFreeGPU"}}
    rows.put(_seen("j", status=waits), NOW)
    rows.take(NOW)
    rows.put(_seen("j", status=waits), NOW + 30)
    assert not rows.take(NOW + 30).queue
    assert rows.queue(EVERYTHING, NOW + 40)[0].waiting_s == 140.0


def test_parts_about_all_jobs_wait_for_a_call_that_asks_for_them() -> None:
    rows = Rows()
    rows.put(_seen("j", status={"queue": {"position": 1, "reason": "NoFreeGPU"}}), NOW)
    first = rows.take(NOW, whole=False)
    assert first.queue
    assert (first.types, first.groups, first.reasons) == (None, None, None)
    assert rows.stale
    later = rows.take(NOW)
    assert later.reasons == {"team": Counter({"NoFreeGPU": 1})}
    assert later.groups is not None
    assert not rows.stale
