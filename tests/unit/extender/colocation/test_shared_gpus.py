"""Nodes with shared GPUs: devices, partners that come one by one, who keeps its GPU, and who was seen on it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, foreign, job, key, node_object, share, worker
from support.extender.shared import shared_cluster
from synergy_api.cluster.pools import node_capacities
from synergy_api.parts.allocation import Allocation
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_core.model.usage import Usage
from synergy_devcluster.gpu_plugin.shared import MpsGpus
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView
from synergy_extender.colocation.devices import devices_of, shares_of
from synergy_extender.colocation.order import in_the_way, occupancy
from synergy_extender.colocation.partners import MOST_CORRECTIONS, Coming, coming, movers, shared_gpu
from synergy_extender.decisions.changes import ChangeKind, Draft
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.decisions.protocol import NOT_ADMITTED_SECONDS
from synergy_extender.decisions.shared_admission import ByOrder, tell_seen
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.requests import held
from synergy_extender.snapshot.snapshot import build_snapshot

ROUNDS = Rounds(20)
MOMENT = Moment(NOW + 18.5, ROUNDS, ROUNDS.at(NOW) + 1)


def holds(name: str, *partners: str, devices: int = 1, admitted: bool = True, run: int = 1, **more: Any) -> JobView:
    """A job with its part of a GPU of n1; `gpu` is the one that it tells of, `shared` more of what is said of it."""
    said = {"asked": [f"team/{partner}" for partner in partners], **more.pop("shared", {})}
    given = allocation(share("n1") | {"devices": devices}, run=run, admitted=admitted, sharedGpu=said)
    progress = {"run": run, "gpuUUIDs": [more.pop("gpu")]} if "gpu" in more else {"run": 0}
    return job(name, status={"allocation": given, "progress": progress, "phase": "Running"}, **more)


def pod(name: str, *, devices: int = 1, started: bool = True, run: int = 1, **more: Any) -> PodView:
    """The job's worker on n1."""
    return replace(worker(name, run=run, node="n1", gpus=devices, **more), started=started)


def place(name: str, *partners: str, gpus: int = 1) -> core.Allocation:
    """A place on n1."""
    return core.Allocation(
        job=f"team/{name}",
        gpu_type="V100",
        workers=(core.NodeShare(node="n1", gpus=gpus, cpu_millis=1000, memory_bytes=1 << 30),),
        shares_gpu_with=tuple(f"team/{partner}" for partner in partners) or None,
    )


def allocated(state: ClusterState, name: str) -> Allocation:
    found = state.jobs[key(name)].status.allocation
    assert found is not None
    return found


def may_start(state: ClusterState, name: str, *, reserved: Iterable[str] = ()) -> bool:
    drafts = [Draft.of(one) for one in state.jobs.values()]
    order = ByOrder(drafts, state, AssumedBindings(), [key(one) for one in reserved])
    return order.may_start(state.jobs[key(name)], allocated(state, name))


@pytest.mark.parametrize("replicas", [2, 3, 5])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_the_jobs_of_a_gpu_ask_for_all_its_devices_between_them(replicas: int, members: int) -> None:
    if members > replicas:
        return
    capacities = {one.name: one for one in shared_cluster(replicas=replicas).capacities}
    names = "abc"[:members]
    asked = [devices_of(place(name, *(set(names) - {name})), capacities)["n1"] for name in names]
    assert sum(devices or 0 for _, devices in asked) == replicas


def test_a_job_of_two_gpus_asks_for_all_devices_of_both_and_renamed_ones_by_their_name() -> None:
    capacities = {one.name: one for one in shared_cluster(renamed=True).capacities}
    (given,) = shares_of(place("a", gpus=2), capacities)
    assert (given.gpus, given.devices, given.resource) == (2, 4, "nvidia.com/gpu.shared")
    plain = {"n1": node_capacities([node_object("n1")], [])[0]}
    (given,) = shares_of(place("a", gpus=2), plain)
    assert (given.devices, given.resource) == (None, None)


