"""What a Tenant's status says, when it is written, and what is measured of all Tenants."""

from dataclasses import replace
from typing import Any

import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import NOW, allocation, cluster, job_object, node_object, share, worker
from support.extender.leads import Leads
from synergy_api.cluster.tenancy import read_tenancy
from synergy_api.resources.tenant_status import MOST_TYPES, GpuHours
from synergy_api.timestamps import format_time
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import read_job
from synergy_extender.metrics import Metrics
from synergy_extender.planning.measures import MOST_TENANTS, OTHERS, measure_uses
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.planning.publisher import Publisher
from synergy_extender.tenants.statuses import TenantFacts, gpus_text, only_hours_differ, tenant_statuses
from synergy_extender.tenants.uses import TenantUse, tree_of

Json = dict[str, Any]


def tenant(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", "generation": 2}, "spec": spec}


def state_of(objects: list[Json], *, gpus: int = 8, running: int = 0) -> ClusterState:
    tenancy = read_tenancy(objects, [{"metadata": {"name": "team"}}])
    status = {"phase": "Running", "allocation": allocation(share("n1", running))}
    jobs = [read_job(job_object("j", gpus=running, status=status))] if running else []
    pods = [worker("j", node="n1", gpus=running)] if running else []
    return cluster([node_object("n1", gpus=gpus)], jobs, pods, tenancy=tenancy)


def conditions(objects: list[Json], gpus: int = 8) -> dict[str, dict[str, tuple[str, str]]]:
    state = state_of(objects, gpus=gpus)
    found = tenant_statuses(objects, TenantFacts(state.tenancy, tree_of(state)), NOW)
    return {
        name: {one.type: (one.status, one.reason) for one in status.conditions if one.type != "Valid"}
        for name, status in found.items()
    }


def test_each_tenant_hears_what_several_say_together() -> None:
    found = conditions(
        [
            tenant("org", guarantee={"V100": 4}),
            tenant("a", parent="org", guarantee={"V100": 4}),
            tenant("b", parent="org", guarantee={"V100": 4}),
            tenant("lost", parent="gone"),
            tenant("x", parent="y"),
            tenant("y", parent="x"),
            tenant("plain"),
        ]
    )
    assert found == {
        "org": {"GuaranteeKept": ("True", "GuaranteeCovered")},
        "a": {"InTree": ("True", "ParentFound"), "GuaranteeKept": ("False", "GuaranteesAboveParent")},
        "b": {"InTree": ("True", "ParentFound"), "GuaranteeKept": ("False", "GuaranteesAboveParent")},
        "lost": {"InTree": ("False", "UnknownParent")},
        "x": {"InTree": ("False", "ParentCycle")},
        "y": {"InTree": ("False", "ParentCycle")},
        "plain": {},
    }


def test_conditions_follow_the_cluster_s_nodes() -> None:
    objects = [tenant("a", guarantee={"V100": 8})]
    assert conditions(objects, gpus=8)["a"] == {"GuaranteeKept": ("True", "GuaranteeCovered")}
    assert conditions(objects, gpus=7)["a"] == {"GuaranteeKept": ("False", "GuaranteesAboveCluster")}


def test_a_tenant_with_children_needs_no_namespace() -> None:
    objects = [tenant("org"), tenant("a", parent="org", namespaces=["team"])]
    state = state_of(objects)
    found = tenant_statuses(objects, TenantFacts(state.tenancy, tree_of(state)), NOW)
    assert [(one.conditions[0].status, one.conditions[0].reason) for one in found.values()] == [
        ("True", "TenantEstablished")
    ] * 2


def test_gpus_are_told_as_text_for_columns() -> None:
    assert gpus_text({"V100": 4, "A100": 8, "T4": 0}) == "8 A100, 4 V100"
    assert gpus_text({"*": 3, "T4": 1}) == "3, 1 T4"
    assert gpus_text({f"T{number}": 1 for number in range(6)}) == "1 T0, 1 T1, 1 T2, 1 T3, ..."
    assert gpus_text({}) == ""


def test_a_status_has_room_for_so_many_types_and_shows_those_with_most_gpus() -> None:
    objects = [tenant("a", namespaces=["team"])]
    state = state_of(objects)
    used = {f"T{number}": number + 1 for number in range(MOST_TYPES + 1)}
    (status,) = tenant_statuses(
        objects, TenantFacts(state.tenancy, tree_of(state), uses={"a": TenantUse(used=used)}), NOW
    ).values()
    assert status.used == {kind: gpus for kind, gpus in used.items() if gpus > 1}


def test_newer_gpu_hours_alone_are_told_apart() -> None:
    objects = [tenant("a", namespaces=["team"])]
    state = state_of(objects)
    hours = GpuHours(counted_until=format_time(NOW))
    facts = TenantFacts(state.tenancy, tree_of(state), hours={"a": hours})
    (status,) = tenant_statuses(objects, facts, NOW).values()
    written = {**objects[0], "status": status.to_wire()}
    assert tenant_statuses([written], facts, NOW) == {}
    later = replace(facts, hours={"a": GpuHours(counted_until=format_time(NOW + 60))})
    assert only_hours_differ(written, tenant_statuses([written], later, NOW)["a"])
    used = replace(facts, uses={"a": TenantUse(used={"V100": 1})})
    assert not only_hours_differ(written, tenant_statuses([written], used, NOW)["a"])


class _Cache(ClusterCache):
    """A cache that has these Tenants."""

    tenants: list[Json] = []

    def objects(self, plural: str) -> list[Json]:
        return self.tenants if plural == "tenants" else []


async def test_statuses_are_written_at_a_bounded_rate() -> None:
    """Use that changes is told every 10 s, GPU-hours every 5 minutes; a condition that changes at once."""
    server = WatchServer()
    async with following(server) as (client, _):
        cache = _Cache(client, lambda: None)
        publisher = Publisher(client, cache, Metrics(), lead=Leads())

        async def written(at: float, *, running: int, gpus: int = 8) -> list[Json]:
            """What is written, and then stands in the object."""
            server.patches.clear()
            state = state_of(cache.tenants, gpus=gpus, running=running)
            await publisher.publish(state, PolicyInForce(), NOW + at)
            for patch in server.patches:
                cache.tenants[0]["status"] = patch["status"]
            return [patch["status"] for patch in server.patches]

        cache.tenants = [tenant("a", namespaces=["team"], guarantee={"V100": 4})]
        (first,) = await written(0, running=2)
        assert first["used"] == {"V100": 2}
        assert first["summary"] == {"guaranteed": "4 V100", "used": "2 V100"}
        assert await written(5, running=6) == [], "5 s later"
        (second,) = await written(10, running=6)
        assert (second["used"], second["borrowed"]) == ({"V100": 6}, {"V100": 2})
        assert second["gpuHours"]["day"] == {"V100": pytest.approx((2 * 5 + 6 * 5) / 3600, abs=0.006)}
        for at in range(20, 310, 30):
            assert await written(at, running=6) == [], f"only the hours differ after {at} s"
        (third,) = await written(310, running=6)
        assert third["gpuHours"]["day"] == {"V100": pytest.approx((2 * 5 + 6 * 305) / 3600, abs=0.006)}
        (fourth,) = await written(311, running=2, gpus=2)
        assert fourth["conditions"][1]["reason"] == "GuaranteesAboveCluster"


async def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    server = WatchServer()
    async with following(server) as (client, _):
        cache = _Cache(client, lambda: None)
        cache.tenants = [tenant("a", namespaces=["team"])]
        publisher = Publisher(client, cache, Metrics(), lead=Leads(leading=False))
        await publisher.publish(state_of(cache.tenants), PolicyInForce(), NOW)
        assert server.patches == []


def test_the_gauge_of_tenants_has_so_many_series_and_sums_up_the_rest() -> None:
    metrics = Metrics()

    def sample(name: str, use: str) -> float | None:
        labels = {"tenant": name, "gpu_type": "V100", "use": use}
        return metrics.registry.get_sample_value("kube_synergy_tenant_type_gpus", labels)

    uses = {f"t{number:04}": TenantUse(used={"V100": 2}, lent={"V100": 1}) for number in range(MOST_TENANTS + 3)}
    measure_uses(metrics.jobs, uses)
    assert sample("t0000", "used") == 2
    assert sample(f"t{MOST_TENANTS:04}", "used") is None
    assert (sample(OTHERS, "used"), sample(OTHERS, "lent")) == (6, 3)
    measure_uses(metrics.jobs, {})
    assert sample("t0000", "used") is None
