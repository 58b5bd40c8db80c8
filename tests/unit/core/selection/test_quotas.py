"""Quotas are kept in every plan, and who lacks quota is in nobody's way."""

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import planning, promises
from support.planner.quotas import PODS, SERVICES, draw_on, gpu_quota, keeps_quotas, with_quotas
from support.planner.snapshots import configs, snapshots
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Quota, QuotaDraw, QuotaLimit, Snapshot
from synergy_core.model.snapshot.limits import FieldError
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, snapshot_document
from synergy_core.plan import plan
from synergy_core.policies.rounds.time_shares import NAMES as SHARE_TIME
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger, Quotas, fewest_pods

often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
LAS = PlanConfig(policy="las", mechanism="tune")


def waits(result: Plan) -> dict[str, str]:
    return {one.job: one.reason for one in result.waiting}


@often
@given(with_quotas(snapshots()), configs)
def test_no_plan_exceeds_a_quota(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    promises.all_promises(snapshot, result, fill=config.mode == "fill")
    keeps_quotas(snapshot, result)


@often
@given(with_quotas(snapshots(disturbed=True)), configs)
def test_nor_after_nodes_were_lost_and_pods_of_others_came(snapshot: Snapshot, config: PlanConfig) -> None:
    keeps_quotas(snapshot, plan(snapshot, config))


@settings(often, max_examples=15)
@given(with_quotas(snapshots(plain=True)), st.sampled_from(("round", "fill")))
def test_nor_one_of_opt(snapshot: Snapshot, mode: str) -> None:
    keeps_quotas(snapshot, plan(snapshot, PlanConfig(policy="las", mechanism="opt", mode=mode)))  # type: ignore[arg-type]


@often
@given(with_quotas(snapshots()), configs)
def test_the_order_of_the_jobs_does_not_matter(snapshot: Snapshot, config: PlanConfig) -> None:
    assert plan(replace(snapshot, jobs=snapshot.jobs[::-1]), config) == plan(snapshot, config)


@often
@given(with_quotas(snapshots()), configs)
def test_quotas_with_room_for_all_change_nothing(snapshot: Snapshot, config: PlanConfig) -> None:
    """Without a limit on pods: a job whose pods are counted is given its nodes earlier in the plan."""
    wide = tuple(
        Quota(
            name=quota.name,
            limits=tuple(replace(limit, hard=1 << 49, used=0) for limit in quota.limits if limit.counts != "objects"),
        )
        for quota in snapshot.quotas
    )
    jobs = tuple(replace(job, quotas=tuple(replace(one, per_pod={}) for one in job.quotas)) for job in snapshot.jobs)
    free = replace(snapshot, jobs=tuple(replace(job, quotas=()) for job in jobs), quotas=())
    assert plan(replace(snapshot, jobs=jobs, quotas=wide), config) == plan(free, config)


@often
@given(snapshots(), configs, st.integers(0, 3))
def test_for_all_others_a_job_without_room_in_its_quota_might_as_well_not_be_there(
    snapshot: Snapshot, config: PlanConfig, held: int
) -> None:
    """It is at the head of every line: it came first, has attained nothing and is short."""
    greedy = Job(name="0", gpus=4, arrival_s=-10.0, steps_total=1, quotas=(draw_on("red/gpus"),))
    full = replace(snapshot, jobs=(greedy, *snapshot.jobs), quotas=(gpu_quota("red/gpus", held + 3, used=held),))
    with_it, without = plan(full, config), plan(snapshot, config)
    assert with_it.allocations == without.allocations
    assert with_it.preempted == without.preempted
    told = waits(with_it)
    assert told.pop("0") in ("QuotaFull", "TooManyGPUs", "TooManyGPUsForANode", "NoSuchGPUType", "NoAllowedNode")
    assert told == waits(without)


@st.composite
def small_cases(draw: st.DrawFn) -> Snapshot:
    """Some jobs of one GPU each on one node, and quotas of GPUs."""
    gpus = draw(st.integers(1, 4))
    count = draw(st.integers(1, 7))
    running = draw(st.lists(st.integers(0, count - 1), max_size=gpus, unique=True))
    jobs = []
    for index in range(count):
        names = draw(st.sampled_from(((), ("red",), ("blue",), ("red", "blue"))))
        place = planning.holding(f"j{index}", ("n0", 1, 3, 60)) if index in running else None
        jobs.append(
            Job(
                name=f"j{index}",
                gpus=1,
                attained_gpu_s=float(draw(st.integers(0, 3))),
                running=place,
                quotas=tuple(draw_on(name) for name in names),
            )
        )
    quotas = tuple(gpu_quota(name, draw(st.integers(0, 4))) for name in ("red", "blue"))
    return Snapshot(nodes=(planning.node("n0", gpus, cpus=3 * gpus, gib=60 * gpus),), jobs=tuple(jobs), quotas=quotas)


@often
@given(small_cases())
def test_the_line_is_served_as_by_trying_all_sets_of_jobs(snapshot: Snapshot) -> None:
    """Of all sets that fit, the one that is first when they are compared job by job along the line of LAS.

    The quotas are never overdrawn by those who run: these stay, which the brute force does not know.
    """
    by_name = {quota.name: quota.limits[0].hard for quota in snapshot.quotas}
    line = sorted(snapshot.jobs, key=lambda job: (job.attained_gpu_s, job.arrival_s, job.name))
    for name, hard in by_name.items():
        if sum(job.running is not None and any(d.quota == name for d in job.quotas) for job in line) > hard:
            return
    gpus = snapshot.nodes[0].gpus
    best: tuple[int, ...] = ()
    for size in range(len(line) + 1):
        for chosen in combinations(range(len(line)), size):
            drawn = [draw.quota for index in chosen for draw in line[index].quotas]
            if size <= gpus and all(drawn.count(name) <= hard for name, hard in by_name.items()):
                key = tuple(-(index in chosen) for index in range(len(line)))
                best = min(best, key) if best else key
    want = {line[index].name for index, out in enumerate(best) if out}
    for mechanism in ("tune", "proportional", "greedy"):
        result = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism))
        assert {allocation.job for allocation in result.allocations} == want, mechanism