def test_where_the_plugin_distributes_a_job_asks_for_one_device_and_nobody_shares() -> None:
    state = shared_cluster(preference="Distributed")
    (node,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.nodes
    assert (node.gpus, node.replicas, node.client_thread_percent) == (4, 1, 50), "MPS limits them all the same"
    assert devices_of(place("a", gpus=3), {one.name: one for one in state.capacities})["n1"] == (3, 3)


def test_the_snapshot_says_what_gpus_there_are_and_what_a_client_gets_of_one() -> None:
    usage = {"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": "3Gi", "model": "m", "configuration": "c"}
    sharing = {"allowed": True, "acrossTenants": True, "minThroughputFraction": 0.5, "usage": [usage]}
    state = shared_cluster([job("a", spec={"sharing": sharing})], [foreign("x", node="n1", gpus=3)])
    snapshot = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot
    (node,), (asks,) = snapshot.nodes, snapshot.jobs
    assert (node.gpus, node.gpus_used, node.replicas) == (4, 2, 2)
    assert (node.gpu_memory_bytes, node.client_memory_bytes, node.client_thread_percent) == (16 << 30, 8 << 30, 50)
    assert (asks.sharing, asks.sharing_across_tenants, asks.min_throughput_fraction) == (True, True, 0.5)
    assert asks.usage["V100"].memory_bytes == 3 << 30


@pytest.mark.parametrize("where", ["status", "spec"])
def test_the_plan_hears_under_which_limit_a_matrix_was_measured(where: str) -> None:
    matrix = {"cpuMillis": [1000], "memoryBytes": [1], "stepsPerSecond": [[5.0]]}
    matrices = [{"gpuType": "V100", "clientThreadPercent": 50, **matrix}, {"gpuType": "T4", **matrix}]
    if where == "spec":
        one = job("a", spec={"profile": {"mode": "Provided", "matrices": matrices}})
    else:
        one = job("a", status={"profile": {"state": "Complete", "matrices": matrices}})
    (asks,) = build_snapshot(shared_cluster([one]), mode="round", now=NOW, round_s=20).snapshot.jobs
    assert {name: profile.client_thread_percent for name, profile in asks.profiles.items()} == {"V100": 50, "T4": 100}


def test_measured_usage_counts_more_than_told_but_of_gpu_memory_the_larger() -> None:
    def usages(measured: dict[str, Any], *told: dict[str, Any]) -> dict[str, Usage]:
        profile = {"state": "Complete", "usage": [{"gpuType": "V100", "compute": 0.6, "bandwidth": 0.4, **measured}]}
        sharing = {"allowed": True, "usage": list(told)}
        state = shared_cluster([job("a", spec={"sharing": sharing}, status={"profile": profile})])
        (asks,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
        return dict(asks.usage)

    told = {"gpuType": "V100", "compute": 0.1, "bandwidth": 0.1, "memory": "1Gi", "model": "m", "configuration": "c"}
    load = {"compute": 0.6, "bandwidth": 0.4}
    liar = Usage(memory_bytes=3 << 30, model="m", configuration="c", **load)
    assert usages({"memoryBytes": 3 << 30}, told, {**told, "gpuType": "T4"}) == {
        "V100": liar,
        "T4": Usage(compute=0.1, bandwidth=0.1, memory_bytes=1 << 30, model="m", configuration="c"),
    }
    assert usages({"memoryBytes": 5}, told)["V100"].memory_bytes == 1 << 30
    assert usages({"memoryBytes": 3 << 30}) == {"V100": Usage(memory_bytes=3 << 30, model="team/a", **load)}


def test_a_job_that_needs_more_gpu_memory_than_a_client_gets_does_not_come_to_a_shared_gpu() -> None:
    def nodes(memory: str, **more: Any) -> tuple[str, ...] | None:
        usage = {"gpuType": "V100", "compute": 0.3, "bandwidth": 0.2, "memory": memory}
        one = job("a", spec={"sharing": {"usage": [usage]}}, **more)
        (asks,) = build_snapshot(shared_cluster([one]), mode="round", now=NOW, round_s=20).snapshot.jobs
        return asks.nodes

    assert nodes("8Gi") is None
    assert nodes("8200Mi") == (), "16 GiB for two clients"
    runs = {"phase": "Running", "allocation": allocation(share("n1") | {"devices": 2}, sharedGpu={"asked": []})}
    assert nodes("8200Mi", status=runs) == ("n1",), "where it runs it may stay"


def test_partners_that_hold_their_place_are_the_planners_partners() -> None:
    state = shared_cluster([holds("a", "b"), holds("b", "a"), holds("c", "d")], [pod("a"), pod("b"), pod("c")])
    jobs = {one.name: one for one in build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs}
    partners = {name: one.running.partners for name, one in jobs.items() if one.running is not None}
    assert partners == {"team/a": ("team/b",), "team/b": ("team/a",), "team/c": ()}


@pytest.mark.parametrize("mode", ["round", "fill"])
def test_a_job_whose_partner_has_gone_keeps_newcomers_off_its_node_until_the_round_ends(mode: Mode) -> None:
    state = shared_cluster([holds("a", "b")], [pod("a")])
    (node,) = build_snapshot(state, mode=mode, now=NOW, round_s=20).snapshot.nodes
    assert node.schedulable == (mode == "round")


def test_beside_a_foreign_pod_with_part_of_a_gpu_nobody_new_comes() -> None:
    whole = shared_cluster(pods=[foreign("x", node="n1", gpus=2)])
    part = shared_cluster(pods=[foreign("x", node="n1", gpus=1)])
    schedulable = [
        build_snapshot(s, mode="round", now=NOW, round_s=20).snapshot.nodes[0].schedulable for s in (whole, part)
    ]
    assert schedulable == [True, False]


def test_the_first_of_a_pair_starts_when_its_partner_has_its_place_too() -> None:
    together = [holds("a", "b", admitted=False), holds("b", "a", admitted=False)]
    assert may_start(shared_cluster(together), "a")
    assert not may_start(shared_cluster(together[:1]), "a", reserved=["b"])


def test_the_second_starts_when_the_kubelet_has_taken_in_the_first() -> None:
    jobs = [holds("a", "b"), holds("b", "a", admitted=False)]
    assert not may_start(shared_cluster(jobs), "b")
    assert not may_start(shared_cluster(jobs, [pod("a", started=False)]), "b")
    assert may_start(shared_cluster(jobs, [pod("a")]), "b")


def test_nobody_else_starts_while_a_gpu_is_half_full() -> None:
    others = [holds("c", "d", admitted=False), holds("d", "c", admitted=False), holds("e", devices=2, admitted=False)]
    state = shared_cluster([holds("a", "b"), holds("b", "a", admitted=False), *others], [pod("a")])
    assert [may_start(state, name) for name in "bcde"] == [True, False, False, False]
    full = shared_cluster([holds("a", "b"), holds("b", "a"), *others], [pod("a"), pod("b")])
    assert [may_start(full, name) for name in "cde"] == [True, True, True]


def test_beside_one_gpu_order_does_not_matter() -> None:
    state = shared_cluster([holds("a", "b"), holds("b", "a", admitted=False)], [pod("a", started=False)], gpus=1)
    assert may_start(state, "b")


def test_only_one_starts_in_a_pass() -> None:
    jobs = [holds(name, *partner, admitted=False) for name, *partner in ("ab", "ba", "cd", "dc")]
    made = decide(shared_cluster(jobs), MOMENT, None, AssumedBindings())
    assert [one.job.key.name for one in made.changes if one.allocation and one.allocation.admitted] == ["a"]


def test_those_who_wait_for_their_turn_do_not_give_their_places_back() -> None:
    """Their room came free late, and they start one after the other."""
    long_ago = {key(name): NOW - 10 * NOT_ADMITTED_SECONDS for name in "abcd"}
    names = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]

    def kinds(pods: Iterable[PodView], *admitted: str) -> dict[str, ChangeKind]:
        jobs = [holds(name, partner, admitted=name in admitted) for name, partner in names]
        made = decide(shared_cluster(jobs, pods), MOMENT, None, AssumedBindings(), granted_since=long_ago)
        return {one.job.key.name: one.kind for one in made.changes if one.kind != ChangeKind.STAY}

    assert kinds([]) == {"a": ChangeKind.ADMIT}
    assert kinds([], "a") == {}
    assert kinds([pod("a")], "a") == {"b": ChangeKind.ADMIT}
    assert kinds([pod("a"), pod("b")], "a", "b") == {"c": ChangeKind.ADMIT}
    blocked = kinds([foreign("x", node="n1", gpus=1)])
    assert blocked == dict.fromkeys("abcd", ChangeKind.LEAVE), "nobody starts, so nobody's turn comes"


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("c", started=False)], "pod team/c-1-0 has not been given its GPU yet"),
        ([foreign("x", node="n1", gpus=1)], "pod team/x holds part of a GPU outside the plan"),
        ([pod("c")], "the GPU of team/c and team/d is half full: this pod would join it, against the plan"),
        ([pod("a")], None),
        ([pod("c"), pod("d")], None),
    ],
)
def test_a_bind_that_would_break_the_pairing_is_refused_in_words(pods: list[PodView], words: str | None) -> None:
    jobs = [holds("a", "b"), holds("b", "a"), holds("c", "d"), holds("d", "c")]
    state = shared_cluster(jobs, [replace(one, started=one.started or one.member is None) for one in pods])
    there = occupancy(state.pods.on_node("n1"), state.jobs, 2)
    said = in_the_way(frozenset({"team/a", "team/b"}), state.capacities[0], there)
    assert (said is None) == (words is None)
    assert words is None or (said is not None and words in said)


