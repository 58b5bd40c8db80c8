"""What would make a waiting job start: what is told helps, and what would not help is not told."""

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, NodeShare, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_view.remedies import Help, what_would_help

GIB = 2**30
CONFIG = PlanConfig(policy="fifo", mechanism="tune")


def node(name: str, gpu_type: str = "V100", gpus: int = 4, **more: Any) -> Node:
    return Node(name=name, gpu_type=gpu_type, gpus=gpus, cpu_millis=4000 * gpus, memory_bytes=16 * GIB * gpus, **more)


def holder(name: str, on: Node, gpus: int, cpu_millis: int = 1000) -> Job:
    """A job that keeps its GPUs until it is done."""
    share = NodeShare(node=on.name, gpus=gpus, cpu_millis=cpu_millis, memory_bytes=GIB)
    running = Allocation(job=name, gpu_type=on.gpu_type, workers=(share,))
    return Job(
        name=name, gpus=gpus, running=running, preemptible=False, cpu_millis_min=cpu_millis, cpu_millis_max=cpu_millis
    )


def waiting(gpus: int = 2, **more: Any) -> Job:
    return Job(name="team/waits", gpus=gpus, arrival_s=5.0, **more)


def helped(
    nodes: list[Node], jobs: list[Job], config: PlanConfig = CONFIG, *, plans: int = 100, name: str = "team/waits"
) -> Help | None:
    left = iter(range(plans))
    snapshot = Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), now=10.0)
    return what_would_help(snapshot, config, name, lambda: next(left, None) is not None)


def kinds(found: Help | None) -> list[str]:
    assert found is not None
    return [one.kind for one in found.remedies]


FULL = node("v1")
IDLE = node("t1", "T4")


def test_another_type_or_a_node_more_helps_and_fewer_gpus_do_not() -> None:
    found = helped([FULL, IDLE], [holder("team/runs", FULL, 4), waiting(gpu_types=("V100",))])
    assert kinds(found) == ["gpuTypes", "node"]
    assert found is not None
    other, more = found.remedies
    assert other.told == "allow T4 too"
    assert other.gets.startswith("2 T4 GPUs on 1 node, ")
    assert other.step == (
        'kubectl patch trainingjob waits -n team --type merge -p \'{"spec":{"gpuTypes":["V100","T4"]}}\''
    )
    assert more.told.startswith("one node more with 4 V100 GPUs")
    assert (more.step, found.complete, found.starts_anyway) == ("", True, False)


def test_the_command_is_for_a_shell_whatever_the_types_are_called() -> None:
    odd = "V'; echo owned; '"
    found = helped([FULL, IDLE], [holder("team/runs", FULL, 4), waiting(gpu_types=("V100", odd))])
    assert found is not None
    words = shlex.split(found.remedies[0].step)
    assert words[:3] == ["kubectl", "patch", "trainingjob"]
    assert json.loads(words[-1]) == {"spec": {"gpuTypes": ["V100", odd, "T4"]}}


def test_the_other_type_is_not_told_where_it_is_full_too() -> None:
    jobs = [holder("team/runs", FULL, 4), holder("team/too", IDLE, 3), waiting(gpu_types=("V100",))]
    assert kinds(helped([FULL, IDLE], jobs)) == ["node"]


def test_the_most_gpus_that_are_free_are_told() -> None:
    found = helped([node("v1", gpus=8)], [holder("team/runs", node("v1", gpus=8), 5), waiting(8)])
    assert found is not None
    assert [one.told for one in found.remedies if one.kind == "gpus"] == ["submit it with 2 instead of 8 GPUs"]


