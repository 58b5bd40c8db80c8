"""What each tenant uses, borrows, lends and waits for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, foreign, job_object, node_object, share, worker
from synergy_api.cluster.tenancy import read_tenancy
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.snapshot.entitlements import entitlements
from synergy_extender.tenants.uses import TenantUse, cluster_gpus, tenant_uses, tree_of

TREE = {
    "org": {},
    "a": {"parent": "org", "guarantee": {"V100": 4}, "namespaces": ["a"]},
    "b": {"parent": "org", "guarantee": {"V100": 2}, "namespaces": ["b"]},
    "c": {"namespaces": ["c"]},
}


def state_of(jobs: list[JobView], specs: dict[str, Any], **more: Any) -> ClusterState:
    objects = [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    tenancy = read_tenancy(objects, [])
    pods = [
        worker(f"{view.key.namespace}-{view.key.name}", node="n1", gpus=view.spec.gpus)
        for view in jobs
        if view.status.allocation is not None and view.status.allocation.state == "Granted"
    ]
    return cluster([node_object("n1", gpus=8)], jobs, [*pods, *more.get("pods", ())], tenancy=tenancy)


def runs(namespace: str, gpus: int, name: str = "runs", **more: Any) -> JobView:
    status = {"phase": "Running", "allocation": allocation(share("n1", gpus), **more)}
    return read_job(job_object(name, gpus=gpus, status=status, namespace=namespace))


def waits(namespace: str, gpus: int, name: str = "waits", **spec: Any) -> JobView:
    return read_job(job_object(name, gpus=gpus, spec=spec, namespace=namespace))


def uses(jobs: list[JobView], specs: dict[str, Any] | None = None, **more: Any) -> dict[str, TenantUse]:
    state = state_of(jobs, TREE if specs is None else specs, **more)
    tenants = {key: one.tenant for key, one in entitlements(jobs, state.tenancy, NOW).by_job.items()}
    return tenant_uses(state, tree_of(state), tenants, NOW)


def test_a_tenant_has_what_its_children_have() -> None:
    found = uses([runs("a", 2), waits("b", 3), runs("c", 1)])
    assert found["a"] == TenantUse(guaranteed={"V100": 4}, used={"V100": 2})
    assert found["b"] == TenantUse(guaranteed={"V100": 2}, waiting={"V100": 3})
    assert found["org"] == TenantUse(guaranteed={"V100": 6}, used={"V100": 2}, waiting={"V100": 3})
    assert found["c"] == TenantUse(used={"V100": 1}, borrowed={"V100": 1})


def test_what_one_borrows_is_lent_by_those_whose_guarantee_is_not_free() -> None:
    found = uses([runs("c", 7), runs("b", 1)])
    assert found["c"].borrowed == {"V100": 7}
    assert (found["a"].lent, found["b"].lent) == ({"V100": 4}, {"V100": 1})
    assert found["org"].lent == {"V100": 5}
    found = uses([runs("c", 5)])
    assert (found["a"].lent, found["b"].lent, found["org"].lent) == ({"V100": 2}, {"V100": 1}, {"V100": 3})
    assert uses([runs("c", 2)])["a"].lent == {}


def test_pods_of_others_take_of_what_is_free_and_count_for_no_tenant() -> None:
    found = uses([], pods=[foreign("notebook", node="n1", gpus=6)])
    assert found["org"] == TenantUse(guaranteed={"V100": 6}, lent={"V100": 4})


def test_jobs_that_wait_for_one_of_several_types_are_counted_apart() -> None:
    specs = {"a": {"namespaces": ["a"]}}
    objects = [node_object("n1"), node_object("n2", gpu_type="T4")]
    jobs = [waits("a", 1, "any"), waits("a", 2, "both", gpuTypes=["T4", "V100"]), waits("a", 4, "one", gpuTypes=["T4"])]
    state = cluster(objects, jobs, tenancy=state_of([], specs).tenancy)
    found = tenant_uses(state, tree_of(state), {job.key: "a" for job in jobs}, NOW)
    assert found["a"].waiting == {"*": 3, "T4": 4}


def test_types_that_no_node_has_are_no_entries_of_their_own() -> None:
    """Whoever may create jobs can name any: they must not fill the status of a Tenant."""
    found = uses([waits("a", 1, f"j{number}", gpuTypes=[f"Made-Up-{number}"]) for number in range(70)])
    assert found["a"].waiting == found["org"].waiting == {"*": 70}


def test_runs_that_leave_still_count_and_ended_and_suspended_jobs_do_not() -> None:
    leaving = runs("a", 2, "leaving", state="Revoked")
    ended = read_job(job_object("done", gpus=4, status={"phase": "Succeeded"}, namespace="a"))
    held = waits("a", 1, "suspended", suspend=True)
    assert uses([leaving, ended, held])["a"] == TenantUse(guaranteed={"V100": 4}, used={"V100": 2})


def test_a_gpu_that_jobs_share_counts_once_for_each_tenant() -> None:
    names = ["a/one", "a/two", "b/three"]

    def shares(namespace: str, name: str) -> JobView:
        partners = [one for one in names if one != f"{namespace}/{name}"]
        return runs(namespace, 1, name, sharedGpu={"asked": partners})

    found = uses([shares("a", "one"), shares("a", "two"), shares("b", "three")])
    assert [found[name].used for name in ("a", "b", "org")] == [{"V100": 1}] * 3


def test_a_cordoned_node_counts_while_a_job_holds_it() -> None:
    node = node_object("n1", unschedulable=True)
    assert cluster_gpus(cluster([node])) == {}
    assert cluster_gpus(cluster([node], pods=[worker("j", node="n1", gpus=1)])) == {"V100": 8}
    assert cluster_gpus(cluster([node_object("n1", ready=False)])) == {}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.booleans()), max_size=4))
def test_numbers_agree_with_one_another(drawn: list[tuple[str, int, bool]]) -> None:
    jobs = [(runs if on else waits)(place, gpus, f"j{index}") for index, (place, gpus, on) in enumerate(drawn)]
    found = uses(jobs)
    for use in found.values():
        used, guaranteed = use.used.get("V100", 0), use.guaranteed.get("V100", 0)
        assert use.borrowed.get("V100", 0) == max(0, used - guaranteed)
        assert use.lent.get("V100", 0) <= max(0, guaranteed - used)
        assert 0 not in {**use.used, **use.borrowed, **use.lent, **use.waiting}.values()
    assert found["org"].used.get("V100", 0) == found["a"].used.get("V100", 0) + found["b"].used.get("V100", 0)
    borrowed = found["org"].borrowed.get("V100", 0) + found["c"].borrowed.get("V100", 0)
    assert found["org"].lent.get("V100", 0) <= borrowed, "nothing is lent that nobody borrows"