def test_where_partners_are() -> None:
    group = frozenset({"team/a", "team/b"})
    granted = {name: allocated(shared_cluster([view]), name.partition("/")[2]) for name, view in
               (("team/a", holds("a", "b")), ("team/b", holds("b", "a")))}  # fmt: skip
    assert coming(group, key("a"), granted, []) is Coming.HERE
    assert coming(group, key("a"), {}, [key("b")]) is Coming.LATER
    assert coming(group, key("a"), {}, []) is Coming.NEVER
    with_another = allocated(shared_cluster([holds("b", "c")]), "b")
    assert coming(group, key("a"), {"team/b": with_another}, []) is Coming.NEVER


def test_a_place_beside_a_partner_that_does_not_come_is_given_back() -> None:
    state = shared_cluster([holds("a", "b", admitted=False)])
    (change,) = decide(state, MOMENT, None, AssumedBindings()).changes
    assert change.allocation is not None
    assert (change.allocation.state, change.allocation.reason) == ("Revoked", Revocation.PARTNERS_GONE)


def moved(state: ClusterState, *chosen: core.Allocation) -> set[str]:
    return {one.name for one in movers({made.job: made for made in chosen}, state)}


def four(**more: Any) -> ClusterState:
    """a beside b and c beside d."""
    return shared_cluster([holds(name, partner, **more) for name, partner in ("ab", "ba", "cd", "dc")])


