"""A run of a Tenant starts only once what leaves has left, where both together are more than the Tenant may have."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share, worker
from synergy_api.cluster.tenancy import read_tenancy
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.views import JobView, PodView
from synergy_extender.decisions.admission import admit
from synergy_extender.decisions.changes import Draft
from synergy_extender.decisions.protocol import waits_since
from synergy_extender.decisions.shared_admission import ByOrder
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.tenants.room import TenantRoom

LIMITED = {"org": {"limit": {"V100": 6}}, "team": {"parent": "org", "namespaces": ["team"]}}


def starting(jobs: Sequence[JobView], pods: Sequence[PodView], specs: dict[str, Any] | None = None) -> set[str]:
    """The names of granted jobs that are admitted now, with eight nodes of 8 GPUs."""
    tenancy = read_tenancy(
        [{"metadata": {"name": name}, "spec": spec} for name, spec in (specs or LIMITED).items()], []
    )
    state = cluster([node_object(f"n{i}", gpus=8) for i in range(8)], jobs, pods, tenancy=tenancy)
    drafts = [Draft.of(view) for view in jobs]
    before = {d.job.key.name for d in drafts if d.granted is not None and d.granted.admitted}
    assumed = AssumedBindings()
    admit(
        drafts,
        Ledger(state.allocatable, state.pods, assumed),
        state.pods,
        assumed,
        ByOrder(drafts, state, assumed, ()),
        tenants=TenantRoom(state, ((d.job, d.allocation) for d in drafts)),
    )
    return {d.job.key.name for d in drafts if d.granted is not None and d.granted.admitted} - before


def held(name: str, gpus: int, node: str, **more: Any) -> JobView:
    return job(name, gpus=gpus, status={"phase": "Running", "allocation": allocation(share(node, gpus), **more)})


def granted(name: str, gpus: int, node: str, **more: Any) -> JobView:
    return held(name, gpus, node, admitted=False, **more)


def over(name: str) -> JobView:
    return job(name, status={"phase": "Queued", "allocation": allocation(state="Released", until=None)})


def test_a_run_waits_for_one_that_leaves_where_both_are_more_than_the_limit() -> None:
    leaves, new = held("old", 4, "n0", state="Revoked"), granted("new", 4, "n1")
    pod = worker("old", node="n0", gpus=4)
    assert starting([leaves, new], [pod]) == set()
    assert starting([leaves, granted("new", 2, "n1")], [pod]) == {"new"}
    assert starting([over("old"), new], [pod]) == set(), "its pod is there"
    assert starting([leaves, new], [worker("old", node="n0", gpus=4, phase="Succeeded")]) == {"new"}


def test_pods_of_a_job_that_is_deleted_already_hold_their_gpus_until_they_are_gone() -> None:
    new, pod = granted("new", 4, "n1"), worker("deleted", node="n0", gpus=4)
    assert starting([new], [pod]) == set()
    assert starting([granted("new", 2, "n1")], [pod]) == {"new"}
    assert starting([new], [worker("deleted", node="n0", gpus=4, phase="Succeeded")]) == {"new"}
    assert starting([new], [worker("deleted", node="a-node-that-is-gone", gpus=4)]) == {"new"}
    assert starting([new], [pod], {"other": {"namespaces": ["other"], "limit": {"V100": 6}}}) == {"new"}


def test_a_deleted_job_may_have_had_any_tenant_of_its_namespace_and_counts_once_above_them() -> None:
    specs = {
        "org": {"limit": {"V100": 6}},
        "first": {"parent": "org", "namespaces": ["team"]},
        "second": {"parent": "org", "namespaces": ["team"], "limit": {"V100": 5}},
    }
    pod = worker("deleted", node="n0", gpus=4)
    assert starting([granted("new", 2, "n1")], [pod], specs) == {"new"}
    second = job("new", gpus=2, spec={"tenant": "second"}, status=granted("new", 2, "n1").status.to_wire())
    assert starting([second], [pod], specs) == set()


def test_only_what_leaves_makes_a_run_wait() -> None:
    stays, new = held("stays", 4, "n0"), granted("new", 4, "n1")
    assert starting([stays, new], [worker("stays", node="n0", gpus=4)]) == {"new"}, "the plan has decided that"


@pytest.mark.parametrize(
    "spec",
    [
        {"borrowing": {"V100": 5}, "guarantee": {"V100": 1}},
        {"limit": {"V100": 6}},
        {"limit": {"V100": 9}, "borrowing": {"V100": 6}},
    ],
)
def test_limits_and_borrowing_limits_count(spec: dict[str, Any]) -> None:
    jobs = [held("old", 4, "n0", state="Revoked"), granted("new", 4, "n1")]
    pods = [worker("old", node="n0", gpus=4)]
    assert starting(jobs, pods, {"team": {"namespaces": ["team"], **spec}}) == set()
    assert starting(jobs, pods, {"team": {"namespaces": ["team"], "limit": {"V100": 8}}}) == {"new"}
    assert starting(jobs, pods, {"other": {"namespaces": ["other"], **spec}}) == {"new"}


def test_partners_on_shared_gpus_count_once() -> None:
    def shares(name: str, partner: str, **more: Any) -> JobView:
        return held(name, 3, "n1", sharedGpu={"asked": [f"team/{partner}"]}, **more)

    leaves, pod = held("old", 3, "n0", state="Revoked"), worker("old", node="n0", gpus=3)
    here, follows = shares("here", "follows"), shares("follows", "here", admitted=False)
    assert starting([leaves, here, follows], [pod, worker("here", node="n1", gpus=3)]) == {"follows"}


def test_what_is_waited_for_is_no_reason_to_give_the_place_back() -> None:
    leaves, new = held("old", 4, "n0", state="Revoked"), granted("new", 4, "n1")
    pod = worker("old", node="n0", gpus=4)
    tenancy = read_tenancy([{"metadata": {"name": name}, "spec": spec} for name, spec in LIMITED.items()], [])
    state = cluster([node_object("n0"), node_object("n1")], [leaves, new], [pod], tenancy=tenancy)
    room = TenantRoom(state, ((view, view.status.allocation) for view in (leaves, new)))
    moment = Moment(NOW, Rounds(20), 50_000)
    since = waits_since(Draft.of(new), moment, {new.key: NOW - 500.0}, state, 600.0, tenants=room)
    assert since > NOW, "its lease ends, and it may take half a minute for its checkpoint"


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from(("granted", "held", "leaves", "gone", "deleted"))), max_size=8
    )
)
def test_a_limit_is_kept_unless_the_plan_itself_is_beyond_it(runs: list[tuple[int, str]]) -> None:
    jobs, pods, planned, there = [], [], 0, 0
    for index, (gpus, what) in enumerate(runs):
        name, node = f"j{index}", f"n{index}"
        match what:
            case "granted":
                jobs.append(granted(name, gpus, node))
            case "held":
                jobs.append(held(name, gpus, node))
            case "leaves":
                jobs.append(held(name, gpus, node, state="Revoked"))
            case "gone":
                jobs.append(over(name))
        planned += gpus if what in ("granted", "held") else 0
        there += gpus if what != "granted" else 0
        pods += [] if what == "granted" else [worker(name, node=node, gpus=gpus)]
    begun = starting(jobs, pods)
    more = sum(gpus for index, (gpus, _) in enumerate(runs) if f"j{index}" in begun)
    if planned <= 6:
        assert not begun or there + more <= 6
    if not any(what in ("leaves", "gone", "deleted") for _, what in runs):
        assert len(begun) == sum(what == "granted" for _, what in runs)
