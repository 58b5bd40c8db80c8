"""Kubernetes objects reduced to what decisions need."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from support.extender.cluster import GI, NOW, foreign, job, job_object, pod_object, worker, worker_labels
from synergy_api.amounts import Amounts
from synergy_api.names import ANNOTATION_JOB_UID
from synergy_extender.cluster.quota_views import PodScopes
from synergy_extender.cluster.views import Key, RunMember, matters, member_of, read_job
from synergy_operator.views.job import MOST_TEMPLATE_BYTES


def test_a_worker_pod_is_a_member_of_its_run() -> None:
    pod = worker("j", run=3, rank=2, node="n1", gpus=2, cpu="1500m", memory="2Gi", planned="n1")
    assert pod.member == RunMember(Key("team", "j"), 3, 2, "worker")
    assert (pod.node, pod.planned_node, pod.requests) == ("n1", "n1", Amounts(2, 1500, 2 << 30))
    assert pod.holds


@pytest.mark.parametrize(
    ("owners", "annotations", "want"),
    [
        ([{"kind": "TrainingJob", "uid": "u", "controller": True}], {}, "u"),
        ([{"kind": "Job", "uid": "x", "controller": True}], {ANNOTATION_JOB_UID: "u"}, "u"),
        ([{"kind": "Job", "uid": "x", "controller": True}], {}, ""),
        ([{"kind": "TrainingJob", "uid": "x"}], {}, ""),
        ([], {}, ""),
    ],
    ids=["worker", "pod of another controller", "it says nothing", "no controller", "no owner"],
)
def test_a_pod_says_which_job_it_was_made_for(
    owners: list[dict[str, Any]], annotations: dict[str, str], want: str
) -> None:
    pod = pod_object("j-1-0", labels=worker_labels("j"))
    pod["metadata"] |= {"ownerReferences": owners, "annotations": annotations}
    member = member_of(pod)
    assert member is not None
    assert member.job_uid == want
    assert member.is_of(job("j", uid="u"))
    assert member.is_of(job("j", uid="other")) is (want == "")


def test_a_terminal_pod_holds_nothing_and_a_gated_one_is_seen() -> None:
    assert not foreign("p", node="n1", gpus=1, phase="Succeeded").holds
    assert foreign("p", schedulingGates=[{"name": "x"}]).gated


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {**worker_labels("j"), "kube-synergy.dev/run": "two"},
        {**worker_labels("j"), "kube-synergy.dev/rank": ""},
        {**worker_labels("j"), "kube-synergy.dev/role": "boss"},
        {**worker_labels("j"), "kube-synergy.dev/run": "1" * 5000},
        {k: v for k, v in worker_labels("j").items() if k != "kube-synergy.dev/run"},
    ],
)
def test_labels_that_name_no_place_in_a_run_make_no_member(labels: dict[str, str]) -> None:
    assert member_of(pod_object("p", labels=labels)) is None


def test_half_a_gpu_does_not_stop_the_watch() -> None:
    odd = pod_object("p")
    odd["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "500m"
    from synergy_extender.cluster.views import read_pod

    assert read_pod(odd).requests == Amounts()


def test_of_the_template_only_what_picks_nodes_is_kept() -> None:
    view = job("j", template={"nodeSelector": {"a": "b"}, "tolerations": [], "hostNetwork": True})
    assert view.constraints == '{"nodeSelector":{"a":"b"}}'
    assert (view.created, view.deleting, view.spec.template) == (NOW - 100, False, {})


@pytest.mark.parametrize(
    ("broken", "names"),
    [({"spec": {"gpus": 0}}, "gpus"), ({"status": {"phase": "Dreaming"}}, "phase")],
)
def test_a_job_that_does_not_parse_names_the_field(broken: dict[str, Any], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        read_job(job_object("j", **broken))


def test_a_template_without_a_bottom_is_left_alone() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ValueError, match=r"spec\.template: its fields are nested more than 100 levels deep"):
        read_job(job_object("j", template={"affinity": {"nodeAffinity": deep}}))


def test_what_picks_nodes_takes_no_more_memory_than_its_text() -> None:
    """Whatever its shape. A parsed `{}` takes 72 bytes, so that some jobs would end each replica."""
    nothings: Any = [{}] * 80_000
    objects = [job_object(f"j{index}", template={"affinity": {"junk": nothings}}) for index in range(4)]
    for index, item in enumerate(objects):
        item["spec"]["template"]["spec"]["nodeSelector"] = {"job": str(index)}
    encoded = [msgspec.json.encode(item) for item in objects]
    tracemalloc.start()
    views = [read_job(msgspec.json.decode(text)) for text in encoded]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1.5 * sum(map(len, encoded))
    assert len({view.constraints for view in views}) == 4


def test_equal_constraints_are_held_once() -> None:
    one, other = (job(name, template={"nodeSelector": {"b": "1", "a": "2"}}) for name in "ab")
    assert one.constraints is other.constraints
    assert job("c", template={"nodeSelector": {"a": "2", "b": "1"}}).constraints is one.constraints


@pytest.mark.parametrize("names", [500, 12_000])
def test_an_affinity_that_names_thousands_of_nodes_is_planned(names: int) -> None:
    view = job("j", template={"affinity": _on([f"gpu-node-{index:05}" for index in range(names)])})
    assert f"gpu-node-{names - 1:05}" in view.constraints


def test_constraints_as_large_as_a_template_must_not_be_are_left_alone() -> None:
    """The operator tells the author: the whole template is larger still."""
    with pytest.raises(ValueError, match=r"spec\.template\.spec: nodeSelector, affinity and tolerations have 26\d{4} "):
        job("j", template={"affinity": {"junk": "x" * (256 << 10)}})
    assert MOST_TEMPLATE_BYTES == 256 << 10


@pytest.mark.parametrize("name", ["x" * 254, [{}] * 1000, {"a": "b"}])
def test_what_can_be_no_class_of_pods_is_not_kept(name: Any) -> None:
    assert job("j", template={"priorityClassName": name}).scoped == PodScopes()


def _on(nodes: list[str]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_what_the_operator_tells_people_is_not_kept() -> None:
    told = {"conditions": [{"type": "Running", "some": "later version's"}], "workers": [{"name": "j-1-0"}]}
    view = read_job(job_object("j", status={"phase": "Running", **told}))
    assert (view.status.phase, view.status.conditions, view.status.workers) == ("Running", [], [])


def test_fields_that_a_newer_version_has_written_are_left_unread() -> None:
    """After a rollback a job keeps its place."""
    progress = {"run": 1, "steps": 4, "epochsLeft": 3}
    view = read_job(job_object("j", status={"phase": "Running", "mood": "good", "progress": progress}))
    assert (view.status.phase, view.status.progress and view.status.progress.steps) == ("Running", 4)


def _measured(*speeds: float) -> dict[str, object]:
    matrix = {
        "gpuType": "V100",
        "cpuMillis": [1000, 2000],
        "memoryBytes": [GI],
        "stepsPerSecond": [[s] for s in speeds],
    }
    return {"profile": {"state": "Complete", "matrices": [matrix]}}


def test_a_matrix_is_held_once_and_equal_ones_are_the_same_object() -> None:
    one, other = job("a", status=_measured(1.0, 2.0)), job("b", status=_measured(1.0, 2.0))
    assert one.profiles["V100"] is other.profiles["V100"]
    assert one.profiles["V100"].steps_per_s == ((1.0,), (2.0,))
    assert one.status.profile is not None
    assert one.status.profile.matrices == []


def test_another_matrix_wakes_the_planner() -> None:
    one, same = job("a", status=_measured(1.0, 2.0)), job("a", status=_measured(1.0, 2.0))
    assert matters(one) == matters(same)
    assert matters(one) != matters(job("a", status=_measured(1.0, 2.5)))


def test_views_share_the_sets_of_given_fields_and_copies_have_their_own() -> None:
    one, other = (job(name, status={"progress": {"run": 1, "steps": steps}}) for name, steps in (("a", 1), ("b", 2)))
    assert one.status.progress is not None
    assert other.status.progress is not None
    assert one.spec.model_fields_set is other.spec.model_fields_set
    assert one.status.progress.model_fields_set is other.status.progress.model_fields_set == {"run", "steps"}
    copied = one.status.progress.model_copy(update={"percent": 5})
    assert copied.model_fields_set == {"run", "steps", "percent"}
    assert one.status.progress.model_fields_set == {"run", "steps"}
    assert one.status.to_wire() == {"phase": "Queued", "progress": one.status.progress.to_wire()}