def test_pairs_that_stay_together_stay_where_they_are() -> None:
    assert moved(four(), place("a", "b"), place("b", "a"), place("c", "d"), place("d", "c")) == set()


def test_a_newcomer_joins_the_one_who_was_left_without_a_restart() -> None:
    state = shared_cluster([holds("a", "b"), holds("c", "d"), holds("d", "c")])
    assert moved(state, place("a", "i"), place("c", "d"), place("d", "c")) == set()


def test_of_those_who_are_parted_the_first_keeps_the_gpu_and_one_gpu_waits_for_somebody() -> None:
    # a-b, c-d become a-c, b-d: only a can stay, since the GPU of nobody else may be half full meanwhile
    found = moved(four(), place("a", "c"), place("c", "a"), place("b", "d"), place("d", "b"))
    assert found == {"b", "c", "d"}


def test_two_who_were_left_cannot_both_wait_for_a_newcomer() -> None:
    state = shared_cluster([holds("a", "b"), holds("c", "d")])
    assert moved(state, place("a", "i"), place("c", "j")) == {"c"}


def test_a_wrong_pairing_is_corrected_but_not_for_ever() -> None:
    uuids = {"a": "GPU-1", "c": "GPU-1", "b": "GPU-2", "d": "GPU-2"}
    chosen = place("a", "b"), place("b", "a"), place("c", "d"), place("d", "c")
    wrong = {"a": "c", "c": "a", "b": "d", "d": "b"}
    for runs, moving in ((0, {"b", "c", "d"}), (MOST_CORRECTIONS, set())):
        jobs = [
            holds(name, partner, gpu=uuids[name], shared={"seen": [f"team/{wrong[name]}"], "wrongRuns": runs})
            for name, partner in ("ab", "ba", "cd", "dc")
        ]
        assert moved(shared_cluster(jobs), *chosen) == moving


def test_who_is_seen_on_the_gpu_is_written_once_all_have_told() -> None:
    for last, seen in ((None, None), ("GPU-1", ["team/b"]), ("GPU-2", [])):
        told = {} if last is None else {"gpu": last}
        state = shared_cluster([holds("a", "b", gpu="GPU-1"), holds("b", "a", **told)])
        drafts = [Draft.of(one) for one in state.jobs.values()]
        tell_seen(drafts, state)
        shared = {draft.job.key.name: draft.allocation and draft.allocation.shared_gpu for draft in drafts}["a"]
        assert shared is not None
        assert shared.seen == seen


