"""The pure parts of `kube-synergy bench e2e`: percentiles, what metrics say, aims, the report."""

import math

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client import Histogram as Measured

from synergy_cli.bench.e2e.aims import aims
from synergy_cli.bench.e2e.percentiles import Histogram, counter, histogram, percentile
from synergy_cli.bench.e2e.run import Sizes
from synergy_cli.bench.e2e.stages.handover import leader_of
from synergy_cli.bench.e2e.stages.reconcile import Reconciled, ratio
from synergy_cli.bench.e2e.table import text
from synergy_cli.bench.e2e.table_of_stages import reconcile_text
from synergy_cli.main import main

FILTERING = {"names": 1000, "calls": 10, "p50_ms": 0.5, "p99_ms": 1.5, "slowest_ms": 1.9}


def reconciled(seconds: float, megabytes: float) -> dict[str, object]:
    cpu = {"operator": seconds, "kube-apiserver": 2 * seconds, "etcd": 1.0}
    return {"jobs": 1000, "created_s": 3.0, "reconciled_s": seconds, "operator_mb": megabytes, "cpu_ms": cpu}


SCALE = {
    "jobs": 1000, "all_running_s": 30.0, "start_s": 0.7, "start_p99_s": 0.9, "pod_start_s": 0.2, "pods_per_s": 130.0,
    "plan_p50_ms": None, "plan_p99_ms": 9.0,
    "memory_mb": {"operator": 100.0, "extender": 200.0, "scheduler": 60.0},
}  # fmt: skip
REPORT = {
    "machine": {"cores": 2, "cpu": "x", "memory_gib": 24.0, "kubernetes": "1.36", "python": "3.11"},
    "binding": {
        "with_extender_per_s": 160.0, "without_extender_per_s": 180.0, "ratio": 160 / 180,
        "with_bare_extender_per_s": 155.0, "ratio_to_bare": 160 / 155,
        "filter_p50_ms": 0.1, "filter_p99_ms": 0.2, "bind_p50_ms": 30.0, "bind_p99_ms": 60.0,
    },
    "filter_quiet": FILTERING,
    "filter_bare": {**FILTERING, "p99_ms": 1.25},
    "filter_while_planning": {**FILTERING, "p99_ms": 1.6},
    "filter_bare_while_planning": {**FILTERING, "p99_ms": 1.25},
    "reconcile": reconciled(4.0, 90.0),
    "reconcile_bare": reconciled(3.5, 70.0),
    "scale": [SCALE],
    "round": {
        "jobs": 1000, "starts": 9, "start_p50_s": 0.8, "start_p99_s": 2.5, "plan_ms": 300.0, "write_ms": 20.0,
        "status_writes": 18, "in_time": True,
    },
    "hand_over": [
        {"killed": True, "seconds": 7.0, "lost": 0, "doubled": 0},
        {"killed": False, "seconds": 2.0, "lost": 0, "doubled": 0},
    ],
}  # fmt: skip


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_is_a_sample_that_enough_others_do_not_exceed(samples: list[float], share: float) -> None:
    found = percentile(samples, share)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= share * len(samples) - 1e-6
    assert sum(sample < found for sample in samples) < share * len(samples)


def test_no_samples_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)


def shown(values: list[float]) -> str:
    registry = CollectorRegistry()
    measured = Measured("verb_seconds", "help", ["verb"], buckets=(1.0, 2.0, 4.0), registry=registry)
    for value in values:
        measured.labels("filter").observe(value)
    measured.labels("bind").observe(3.0)
    Counter("rounds", "help", registry=registry).inc(7)
    return generate_latest(registry).decode()


def test_a_histogram_is_read_as_it_was_measured() -> None:
    found = histogram(shown([0.5, 1.5, 1.5, 3.0]), "verb_seconds", verb="filter")
    assert found.buckets == {1.0: 1, 2.0: 3, 4.0: 4, math.inf: 4}
    assert (found.count, found.mean) == (4, pytest.approx(6.5 / 4))
    assert found.percentile(0.5) == pytest.approx(1.5)
    assert found.percentile(1.0) == pytest.approx(4.0)
    assert histogram(shown([]), "another") == Histogram()
    assert counter(shown([]), "rounds") == 7
    assert counter(shown([]), "another") == 0


def test_of_two_readings_what_came_between_counts() -> None:
    earlier = histogram(shown([0.5, 0.5]), "verb_seconds", verb="filter")
    later = histogram(shown([0.5, 0.5, 3.0]), "verb_seconds", verb="filter")
    between = later.since(earlier)
    assert (between.count, between.mean) == (1, 3.0)
    assert between.percentile(0.99) == pytest.approx(2 + 2 * 0.99)
    assert later.since(later).percentile(0.5) is None
    assert later.since(later).mean is None