def one_node(*jobs: Job, quotas: tuple[Quota, ...], gpus: int = 8) -> Snapshot:
    return Snapshot(nodes=(planning.node("n0", gpus, cpus=3 * gpus, gib=60 * gpus),), jobs=jobs, quotas=quotas)


@pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy", "drf", "tetris", "drf-tune", "opt"])
def test_a_job_over_its_quota_displaces_nobody_and_hears_the_numbers(mechanism: str) -> None:
    others = [
        Job(name=f"blue/{n}", gpus=4, attained_gpu_s=900.0, running=planning.holding(f"blue/{n}", ("n0", 4, 12, 240)))
        for n in (1, 2)
    ]
    fresh = Job(name="red/j", gpus=4, quotas=(draw_on("red/gpus"),))
    snapshot = one_node(fresh, *others, quotas=(gpu_quota("red/gpus", 6, used=3),))
    result = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism))
    assert result.preempted == ()
    (told,) = result.waiting
    assert (told.job, told.reason) == ("red/j", "QuotaFull")
    assert "quota red/gpus allows 6 of requests.nvidia.com/gpu and has 3 left, and it needs 4" in told.message
    raised = replace(snapshot, quotas=(gpu_quota("red/gpus", 7, used=3),))
    assert "red/j" in {a.job for a in plan(raised, LAS).allocations}


@pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy"])
def test_the_turn_within_a_quota_goes_round_though_gpus_are_free(mechanism: str) -> None:
    """Only the job that holds the quota gives way; the one of another namespace, last in line, goes on."""
    held = planning.holding("red/old", ("n0", 2, 6, 120))
    old = Job(name="red/old", gpus=2, attained_gpu_s=50.0, running=held, quotas=(draw_on("red/gpus"),))
    last = Job(name="blue/last", gpus=2, attained_gpu_s=99.0, running=planning.holding("blue/last", ("n0", 2, 6, 120)))
    new = Job(name="red/new", gpus=2, quotas=(draw_on("red/gpus"),))
    snapshot = one_node(old, last, new, quotas=(gpu_quota("red/gpus", 2),))
    result = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism))
    assert {a.job for a in result.allocations} == {"blue/last", "red/new"}
    assert result.preempted == ("red/old",)
    filled = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism, mode="fill"))
    assert {a.job for a in filled.allocations} == {"blue/last", "red/old"}
    assert waits(filled) == {"red/new": "QuotaFull"}