@pytest.mark.parametrize(
    ("least", "told"),
    [
        ({"cpu_millis_min": 10_000}, ["cpu"]),
        ({"cpu_millis_min": 2_000}, []),
        ({"cpu_millis_min": 10_000, "memory_bytes_min": GIB}, ["cpu"]),
        ({"cpu_millis_min": 10_000, "memory_bytes_min": 64 * GIB}, ["cpuAndMemory"]),
    ],
)
def test_less_cpu_and_memory_are_told_only_where_these_are_short(least: dict[str, int], told: list[str]) -> None:
    jobs = [holder("team/runs", FULL, 2, cpu_millis=8_000), waiting(2, **least)]
    found = helped([FULL], jobs)
    assert found is not None
    assert found.starts_anyway == (not told)
    assert [kind for kind in kinds(found) if ("pu" in kind and kind != "gpus") or kind == "memory"] == told


def test_a_job_that_waits_for_one_node_may_allow_several() -> None:
    one, other = node("v1"), node("v2")
    jobs = [holder("team/a", one, 2), holder("team/b", other, 2), waiting(4, placement="consolidate")]
    found = helped([one, other], jobs)
    assert "placement" in kinds(found)
    assert found is not None
    assert "on 2 nodes" in next(item.gets for item in found.remedies if item.kind == "placement")


USAGE = {"V100": Usage(compute=0.3, bandwidth=0.2, memory_bytes=2 * GIB)}


@pytest.mark.parametrize(
    ("partner_tenant", "mode", "told"),
    [("team", "thesis-fractions", ["sharing"]), ("other", "thesis-fractions", ["sharing"]), ("team", "none", [])],
)
def test_sharing_is_told_where_a_partner_would_share(partner_tenant: str, mode: Any, told: list[str]) -> None:
    small = node("v1", gpus=1, replicas=2, gpu_memory_bytes=32 * GIB)
    config = replace(CONFIG, colocation=mode)
    share = NodeShare(node="v1", gpus=1, cpu_millis=1000, memory_bytes=GIB)
    partner = Job(
        name=f"{partner_tenant}/runs", gpus=1, sharing=True, sharing_across_tenants=True, tenant=partner_tenant,
        usage=USAGE, running=Allocation(job=f"{partner_tenant}/runs", gpu_type="V100", workers=(share,)),
    )  # fmt: skip
    found = helped([small], [partner, waiting(1, tenant="team", usage=USAGE)], config)
    assert [kind for kind in kinds(found) if kind == "sharing"] == told
    if told:
        assert found is not None
        step = next(one.step for one in found.remedies if one.kind == "sharing")
        assert ("acrossTenants" in step) == (partner_tenant == "other")


def test_a_job_that_starts_anyway_needs_nothing() -> None:
    found = helped([FULL], [waiting(2)])
    assert found == Help(starts_anyway=True)


def test_jobs_that_no_plan_considers_are_told_nothing() -> None:
    assert helped([FULL], [waiting()], name="team/other") is None
    assert helped([FULL], [holder("team/runs", FULL, 4)], name="team/runs") is None


@pytest.mark.parametrize("plans", [0, 1, 2])
def test_without_time_what_was_found_so_far_is_told(plans: int) -> None:
    jobs = [holder("team/runs", FULL, 4), waiting(gpu_types=("V100",))]
    found = helped([FULL, IDLE], jobs, plans=plans)
    assert found is not None
    assert not found.complete
    assert kinds(found) == (["gpuTypes"] if plans == 2 else [])


def test_what_is_told_is_what_a_plan_of_the_changed_cluster_says() -> None:
    jobs = [holder("team/runs", FULL, 4), waiting(gpu_types=("V100",))]
    found = helped([FULL, IDLE], jobs)
    assert found is not None
    changed = Snapshot(nodes=(FULL, IDLE), jobs=(jobs[0], replace(jobs[1], gpu_types=("V100", "T4"))), now=10.0)
    (given,) = [one for one in plan(changed, CONFIG).allocations if one.job == "team/waits"]
    cpu = sum(share.cpu_millis for share in given.workers)
    assert f"{cpu // 1000} CPU" in found.remedies[0].gets
