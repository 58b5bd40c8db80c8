"""The texts of `status.summary`, which `kubectl get` shows as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.sharing import SharedGPU
from synergy_api.parts.summary import cpu_text, gpus_text, memory_text, partners_text, speed_text, steps_text

GIB = 1 << 30


def allocation(*gpus: int, gpu_type: str = "V100", shared: SharedGPU | None = None) -> Allocation:
    """A place with so many GPUs on each node."""
    workers = [NodeShare(node=f"n{at}", gpus=each, cpu_millis=1, memory_bytes=1) for at, each in enumerate(gpus)]
    return Allocation(run=1, state="Granted", gpu_type=gpu_type, workers=workers, shared_gpu=shared)


def test_steps_done_stand_before_all_steps() -> None:
    assert steps_text(409, 1100) == "409/1100"


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (3.2, "3.2 steps/s"),
        (12.345, "12.3 steps/s"),
        (1234.5, "1234 steps/s"),
        (1e7, "10000000 steps/s"),
        (0.00321, "0.00321 steps/s"),
        (1e-12, "<0.000000001 steps/s"),
        (0.0, None),
    ],
)
def test_a_speed_has_its_unit_and_three_digits(speed: float, text: str | None) -> None:
    assert speed_text(speed) == text


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_a_speed_is_never_written_with_an_exponent_and_is_off_by_less_than_a_hundredth(speed: float) -> None:
    number, unit = str(speed_text(speed)).split()
    assert "e" not in number
    assert unit == "steps/s"
    assert float(number) == pytest.approx(speed, rel=0.01)


def test_gpus_of_all_nodes_are_counted_together_with_their_type() -> None:
    assert gpus_text(allocation(3, 1)) == "4 V100"


def test_a_job_that_holds_nothing_shows_no_gpus() -> None:
    assert gpus_text(allocation()) is None


def test_a_shared_gpu_is_shown_with_the_number_of_its_jobs() -> None:
    planned = SharedGPU(asked=["ns/b", "ns/c"])
    assert gpus_text(allocation(1, gpu_type="T4", shared=planned)) == "1/3 T4"
    seen = SharedGPU(asked=["ns/b", "ns/c"], seen=["ns/b"])
    assert gpus_text(allocation(1, gpu_type="T4", shared=seen)) == "1/2 T4", "who was seen there counts"
    alone = SharedGPU(asked=["ns/b"], seen=[])
    assert gpus_text(allocation(1, gpu_type="T4", shared=alone)) == "1 T4"


def test_partners_are_named_without_the_jobs_own_namespace() -> None:
    shared = SharedGPU(asked=["ns/b", "other/c"])
    assert partners_text(allocation(1, shared=shared), "ns") == "b, other/c"
    assert partners_text(allocation(1), "ns") is None


def test_many_partners_are_counted() -> None:
    shared = SharedGPU(asked=[f"ns/{letter}" for letter in "bcdef"])
    assert partners_text(allocation(1, shared=shared), "ns") == "b, c, d, +2"


def test_longest_names_stay_within_the_bound() -> None:
    shared = SharedGPU(asked=[f"{'n' * 63}/{'j' * 49}{at}" for at in range(9)])
    assert len(partners_text(allocation(1, shared=shared), "ns") or "") <= 1024


def test_cpu_and_memory_stand_beside_the_proportional_share() -> None:
    assert cpu_text(12_000, 6_000) == "12/6"
    assert cpu_text(1_500, 6_250) == "1.5/6.25"
    assert memory_text(48 * GIB, 24 * GIB) == "48/24Gi"
    assert memory_text(GIB // 2, 125 * GIB + 1) == "0.5/125Gi"


def test_without_a_known_share_the_amount_stands_alone() -> None:
    assert cpu_text(12_000, None) == "12"
    assert memory_text(48 * GIB, None) == "48Gi"
