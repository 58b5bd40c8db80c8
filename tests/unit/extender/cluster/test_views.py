"""Kubernetes objects reduced to what decisions need."""

from typing import Any

import pytest

from support.extender.cluster import GI, NOW, foreign, job, job_object, pod_object, worker, worker_labels
from synergy_api.amounts import Amounts
from synergy_extender.cluster.views import Key, RunMember, matters, member_of, read_job


def test_a_worker_pod_is_a_member_of_its_run() -> None:
    pod = worker("j", run=3, rank=2, node="n1", gpus=2, cpu="1500m", memory="2Gi", planned="n1")
    assert pod.member == RunMember(Key("team", "j"), 3, 2, "worker")
    assert (pod.node, pod.planned_node, pod.requests) == ("n1", "n1", Amounts(2, 1500, 2 << 30))
    assert pod.holds


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
    assert view.constraints == {"nodeSelector": {"a": "b"}}
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