def test_who_is_seen_is_written_beside_nodes_and_jobs_that_share_nothing() -> None:
    alone = job("whole", status={"allocation": allocation(share("n2")), "phase": "Running"})
    coming = holds("next", "a", admitted=False)
    jobs = [holds("a", "b", gpu="GPU-1"), holds("b", "a", gpu="GPU-1"), alone, job("waits"), coming]
    state = shared_cluster(jobs)
    state = replace(state, capacities=[*state.capacities, *node_capacities([node_object("n2")], [])])
    drafts = {one.key.name: Draft.of(one) for one in state.jobs.values()}
    tell_seen(drafts.values(), state)
    changed = {name for name, draft in drafts.items() if draft.allocation != state.jobs[key(name)].status.allocation}
    assert changed == {"a", "b"}


def test_the_next_run_of_a_wrongly_paired_job_counts_it() -> None:
    said = {"seen": ["team/c"], "wrongRuns": 0}
    ended = {"service": {"run": 1, "endedRun": 1}, "phase": "Queued"}
    given = allocation(share("n1") | {"devices": 1}, state="Revoked", sharedGpu={"asked": ["team/b"], **said})
    state = shared_cluster([job("a", status={**ended, "allocation": given}), holds("b", "a")])
    plan = Plan(
        allocations=(place("a", "b"), place("b", "a")),
        waiting=(),
        preempted=(),
        resized=(),
        policy="las",
        mechanism="tune",
    )
    stances = {one: stance(view, MOMENT.now) for one, view in state.jobs.items()}
    changes = decide(state, MOMENT, PlanResult(plan, "round", stances), AssumedBindings()).changes
    granted = next(one.allocation for one in changes if one.job.key.name == "a")
    assert granted is not None
    assert granted.shared_gpu is not None
    assert (granted.run, granted.shared_gpu.asked, granted.shared_gpu.wrong_runs) == (2, ["team/b"], 1)


@settings(max_examples=30)
@given(st.permutations([(name, partner) for name, partner in ("ab", "ba", "cd", "dc", "ef", "fe")]), st.integers(1, 2))
def test_whoever_comes_first_the_plugin_gives_partners_one_gpu(order: list[tuple[str, str]], wholes: int) -> None:
    """The order that decisions make, with a plugin that packs: pairs and whole-GPU jobs come to their own GPUs."""
    plugin = MpsGpus(tuple(f"GPU-{index}" for index in range(5)), 2, "packed", 16384)
    wanted = {name: holds(name, partner, admitted=False) for name, partner in order}
    wanted |= {f"w{index}": holds(f"w{index}", devices=2, admitted=False) for index in range(wholes)}
    waiting, got, pods = dict(wanted), dict[str, set[str]](), list[PodView]()
    taken: set[str] = set()
    while waiting:
        now = {name: view for name, view in wanted.items() if name in waiting}
        there = [
            holds(name, *_partners(view), devices=_devices(view)) for name, view in wanted.items() if name not in now
        ]
        state = shared_cluster([*now.values(), *there], pods, gpus=5)
        name = next(
            name for name in [*(one for one, _ in order), *wanted] if name in waiting and may_start(state, name)
        )
        devices = _devices(waiting.pop(name))
        free = [one.device_id for one in plugin.devices(frozenset()) if one.device_id not in taken]
        chosen = plugin.preferred(free, [], devices)
        taken |= set(chosen)
        got[name] = {one.partition("::")[0] for one in chosen}
        pods.append(pod(name, devices=devices))
    for name, partner in order:
        assert got[name] == got[partner]
    alone = [got[name] for name in got if name.startswith("w")]
    assert all(len(gpus) == 1 for gpus in got.values())
    assert len({gpu for gpus in got.values() for gpu in gpus}) == 3 + len(alone)


def _partners(view: JobView) -> list[str]:
    held = view.status.allocation
    assert held is not None
    assert held.shared_gpu is not None
    return [name.partition("/")[2] for name in held.shared_gpu.asked]


def _devices(view: JobView) -> int:
    assert view.status.allocation is not None
    return view.status.allocation.workers[0].devices or 0


@pytest.mark.parametrize(("by_fractions", "told"), [(True, "Fractions"), (False, None)])
def test_status_says_which_form_of_delta_decided_and_the_planner_reads_it_back(
    by_fractions: bool, told: str | None
) -> None:
    given = replace(place("a", "b"), delta_by_fractions=by_fractions)
    shared = shared_gpu(given, None, on_shared_node=True)
    assert shared is not None
    assert shared.delta == told
    holder = holds("a", "b", shared={"delta": shared.delta} if shared.delta else {})
    assert holder.status.allocation is not None
    assert held(holder, holder.status.allocation, ("team/b",)).delta_by_fractions is by_fractions