@pytest.mark.parametrize("policy", ["fifo", "las"])
def test_nobody_waits_behind_a_job_that_waits_for_its_quota(policy: str) -> None:
    """FIFO lets nobody pass the head of the line; what that waits for are others of its own namespace."""
    first = Job(
        name="red/a", gpus=2, arrival_s=-9.0, preemptible=False, quotas=(draw_on("red/gpus"),),
        running=planning.holding("red/a", ("n0", 2, 6, 120)),
    )  # fmt: skip
    second = Job(name="red/b", gpus=2, arrival_s=-8.0, quotas=(draw_on("red/gpus"),))
    other = Job(name="blue/c", gpus=2)
    snapshot = one_node(first, second, other, quotas=(gpu_quota("red/gpus", 3),))
    result = plan(snapshot, PlanConfig(policy=policy, mechanism="tune"))
    assert {a.job for a in result.allocations} == {"red/a", "blue/c"}
    assert waits(result) == {"red/b": "QuotaFull"}


@pytest.mark.parametrize("mechanism", ["tune", "greedy", "opt"])
def test_cpu_beyond_the_share_is_given_as_far_as_the_quota_goes(mechanism: str) -> None:
    hungry = [replace(planning.job(f"red/{n}", 1, wants=(6, 60)), quotas=(draw_on("red/cpu"),)) for n in ("a", "b")]
    limit = QuotaLimit(resource="requests.cpu", counts="cpu_millis", hard=8000)
    snapshot = one_node(*hungry, quotas=(Quota(name="red/cpu", limits=(limit,)),))
    result = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism))
    cpu = {a.job: a.workers[0].cpu_millis for a in result.allocations}
    assert sum(cpu.values()) <= 8000
    assert max(cpu.values()) > 3000, "what the quota leaves beyond their shares is used"
    if mechanism != "greedy":
        assert len(cpu) == 2


@pytest.mark.parametrize(
    ("hard", "has", "wants", "enough"),
    [
        (8000, None, 8000, True),
        (8000, None, 8001, False),
        (8000, 6000, 8000, True),
        (8000, 6000, 8001, False),
        (7000, 8000, 8000, True),
        (7000, 8000, 8001, False),
    ],
)
def test_a_job_may_have_all_that_its_quota_leaves_or_what_it_has(
    hard: int, has: int | None, wants: int, enough: bool
) -> None:
    """It counts with 3 CPUs at the least, before it is placed and after. In the last two the quota was lowered."""
    one = Job(name="red/j", gpus=1, quotas=(draw_on("red/cpu"),))
    limit = QuotaLimit(resource="requests.cpu", counts="cpu_millis", hard=hard)
    pool = Pool("V100", [planning.node("n0")])
    entry = QueueEntry(JobInfo(one, [pool], 0.05))
    ledger = QuotaLedger(Quotas([Quota(name="red/cpu", limits=(limit,))], [one]))
    ledger.take(entry, ((0, 3000),))
    if has is not None:
        ledger.assign(entry, pool, ((0, 1, (has, 1)),))
    assert ledger.affords(entry, pool, ((0, 1, (wants, 1)),)) is enough


def test_pods_are_counted_as_they_come_to_lie() -> None:
    """Eight GPUs on two nodes are two pods, of two GPUs each four."""
    nodes = tuple(planning.node(f"n{n}", 4, cpus=12, gib=240) for n in (0, 1))
    pods = Quota(name="red/pods", limits=(QuotaLimit(resource="pods", counts="objects", hard=3),))
    wide = Job(name="red/j", gpus=8, quotas=(draw_on("red/pods"),))
    (given_now,) = plan(Snapshot(nodes=nodes, jobs=(wide,), quotas=(pods,)), LAS).allocations
    assert len(given_now.workers) == 2
    many = replace(wide, gpus_per_worker=2)
    result = plan(Snapshot(nodes=nodes, jobs=(many,), quotas=(pods,)), LAS)
    assert waits(result) == {"red/j": "QuotaFull"}


