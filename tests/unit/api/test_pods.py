"""Pod requests are counted as the kube-scheduler counts them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.pods import is_terminal, pod_requests

GI = 1 << 30


def container(name: str, cpu: str = "0", memory: str = "0", gpus: str = "0", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus}}, **more}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}, "status": {"phase": "Running"}}


def test_containers_are_summed_and_overhead_comes_on_top() -> None:
    counted = pod_requests(
        pod(
            container("a", "500m", "1Gi", "2"),
            container("b", "1", "1Gi"),
            overhead={"cpu": "250m", "memory": "64Mi"},
        )
    )
    assert counted == Amounts(2, 1750, 2 * GI + (64 << 20))


def test_the_largest_init_container_counts_only_where_it_exceeds_the_sum() -> None:
    counted = pod_requests(
        pod(container("a", "1", "1Gi"), initContainers=[container("i", "3", "512Mi"), container("j", "2", "256Mi")])
    )
    assert counted == Amounts(0, 3000, GI)


def test_a_sidecar_counts_with_the_containers_and_beside_later_init_containers() -> None:
    counted = pod_requests(
        pod(
            container("a", "1"),
            initContainers=[
                container("early", "2"),
                container("side", "1500m", restartPolicy="Always"),
                container("late", "2"),
            ],
        )
    )
    assert counted.cpu_millis == 3500  # late 2000 + side 1500, above a 1000 + side 1500


@pytest.mark.parametrize(
    ("desired", "allocated", "actual", "infeasible", "want"),
    [
        ("1", "3", "2", False, 3000),
        ("1", "1", "2", False, 2000),
        ("4", "1", "1", False, 4000),
        ("4", "1", "2", True, 2000),
    ],
    ids=["allocated", "actual still larger while shrinking", "desired while growing", "infeasible growth"],
)
def test_during_a_resize_the_greatest_of_desired_allocated_and_actual_counts(
    desired: str, allocated: str, actual: str, infeasible: bool, want: int
) -> None:
    resizing = pod(container("a", desired))
    resizing["status"]["containerStatuses"] = [
        {"name": "a", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
    ]
    if infeasible:
        resizing["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert pod_requests(resizing).cpu_millis == want


def test_what_was_infeasible_of_an_older_spec_says_nothing_of_the_newest() -> None:
    resizing = pod(container("a", "4"))
    resizing["metadata"] = {"generation": 3}
    infeasible = {"type": "PodResizePending", "reason": "Infeasible", "observedGeneration": 2}
    resizing["status"] |= {
        "containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}],
        "conditions": [infeasible],
    }
    assert pod_requests(resizing).cpu_millis == 4000
    infeasible["observedGeneration"] = 3
    assert pod_requests(resizing).cpu_millis == 2000


def test_a_pending_resize_that_is_only_deferred_counts_as_desired() -> None:
    resizing = pod(container("a", "4"))
    resizing["status"] |= {
        "conditions": [{"type": "PodResizePending", "reason": "Deferred"}],
        "containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
    }
    assert pod_requests(resizing).cpu_millis == 4000


def test_pod_level_requests_replace_the_sum_of_what_they_name() -> None:
    counted = pod_requests(
        pod(
            container("a", "1", "1Gi", "1"),
            container("b", "1", "1Gi"),
            resources={"requests": {"cpu": "5"}},
        )
    )
    assert counted == Amounts(1, 5000, 2 * GI)


def test_a_pod_level_resize_counts_the_greater_of_desired_and_actual() -> None:
    resizing = pod(container("a", "1"), resources={"requests": {"cpu": "2"}})
    resizing["status"] |= {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}
    assert pod_requests(resizing).cpu_millis == 3000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_terminal(phase: str) -> None:
    ended = pod(container("a", "1", "1Gi", "1"))
    ended["status"]["phase"] = phase
    assert is_terminal(ended)
    assert not is_terminal(pod(container("b", "2")))


def test_a_pod_without_requests_holds_nothing() -> None:
    assert pod_requests({"spec": {"containers": [{"name": "a"}]}}) == NOTHING


def test_half_a_gpu_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="'500m' is not a whole number of devices"):
        pod_requests(pod(container("a", gpus="500m")))


amounts = st.builds(Amounts, *[st.integers(-100, 100)] * 3)


@given(amounts, amounts)
def test_what_fits_leaves_no_field_it_asks_for_below_zero(ask: Amounts, room: Amounts) -> None:
    rest = room.minus(ask)
    assert ask.fits(room) == all(left >= 0 or want <= 0 for left, want in zip(rest, ask, strict=True))
    assert ask.fits(ask.at_least(room))
