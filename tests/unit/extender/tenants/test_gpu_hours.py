"""GPU-hours over a day and a week: right, bounded, and kept by the next leader."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.resources.tenant_status import DAYS_KEPT, HOURS_KEPT, MOST_TYPES, GpuHours
from synergy_api.timestamps import format_time, parse_time
from synergy_extender.tenants.gpu_hours import MOST_GAP_S, counted
from synergy_extender.tenants.meters import UseMeters
from synergy_extender.tenants.uses import TenantUse

HOUR = 3600.0
START = 20_000 * 86_400.0
"""The beginning of a day."""


def after(used: dict[str, int], seconds: float, *, step: float = 600.0, hours: GpuHours | None = None) -> GpuHours:
    """The counts after so much use, counted every `step` seconds."""
    now = START if hours is None else parse_time(hours.counted_until)
    found = hours or GpuHours(counted_until=format_time(now))
    end = now + seconds
    while now < end:
        now = min(end, now + step)
        following = counted(found, used, now)
        assert following is not None
        found = following
    return found


def test_a_tenant_that_has_used_none_has_no_counts() -> None:
    assert counted(None, {}, START) is None
    assert counted(None, {"V100": 1}, START) == GpuHours(counted_until=format_time(START))


def test_use_is_counted_by_type_over_hours_and_days() -> None:
    found = after({"V100": 4, "T4": 1}, 90 * 60)
    assert found.day == found.week == {"V100": 6.0, "T4": 1.5}
    assert [(one.number - START / HOUR, round(one.gpu_hours["V100"], 6)) for one in found.hours] == [(0, 4.0), (1, 2.0)]


def test_a_day_ago_is_forgotten_hour_by_hour_and_a_week_ago_day_by_day() -> None:
    found = after({"V100": 2}, 3 * HOUR)
    found = after({}, 22 * HOUR, hours=found)
    assert found.day == {"V100": 4.0}, "the first of three hours is more than a day ago"
    assert found.week == {"V100": 6.0}
    found = after({}, 30 * 60, hours=found)
    assert found.day == {"V100": 3.0}, "half an hour counts half"
    found = after({}, 6.5 * 24 * HOUR, hours=found)
    assert found.day == {}
    assert found.week["V100"] < 6.0
    found = after({}, 24 * HOUR, hours=found)
    assert (found.week, found.hours, found.days) == ({}, [], [])


def test_a_month_of_use_takes_no_more_space_than_a_week() -> None:
    week = after({"V100": 3, "T4": 1}, 8 * 24 * HOUR)
    month = after({"V100": 3, "T4": 1}, 22 * 24 * HOUR, hours=week)
    assert month.day == pytest.approx({"V100": 72.0, "T4": 24.0}, abs=0.01)
    assert month.week == pytest.approx({"V100": 504.0, "T4": 168.0}, abs=0.01)
    for one in (week, month):
        assert len(one.hours) <= HOURS_KEPT
        assert len(one.days) <= DAYS_KEPT
        assert len(json.dumps(one.to_wire())) < 4000


def test_the_sum_over_hours_has_no_more_types_than_a_status_holds() -> None:
    found = after({f"A{number}": 1 for number in range(MOST_TYPES)}, HOUR)
    found = after({f"B{number}": 1 for number in range(MOST_TYPES)}, HOUR, hours=found)
    assert len(found.day) == len(found.week) == MOST_TYPES


def test_a_long_gap_counts_as_use_for_its_first_minutes_only() -> None:
    found = after({"V100": 1}, HOUR)
    found = counted(found, {"V100": 1}, START + 10 * HOUR) or found
    assert found.day == pytest.approx({"V100": 1 + MOST_GAP_S / HOUR})
    assert found.counted_until == format_time(START + 10 * HOUR)


def test_a_clock_that_goes_back_counts_nothing_twice() -> None:
    found = after({"V100": 1}, HOUR)
    assert counted(found, {"V100": 1}, START) == found


def test_counts_many_times_a_second_add_up() -> None:
    assert after({"V100": 1}, 360, step=0.1).day == {"V100": 0.1}


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 800)), max_size=30))
def test_however_often_it_is_counted_the_sum_is_the_same(drawn: list[tuple[int, int]]) -> None:
    found, total = GpuHours(counted_until=format_time(START)), 0.0
    now = START
    for gpus, seconds in drawn:
        now += seconds
        found = counted(found, {"V100": gpus} if gpus else {}, now) or found
        total += gpus * seconds / HOUR
    assert found.day.get("V100", 0.0) == pytest.approx(total, abs=0.01)
    assert found.week.get("V100", 0.0) == pytest.approx(total, abs=0.01)


class TestAcrossLeaders:
    def test_the_next_leader_goes_on_from_the_status(self) -> None:
        use = {"t": TenantUse(used={"V100": 2})}
        tenant = {"metadata": {"name": "t"}}
        first = UseMeters()
        first.count([tenant], use, START)
        hours = first.count([tenant], use, START + 600)["t"]
        assert hours is not None
        assert hours.day == {"V100": pytest.approx(1 / 3, abs=0.01)}
        written = {**tenant, "status": {"used": {"V100": 2}, "gpuHours": hours.to_wire()}}
        after_failover = UseMeters().count([written], {}, START + 630)["t"]
        assert after_failover is not None
        assert after_failover.day == {"V100": pytest.approx(2 * 630 / 3600, abs=0.01)}, "half a minute without a leader"

    def test_a_replica_that_leads_again_forgets_what_it_knew(self) -> None:
        meters, tenant = UseMeters(), {"metadata": {"name": "t"}}
        meters.count([tenant], {"t": TenantUse(used={"V100": 8})}, START)
        meters.forget()
        assert meters.count([tenant], {}, START + 600) == {"t": None}

    @pytest.mark.parametrize(
        "gpu_hours",
        [{"hours": 3}, {"countedUntil": "yesterday"}, {"countedUntil": format_time(START), "day": {"a": -1}}],
    )
    def test_counts_that_do_not_parse_are_begun_anew(self, gpu_hours: object) -> None:
        tenant = {"metadata": {"name": "t"}, "status": {"gpuHours": gpu_hours, "used": {"V100": 1}}}
        use = {"t": TenantUse(used={"V100": 1})}
        assert UseMeters().count([tenant], use, START) == {"t": GpuHours(counted_until=format_time(START))}

    def test_a_deleted_tenant_is_forgotten(self) -> None:
        meters, tenant = UseMeters(), {"metadata": {"name": "t"}}
        meters.count([tenant], {"t": TenantUse(used={"V100": 8})}, START)
        assert meters.count([], {}, START + 1) == {}
        assert meters.count([tenant], {}, START + 600) == {"t": None}