@pytest.mark.parametrize(
    ("counts", "room", "matter"),
    [("objects", 9, False), ("objects", 8, True), ("objects", 0, True), ("cpu_millis", 9, True)],
)
def test_the_number_of_pods_matters_where_a_limit_could_run_out(counts: Any, room: int, matter: bool) -> None:
    """Two jobs of two GPUs come to have at most two pods each: 1 + 2 x 2 and 2 x 2 of the limit, 9 in all."""
    draws = [QuotaDraw(quota="q", once={PODS: once}, per_pod={PODS: 2}) for once in (1, 0)]
    jobs = [Job(name=f"j{index}", gpus=2, quotas=(draw,)) for index, draw in enumerate(draws)]
    limit = QuotaLimit(resource=PODS, counts=counts, hard=room + 5, used=5)
    quotas = Quotas([Quota(name="q", limits=(limit,))], jobs)
    assert [quotas.pods_matter(job) for job in jobs] == [matter, matter]


def test_of_several_limits_one_that_counts_pods_is_enough() -> None:
    job = Job(name="j", gpus=2, quotas=(QuotaDraw(quota="q", per_pod={PODS: 1}),))
    pods = QuotaLimit(resource=PODS, counts="objects", hard=1)
    cpu = QuotaLimit(resource="requests.cpu", counts="cpu_millis", hard=8000)
    assert Quotas([Quota(name="q", limits=(cpu, pods))], [job]).pods_matter(job)
    assert not Quotas([Quota(name="q", limits=(cpu,))], [job]).pods_matter(job)


@pytest.mark.parametrize("mechanism", ["tune", "greedy", "drf", "tetris", "opt"])
def test_a_job_whose_quota_has_room_waits_for_gpus(mechanism: str) -> None:
    first = Job(name="blue/j", gpus=8)
    waiting = Job(name="red/j", gpus=2, arrival_s=1.0, quotas=(draw_on("red/gpus"),))
    snapshot = one_node(first, waiting, quotas=(gpu_quota("red/gpus", 2),))
    assert waits(plan(snapshot, PlanConfig(policy="srtf", mechanism=mechanism))) == {"red/j": "NoFreeGPU"}


def test_the_number_of_pods_never_matters_where_it_is_fixed_or_not_counted() -> None:
    limit = QuotaLimit(resource=PODS, counts="objects", hard=0)
    draw = QuotaDraw(quota="q", per_pod={PODS: 1})
    jobs = {
        "one GPU": Job(name="a", gpus=1, quotas=(draw,)),
        "a GPU for each worker": Job(name="b", gpus=4, gpus_per_worker=1, quotas=(draw,)),
        "no quota": Job(name="c", gpus=4),
        "services alone": Job(name="d", gpus=4, quotas=(QuotaDraw(quota="q", once={SERVICES: 1}),)),
    }
    quotas = Quotas([Quota(name="q", limits=(limit,))], jobs.values())
    assert not any(quotas.pods_matter(job) for job in jobs.values())


@pytest.mark.parametrize(
    ("gpus", "per_worker", "pods"), [(5, None, 1), (5, 2, 3), (4, 2, 2), (4, 4, 1), (1, 1, 1), (3, 1, 3)]
)
def test_the_fewest_pods_hold_as_many_gpus_each_as_they_may(gpus: int, per_worker: int | None, pods: int) -> None:
    assert fewest_pods(Job(name="j", gpus=gpus, gpus_per_worker=per_worker)) == pods


@pytest.mark.parametrize("cpus", [6, 2])
def test_who_runs_stays_although_its_quota_was_lowered_and_does_not_grow(cpus: int) -> None:
    """Not even to its share, which is 6 CPUs."""
    held = planning.holding("red/j", ("n0", 2, cpus, 120))
    job = replace(planning.job("red/j", 2, wants=(20, 120), running=held), quotas=(draw_on("red/cpu"),))
    limit = QuotaLimit(resource="limits.cpu", counts="cpu_millis", hard=1000)
    snapshot = one_node(job, quotas=(Quota(name="red/cpu", limits=(limit,)),))
    for mechanism in ("tune", "greedy", "proportional"):
        (given_now,) = plan(snapshot, PlanConfig(policy="las", mechanism=mechanism)).allocations
        assert given_now.workers[0].cpu_millis <= cpus * 1000


