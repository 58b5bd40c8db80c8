"""Verbs look past a watch that is behind, at the API server itself."""

import pytest

from support.extender.world import GIB, Operator
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.views import read_pod
from synergy_extender.verbs.place import Refusal, Refused
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.verbs.wire import BindingArgs
from synergy_kube.resources import PODS, TRAINING_JOBS

pytestmark = pytest.mark.integration
SHARE = {"node": "fake-t4-000", "gpus": 1, "cpuMillis": 1000, "memoryBytes": GIB}


def blind(operator: Operator) -> ClusterPlacements:
    """Placements whose watch has brought nothing at all."""
    return ClusterPlacements(operator.kube, ClusterCache(operator.kube, lambda: None))


async def test_a_job_and_a_pod_that_the_watch_has_not_brought_are_found(operator: Operator) -> None:
    await operator.submit("new")
    await operator.allocation("new", state="Granted", admitted=True)
    allocation = (await operator.job("new"))["status"]["allocation"]
    body = operator.worker("new", allocation["run"], 0, allocation["workers"][0])
    body["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    created = await operator.kube.create(PODS, body, operator.namespace)
    placements, metadata = blind(operator), created["metadata"]
    args = BindingArgs(pod_name=metadata["name"], pod_namespace=operator.namespace, pod_uid=metadata["uid"], node="x")
    pod = await placements.pod_now(args)
    assert pod == read_pod(created)
    place, job = await placements.place_now(pod)
    assert (place, job is not None) == (allocation["workers"][0]["node"], True)
    assert placements.members(pod) == [pod]
    assert await placements.bound_node(pod) == ""


async def test_what_is_not_there_is_told_apart(operator: Operator) -> None:
    placements = blind(operator)
    body = operator.worker("nobody", 1, 0, SHARE)
    body["metadata"]["namespace"] = operator.namespace
    orphan = read_pod(body)
    assert await placements.place_now(orphan) == (Refusal(Refused.NO_JOB), None)
    gone = BindingArgs(pod_name="nobody-1-0", pod_namespace=operator.namespace, pod_uid="u", node="x")
    assert await placements.pod_now(gone) is None
    assert await placements.bound_node(orphan) == ""


async def test_a_pod_that_took_the_name_of_another_is_not_bound_in_its_stead(operator: Operator) -> None:
    body = operator.worker("twin", 1, 0, SHARE)
    body["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    await operator.kube.create(PODS, body, operator.namespace)
    other = BindingArgs(pod_name="twin-1-0", pod_namespace=operator.namespace, pod_uid="another", node="x")
    assert await blind(operator).pod_now(other) is None


async def test_a_job_that_does_not_parse_is_left_alone(operator: Operator) -> None:
    cache = ClusterCache(operator.kube, lambda: None)
    await operator.submit("fine")
    item = await operator.kube.get(TRAINING_JOBS, "fine", operator.namespace)
    cache.observe({**item, "spec": {**item["spec"], "gpus": -1}})
    assert cache.jobs == {}
    cache.observe(item)
    cache.observe({**item, "metadata": {**item["metadata"], "resourceVersion": "1"}})
    assert [job.resource_version for job in cache.jobs.values()] == [item["metadata"]["resourceVersion"]]
