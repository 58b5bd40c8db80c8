"""Quantities as Kubernetes writes them become the integers that everything here computes with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.quantity import byte_count, cpu_millis, format_bytes, format_cpu, parse_quantity, whole_count


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("500m", 500),
        ("2", 2000),
        (2, 2000),
        ("0.1", 100),
        ("1e3m", None),
        ("100u", 1),
        ("1.5", 1500),
        ("2k", 2_000_000),
    ],
)
def test_cpu_is_counted_in_millis_and_rounded_up(text: str | int, want: int | None) -> None:
    if want is None:
        with pytest.raises(ValueError, match="not a Kubernetes quantity"):
            cpu_millis(text)
    else:
        assert cpu_millis(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("64Gi", 64 << 30),
        ("1.5Gi", 3 << 29),
        ("100M", 100_000_000),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1500m", 2),
        ("12", 12),
    ],
)
def test_memory_is_counted_in_bytes(text: str, want: int) -> None:
    assert byte_count(text) == want


@pytest.mark.parametrize("text", ["", "Gi", "1GiB", "one", "1 Gi", "--1", "1,5"])
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["8Ei", "1e19", "-1e99", "9E25", "1e99999999", "1e-99999999", "9" * 10_000])
def test_what_no_quantity_can_be_is_refused_at_once(text: str) -> None:
    for read in (parse_quantity, cpu_millis, byte_count, whole_count):
        with pytest.raises(ValueError, match=r"is beyond 9223372036854775807|not a Kubernetes quantity") as found:
            read(text)
        assert len(str(found.value)) < 200


@pytest.mark.parametrize(("text", "want"), [("9E", 2**63 - 1), ("1e-99", 1), ("1e15", 10**18)])
def test_cpu_is_cut_to_64_bits(text: str, want: int) -> None:
    assert cpu_millis(text) == want


def test_half_a_device_is_refused() -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        whole_count("500m")


@given(st.integers(min_value=0, max_value=10**9))
def test_cpu_survives_formatting(millis: int) -> None:
    assert cpu_millis(format_cpu(millis)) == millis


@given(st.integers(min_value=0, max_value=10**15))
def test_bytes_survive_formatting(count: int) -> None:
    assert byte_count(format_bytes(count)) == count