def test_devices_of_shared_gpus_count_as_the_device_plugin_has_them() -> None:
    shared = replace(planning.node("n0", 2, cpus=6, gib=120), devices_per_gpu=4, counted_as="shared_gpus", replicas=4)
    limit = QuotaLimit(resource="requests.nvidia.com/gpu.shared", counts="shared_gpus", hard=7)
    jobs = tuple(Job(name=f"red/{n}", gpus=1, quotas=(draw_on("red/gpus"),)) for n in ("a", "b"))
    snapshot = Snapshot(nodes=(shared,), jobs=jobs, quotas=(Quota(name="red/gpus", limits=(limit,)),))
    result = plan(snapshot, LAS)
    assert [a.job for a in result.allocations] == ["red/a"]
    assert waits(result) == {"red/b": "QuotaFull"}


def test_the_file_reads_back_and_names_what_is_wrong() -> None:
    snapshot = one_node(
        Job(name="j", gpus=2, gpus_per_worker=1, quotas=(draw_on("q", services=1, beside_cpu=5),)),
        quotas=(gpu_quota("q", 3, used=1),),
    )
    text = json.dumps(snapshot_document(snapshot))
    assert parse_snapshot(text) == snapshot
    assert '"quotas"' not in json.dumps(snapshot_document(replace(snapshot, jobs=(), quotas=())))
    with pytest.raises(SnapshotError, match=r"jobs\[0\]\.quotas\[0\]\.quota: 'q' is not in quotas; describe it there"):
        parse_snapshot(text.replace('"name": "q"', '"name": "other"'))
    with pytest.raises(SnapshotError, match=r"quotas\[0\]\.limits\[0\]\.counts"):
        parse_snapshot(text.replace('"counts": "gpus"', '"counts": "nothing"'))


def test_all_policies_of_time_shares_plan_beside_a_full_quota() -> None:
    """Their programmes do not see the job that its quota shuts out."""
    fresh = Job(name="red/j", gpus=8, quotas=(draw_on("red/gpus"),))
    others = tuple(Job(name=f"blue/{n}", gpus=4) for n in (1, 2))
    snapshot = one_node(fresh, *others, quotas=(gpu_quota("red/gpus", 7),))
    snapshot = replace(snapshot, nodes=tuple(replace(node, price_per_hour=1.0) for node in snapshot.nodes))
    for policy in sorted(SHARE_TIME):
        result = plan(snapshot, PlanConfig(policy=policy, mechanism="tune"))
        assert {a.job for a in result.allocations} == {"blue/1", "blue/2"}, policy


@pytest.mark.parametrize("kind", ["gpu", "objekts"])
def test_a_kind_that_is_none_is_refused(kind: str) -> None:
    with pytest.raises(FieldError, match="counts: must be gpus, shared_gpus, cpu_millis"):
        QuotaLimit(resource="r", counts=kind, hard=1)
    with pytest.raises(FieldError, match="counted_as: must be gpus, shared_gpus or a resource"):
        replace(planning.node("n0", 2), counted_as=kind)


def test_a_resource_of_another_vendor_counts_by_its_name() -> None:
    node = replace(planning.node("n0", 4, cpus=12, gib=120), counted_as="amd.com/gpu")
    hard = QuotaLimit(resource="requests.amd.com/gpu", counts="amd.com/gpu", hard=3)
    other = QuotaLimit(resource="requests.nvidia.com/gpu", counts="gpus", hard=0)
    jobs = tuple(Job(name=f"red/{n}", gpus=2, quotas=(draw_on("red/gpus"),)) for n in ("a", "b"))
    snapshot = Snapshot(nodes=(node,), jobs=jobs, quotas=(Quota(name="red/gpus", limits=(hard, other)),))
    result = plan(snapshot, LAS)
    assert [a.job for a in result.allocations] == ["red/a"]
    assert waits(result) == {"red/b": "QuotaFull"}
