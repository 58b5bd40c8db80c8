"""What tenants' caps let jobs ask for, and what plans make of it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, job, job_object, key, node_object, share, team_of
from synergy_api.cluster.tenancy import Tenancy, read_tenancy
from synergy_api.reasons import Reason
from synergy_api.timestamps import format_time
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.snapshot.entitlements import entitlements, never_preempted_gpus
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_extender.tenants.statuses import TenantCounts, TenantFacts, tenant_statuses

EVIL = {"tenant": "victim", "weight": 1e6, "slo": {"deadline": format_time(NOW + 60)}}


def never(name: str, gpus: int = 1, *, runs: bool = False, age: float = 100.0) -> JobView:
    status = {"allocation": allocation(share("n1", gpus=gpus)), "phase": "Running"} if runs else {}
    created = format_time(NOW - age)
    spec = {"preemption": "Never"}
    return job(name, gpus=gpus, status=status, spec=spec, creationTimestamp=created)


def test_without_tenants_a_job_is_of_its_namespace_with_weight_one_and_no_deadline() -> None:
    built = build_snapshot(cluster([node_object("n1")], [job("j", spec=EVIL)]), mode="round", now=NOW, round_s=20)
    (one,) = built.snapshot.jobs
    assert (one.tenant, one.weight, one.deadline_s) == ("team", 1.0, None)
    told = built.entitled.by_job[key("j")].restriction
    assert told is not None
    assert (told.tenant, told.reason) == ("team", "TenantRefused")
    for words in ("spec.tenant is victim", "belongs to team", "spec.weight is 1e+06", "spec.slo.deadline"):
        assert words in told.message


def test_a_job_within_the_caps_is_told_nothing() -> None:
    allowed = team_of("a", "victim", maxWeight=1e6, deadlines="Allowed")
    state = cluster([node_object("n1")], [job("j", spec=EVIL)], tenancy=allowed)
    built = build_snapshot(state, mode="round", now=NOW, round_s=20)
    (one,) = built.snapshot.jobs
    assert (one.tenant, one.weight, one.deadline_s) == ("victim", 1e6, NOW + 60)
    assert built.entitled.by_job[key("j")].restriction is None


def test_a_profile_run_counts_for_the_established_tenant_too() -> None:
    request = {"gpuType": "V100", "gpus": 1, "cpuMillis": 1000, "memoryBytes": 1 << 30}
    status = {"phase": "Profiling", "profile": {"state": "Measuring", "request": request}}
    state = cluster([node_object("n1")], [job("j", spec=EVIL, status=status)])
    (one,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert (one.purpose, one.tenant) == ("profile", "team")


def test_jobs_of_two_namespaces_that_name_one_tenant_are_of_two() -> None:
    own, other = job("own"), read_job(job_object("other", namespace="elsewhere", spec={"tenant": "team"}))
    state = cluster([node_object("n1")], [own, other])
    found = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert {one.name: one.tenant for one in found} == {"team/own": "team", "elsewhere/other": "elsewhere"}


class TestNeverPreempted:
    def test_without_a_tenant_such_a_job_waits_and_hears_why(self) -> None:
        built = build_snapshot(cluster([node_object("n1")], [never("j")]), mode="round", now=NOW, round_s=20)
        assert built.snapshot.jobs == ()
        told = built.refused[key("j")]
        assert told.reason is Reason.NEVER_PREEMPTED_CAP
        assert "at most 0 GPUs" in told.message

    def test_one_that_runs_beyond_the_cap_is_preempted_like_others(self) -> None:
        state = cluster([node_object("n1")], [never("j", runs=True)])
        built = build_snapshot(state, mode="round", now=NOW, round_s=20)
        (one,) = built.snapshot.jobs
        assert one.preemptible
        told = built.entitled.by_job[key("j")].restriction
        assert told is not None
        assert told.reason == "TenantCapped"

    def test_jobs_that_hold_gpus_come_first_then_the_order_of_arrival(self) -> None:
        jobs = [never("runs", 2, runs=True, age=1), never("early", 2, age=90), never("late", 1, age=80)]
        found = entitlements(jobs, team_of("t", maxNeverPreemptedGPUs=4), NOW)
        assert set(found.waits) == {key("late")}
        assert never_preempted_gpus(jobs, found, NOW) == {"t": 2}

    def test_a_small_job_does_not_pass_a_larger_one_that_came_first(self) -> None:
        jobs = [never("runs", 2, runs=True), never("large", 4, age=90), never("small", 1, age=80)]
        assert set(entitlements(jobs, team_of("t", maxNeverPreemptedGPUs=4), NOW).waits) == {key("large"), key("small")}

    def test_a_job_larger_than_the_cap_stands_in_nobody_s_way(self) -> None:
        jobs = [never("huge", 8, age=90), never("small", 1, age=80)]
        assert set(entitlements(jobs, team_of("t", maxNeverPreemptedGPUs=4), NOW).waits) == {key("huge")}

    @given(st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.integers(0, 500)), max_size=12), st.integers(0, 16))
    def test_never_more_than_the_cap(self, drawn: list[tuple[int, bool, int]], cap: int) -> None:
        jobs = [never(f"j{i}", gpus, runs=runs, age=float(age)) for i, (gpus, runs, age) in enumerate(drawn)]
        found = entitlements(jobs, team_of("t", maxNeverPreemptedGPUs=cap), NOW)
        kept = [one for one in jobs if one.key not in found.waits and not found.by_job[one.key].preemptible]
        assert sum(one.spec.gpus for one in kept) <= cap
        if not kept:
            assert all(one.spec.gpus > cap for one in jobs)


def _facts(tenancy: Tenancy) -> TenantFacts:
    return TenantFacts(tenancy, counts={"good": TenantCounts(3, 2)})


def _said(tenancy: Tenancy, *tenants: dict[str, Any]) -> dict[str, tuple[str, str]]:
    found = tenant_statuses(tenants, _facts(tenancy), NOW)
    return {name: (status.conditions[0].status, status.conditions[0].reason) for name, status in found.items()}


def test_each_tenant_says_whether_it_is_valid() -> None:
    specs = {"good": {"namespaces": ["team"]}, "empty": {"namespaces": ["gone"]}, "bad": {"weight": -1}}
    tenants = [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    tenancy = read_tenancy(tenants, [{"metadata": {"name": "team"}}])
    assert _said(tenancy, *tenants) == {
        "good": ("True", "TenantEstablished"),
        "empty": ("False", "NoNamespaces"),
        "bad": ("False", "InvalidTenant"),
    }
    (good,) = tenant_statuses(tenants[:1], _facts(tenancy), NOW).values()
    assert (good.namespaces, good.jobs, good.never_preempted_gpus) == (1, 3, 2)
    same = {**tenants[0], "status": good.to_wire()}
    assert tenant_statuses([same], _facts(tenancy), NOW) == {}
