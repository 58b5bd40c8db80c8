"""Promises that a plan can break, over random clusters, in both modes, for all policies and mechanisms."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from support.planner import planning, promises
from support.planner.snapshots import configs, filling_configs, fungible_configs, in_mode, later, snapshots
from synergy_core.model.config import PlanConfig
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, Node, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.rounds.time_shares import NAMES as SHARE_TIME

often = settings(suppress_health_check=[HealthCheck.too_slow])


@often
@given(snapshots(), configs)
def test_every_plan_keeps_every_promise(snapshot: Snapshot, config: PlanConfig) -> None:
    promises.all_promises(snapshot, plan(snapshot, config), fill=config.mode == "fill")


@often
@given(snapshots(disturbed=True), configs)
def test_promises_hold_after_nodes_were_lost_and_pods_of_others_came(snapshot: Snapshot, config: PlanConfig) -> None:
    promises.all_promises(snapshot, plan(snapshot, config), fill=config.mode == "fill")


def test_who_may_not_be_moved_stays_with_what_it_holds_on_a_node_that_lost_gpus() -> None:
    """Four GPUs on a node that now has one: four times the share of that one is more than the node has."""
    held = planning.holding("stays", ("n0", 4, 8, 80))
    stays = planning.job("stays", 4, wants=(24, 240), preemptible=False, running=held)
    snapshot = Snapshot(nodes=(planning.node("n0", 1, cpus=6, gib=60),), jobs=(stays,))
    result = plan(snapshot, PlanConfig(policy="fifo", mechanism="tune"))
    (given_now,) = result.allocations
    assert given_now.workers == held.workers
    assert 0 < given_now.steps_per_s < given_now.proportional_steps_per_s
    promises.all_promises(snapshot, result, fill=False)


@often
@given(snapshots(disturbed=True), configs, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(snapshot: Snapshot, config: PlanConfig, rng: random.Random) -> None:
    nodes, jobs = list(snapshot.nodes), list(snapshot.jobs)
    rng.shuffle(nodes)
    rng.shuffle(jobs)
    shuffled = replace(snapshot, nodes=tuple(nodes), jobs=tuple(jobs))
    assert plan(shuffled, config) == plan(snapshot, config)


@often
@given(snapshots(disturbed=True), configs)
def test_fill_never_preempts_moves_or_grows(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, in_mode(config, "fill"))
    given_now = {a.job: a for a in result.allocations}
    assert result.preempted == ()
    for job in snapshot.jobs:
        if job.running is None:
            continue
        before = {w.node: w for w in job.running.workers}
        for worker in given_now[job.name].workers:
            assert worker.gpus == before[worker.node].gpus
            assert worker.cpu_millis <= before[worker.node].cpu_millis
            assert worker.memory_bytes <= before[worker.node].memory_bytes
        assert (job.name in result.resized) == (given_now[job.name] != job.running)


@often
@given(snapshots(disturbed=True), configs)
def test_fill_cuts_down_only_for_a_newcomer_on_the_same_node(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, in_mode(config, "fill"))
    given_now = {a.job: a for a in result.allocations}
    waited = {job.name for job in snapshot.jobs if job.running is None}
    entered_on = {w.node for a in result.allocations if a.job in waited for w in a.workers}
    for name in result.resized:
        assert entered_on & {w.node for w in given_now[name].workers}, name


def _idle(snapshot: Snapshot, allocations, gpu_type: str) -> dict[str, int]:
    """GPUs of each node that may take new jobs which nobody has."""
    used = promises.per_node(allocations)
    return {
        node.name: promises.left(node, "gpus") - used.get(node.name, Counter())["gpus"]
        for node in snapshot.nodes
        if node.gpu_type == gpu_type and node.schedulable and promises.usable(node)
    }


def _fits(job: Job, idle: dict[str, int]) -> bool:
    rooms = [room for node, room in idle.items() if job.nodes is None or node in job.nodes]
    one_node = job.placement in (
        "consolidate",
        "pack",
    )  # who is packed waits for the fewest nodes: one would do at least
    return (max(rooms, default=0) if one_node else sum(rooms)) >= job.gpus


def _types(snapshot: Snapshot, job: Job) -> set[str]:
    present = {node.gpu_type for node in snapshot.nodes}
    return present & set(job.gpu_types) if job.gpu_types else present


@pytest.mark.parametrize("mode", ["round", "fill"])
@often
@given(data=st.data())
def test_no_gpus_stay_idle_that_a_waiting_job_could_use(data: st.DataObject, mode: str) -> None:
    snapshot = data.draw(snapshots(plain=True))
    result = plan(snapshot, in_mode(data.draw(filling_configs), mode))
    waiting = {entry.job: entry.reason for entry in result.waiting}
    promoted = [
        job
        for job in snapshot.jobs
        if job.name in waiting and (job.promoted_gpu_s or job.promoted_waiting_s or job.name in result.promoted)
    ]
    for job in snapshot.jobs:
        if job.name not in waiting:
            continue
        for gpu_type in _types(snapshot, job):
            idle = _idle(snapshot, result.allocations, gpu_type)
            if waiting[job.name] == Reason.KEPT_FREE:
                kept_for = [one for one in promoted if gpu_type in _types(snapshot, one)]
                outside = [_outside(one, idle, job) for one in kept_for] or [idle]
                assert not all(_fits(job, left) for left in outside), job.name
            else:
                assert not _fits(job, idle), job.name


def _outside(promoted: Job, idle: dict[str, int], newcomer: Job) -> dict[str, int]:
    """Idle GPUs that cannot be kept for the promoted job: those beyond as many nodes as it could use at all.

    The nodes that the planner keeps are not in the plan. The bound takes the nodes that the newcomer would miss most.
    """
    usable = [
        node
        for node in idle
        if (promoted.nodes is None or node in promoted.nodes) and (newcomer.nodes is None or node in newcomer.nodes)
    ]
    most = 1 if promoted.placement == "consolidate" else promoted.gpus
    kept = sorted(usable, key=lambda node: -idle[node])[:most]
    return {node: room for node, room in idle.items() if node not in kept}


@often
@given(snapshots(plain=True), fungible_configs)
def test_nobody_waits_for_gpus_that_a_job_behind_it_has(snapshot: Snapshot, config: PlanConfig) -> None:
    unprotected = replace(config, minimum_run_s=0.0, preemption_payback=0.0)  # else a run that has just begun stays
    config = replace(in_mode(unprotected, "round"), policy="fifo")
    result = plan(snapshot, config)
    waiting = {entry.job for entry in result.waiting}
    line = sorted(snapshot.jobs, key=lambda job: (job.arrival_s, job.name))
    for position, job in enumerate(line):
        if job.name not in waiting or job.placement in ("consolidate", "pack") or job.nodes is not None:
            continue
        behind = {other.name for other in line[position:] if other.running is None or other.preemptible}
        others = tuple(a for a in result.allocations if a.job not in behind)
        for gpu_type in _types(snapshot, job):
            assert not _fits(job, _idle(snapshot, others, gpu_type)), job.name


@often
@given(snapshots(), fungible_configs)
def test_without_newcomers_nobody_leaves(snapshot: Snapshot, config: PlanConfig) -> None:
    assume(config.policy not in SHARE_TIME)  # these move jobs between GPU types from round to round
    running = replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.running is not None))
    result = plan(running, in_mode(config, "round"))
    assert result.preempted == ()
    assert result.waiting == ()


@often
@given(snapshots(), fungible_configs)
def test_a_plan_carried_out_is_planned_again_without_a_restart(snapshot: Snapshot, config: PlanConfig) -> None:
    config = in_mode(config, "round")
    result = plan(snapshot, config)
    assume(not any(job.purpose == "profile" for job in snapshot.jobs))
    assume(config.policy != "yarn-cs")  # who stood behind a job that moved may enter now
    # a job that may not be preempted keeps what it was given: the others' shares are worked out anew, without it
    assume(config.policy not in SHARE_TIME or all(job.preemptible or job.running is not None for job in snapshot.jobs))
    again = plan(later(snapshot, result), config)
    assume(not again.promoted)  # who had waited long enough when it was displaced comes back at once, to the head
    first, second = ({(a.job, a.gpu_type) for a in one.allocations} for one in (result, again))
    # who is bound to one node or to certain nodes may have been refused a node that packing left free in the end
    picky = {job.name for job in snapshot.jobs if job.nodes is not None or job.placement == "consolidate"}
    entering = {job for job, _ in second - first}
    assert entering <= picky
    if not entering:
        assert again.preempted == ()
        assert first == second


@often
@given(snapshots(disturbed=True), configs)
def test_profile_runs_keep_within_their_share_and_are_never_preempted(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    jobs = {job.name: job for job in snapshot.jobs}
    held = [jobs[a.job] for a in result.allocations if jobs[a.job].purpose == "profile"]
    new = [job for job in held if job.running is None]
    share = sum(promises.left(node, "gpus") for node in snapshot.nodes) * config.profile_gpu_percent // 100
    if new and len(held) > 1:
        assert sum(job.gpus for job in held) <= share


def _lost_its_nodes(job: Job, nodes: dict[str, Node]) -> bool:
    return job.running is not None and any(
        worker.node not in nodes or nodes[worker.node].gpu_type != job.running.gpu_type
        for worker in job.running.workers
    )


@often
@given(snapshots(), configs)
def test_jobs_that_may_not_be_preempted_stay(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    for job in snapshot.jobs:
        if job.running is not None and (not job.preemptible or job.purpose == "profile"):
            assert job.name not in result.preempted


@often
@given(snapshots(disturbed=True), configs)
def test_without_explanations_the_plan_is_the_same_and_only_nobody_is_told_why_it_waits(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    whole, brief = plan(snapshot, config), plan(snapshot, replace(config, explain=False))
    assert brief == replace(whole, waiting=())