def test_above_the_last_bound_the_last_bound_is_all_that_is_known() -> None:
    assert histogram(shown([9.0]), "verb_seconds", verb="filter").percentile(0.5) == 4.0


def test_an_aim_is_met_or_not_by_its_own_relation() -> None:
    assert all(aim["met"] for aim in aims(REPORT))
    slow = {**REPORT, "filter_quiet": {**FILTERING, "p99_ms": 2.0}}
    assert [aim["name"] for aim in aims(slow) if not aim["met"]] == [
        "filter_p99_ms_at_1000_names",
        "filter_p99_of_a_bare_extender_quiet",
    ]
    busy = {**REPORT, "filter_bare_while_planning": {**FILTERING, "p99_ms": 1.0}}
    assert [aim["name"] for aim in aims(busy) if not aim["met"]] == ["filter_p99_of_a_bare_extender_while_planning"]
    lost = {**REPORT, "hand_over": [{"killed": True, "seconds": 15.0, "lost": 1, "doubled": 0}]}
    assert [aim["name"] for aim in aims(lost) if not aim["met"]] == ["hand_over_s", "bindings_lost_or_doubled"]
    late = {**REPORT, "round": {**REPORT["round"], "in_time": False}}  # type: ignore[dict-item]
    assert [aim["name"] for aim in aims(late) if not aim["met"]] == ["rounds_written_late"]
    slowly = {**REPORT, "reconcile_bare": reconciled(2.0, 70.0)}
    assert [aim["name"] for aim in aims(slowly) if not aim["met"]] == ["reconciled_once_of_a_bare_handler"]


def test_the_text_shows_aims_and_sizes() -> None:
    lines = text({**REPORT, "aims": aims(REPORT)}).splitlines()
    assert lines[0].startswith("2 cores (x), 24 GiB, Kubernetes 1.36")
    assert any(line.split() == ["operator_mb", "100.00", "<", "150", "yes"] for line in lines)
    assert "bound per second: 160 with the extender, 180 without, 155 with a bare one" in lines
    assert "reconciled once: 4.0 s, 3.5 s by a bare kopf handler (70 MB)" in lines
    assert any(
        line.startswith("while rounds are planned: one more job p50 0.80 s, p99 2.50 s (9 jobs)") for line in lines
    )
    assert (
        "filter at the client: p99 1.50 ms, of a bare extender 1.25 ms; while rounds are planned: 1.60 ms, "
        "at the same moments 1.25 ms of a bare one" in lines
    )
    assert any(line.split() == ["1000", "30.0", "0.70", "0.90", "0.20", "9.0", "100", "200"] for line in lines)


def test_the_text_of_the_reconcile_alone_has_medians_of_its_turns() -> None:
    found = {
        "operator": [reconciled(seconds, 90.0) for seconds in (4.0, 9.0, 5.0)],
        "bare_handler": [reconciled(seconds, 70.0) for seconds in (2.0, 3.0, 4.0)],
        "writer": [reconciled(3.5, 60.0)] * 3,
        "ratio_to_bare_handler": 2.0,
        "ratio_to_writer": 1.43,
    }
    lines = reconcile_text({"machine": REPORT["machine"], "sizes": {"jobs": 1000}, "reconcile": found}).splitlines()
    assert any(line.split()[2:] == ["5.0", "5.0", "10.0", "1.0", "90.0"] for line in lines)
    assert lines[-1] == (
        "1000 jobs: the operator takes 2.00 of the time of a bare handler, 1.43 of that of a client that writes the "
        "same"
    )


@given(st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(0.1, 1e3)), min_size=1, max_size=5))
def test_a_ratio_is_between_those_of_the_turns(turns: list[tuple[float, float]]) -> None:
    mine, theirs = ([Reconciled(1, 0.1, turn[which], 1.0, {}) for turn in turns] for which in (0, 1))
    ratios = [one / other for one, other in turns]
    assert min(ratios) <= ratio(mine, theirs) <= max(ratios)


def test_the_nodes_suffice_for_all_jobs_and_some_beside_them() -> None:
    sizes = Sizes(jobs=1000, pods=400, turns=3)
    assert sizes.nodes * 8 >= 1000 + 4 * sizes.hand_over
    assert (sizes.steps, Sizes(jobs=50, pods=10, turns=1).steps) == ([10, 100], [10])


def test_the_leader_is_told_from_its_lease() -> None:
    assert leader_of({"spec": {"holderIdentity": "extender-1_0a1b2c3d"}}) == "extender-1"
    assert leader_of({"spec": {"holderIdentity": None}}) == ""


def test_too_few_jobs_are_refused_in_one_line() -> None:
    result = CliRunner().invoke(main, ["bench", "e2e", "--jobs", "3"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: Invalid value for '--jobs'")
