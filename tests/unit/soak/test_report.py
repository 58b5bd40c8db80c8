"""What is told of a soak."""

from dataclasses import replace
from typing import Any

import pytest

from soak.load import Busy, Start
from soak.page import page
from soak.report import Seen, cores, good, growth_per_hour, report, stretches
from soak.samples import Sample
from soak.size import Disturbance, Kind

BEGUN = 1000.0
NODES_FAIL = Disturbance(Kind.NODES_FAILED, 50.0, 20.0, (3, 4))
SEEN = Seen(
    size={"gpus": 100, "nodes": 13, "load": 0.9, "life_s": 40.0, "round_s": 60, "seed": 1},
    machine={"cores": 2, "cpu": "x", "memory_gib": 24.0, "load_before": 0.5},
    begun=BEGUN,
    steady=BEGUN + 20,
    reached=True,
    ended=BEGUN + 300,
    arrived=40,
    runs=41,
    lost=[],
    doubled=[],
    half_bound=[],
    problems=[],
    bindings=50,
    starts=[Start(BEGUN + 30, BEGUN + 31, BEGUN + 32), Start(BEGUN + 60, BEGUN + 64, BEGUN + 66)],
    bare_pods=[(BEGUN + 40, 0.5)],
    busy=[Busy(BEGUN + 10, 0, 90), Busy(BEGUN + 30, 80, 90), Busy(BEGUN + 90, 90, 90), Busy(BEGUN + 310, 0, 0)],
    samples={"operator": [Sample(BEGUN + 5 * index, 100.0 + index / 2, index / 4) for index in range(60)]},
    disturbances=[(NODES_FAIL, BEGUN + 50, BEGUN + 70)],
)


def test_the_figures_of_a_good_soak() -> None:
    found = report(SEEN)
    assert good(found)
    assert found["gpus_training"] == pytest.approx(0.85)  # from the moment the load was reached
    starts = found["start_s"]
    assert starts["created to running"] == {"count": 2, "p50": 2.0, "p90": 6.0, "p99": 6.0}
    assert starts["the same, undisturbed"]["count"] == 1
    assert starts["granted to running"]["p50"] == 1.0
    assert starts["a bare pod"]["p99"] == 0.5
    process = found["processes"]["operator"]
    assert process == pytest.approx({"last_mb": 129.5, "most_mb": 129.5, "growth_mb_per_hour": 360.0, "cores": 0.05})
    assert found["disturbances"] == [{"kind": "nodes-failed", "at": 50.0, "until": 70.0, "nodes": 2}]


@pytest.mark.parametrize("what", ["lost", "doubled", "problems"])
def test_what_went_wrong_is_told(what: str) -> None:
    broken: dict[str, Any] = {what: [f"something of {what} {index}" for index in range(30)]}
    found = report(replace(SEEN, **broken))
    text = page(found)
    assert not good(found)
    assert f"## {what.capitalize()}" in text
    assert f"- something of {what} 19\n- 10 more" in text


def test_a_gang_that_waited_is_told_and_no_failure() -> None:
    found = report(replace(SEEN, half_bound=["gang a/b/1 half-bound for 31 s"]))
    assert good(found)
    assert "## Half-bound" in page(found)


def test_a_good_soak_has_a_short_page() -> None:
    text = page(report(SEEN))
    assert "Nothing was lost or doubled." in text
    assert "| nodes-failed (2) |" in text
    assert "| operator | 130 | 130 | 360 | 0.05 |" in text
    assert "## Lost" not in text


def test_a_soak_in_which_nothing_started_has_no_percentiles() -> None:
    found = report(replace(SEEN, starts=[], bare_pods=[], samples={"operator": []}, busy=[]))
    assert found["start_s"]["created to running"] == {"count": 0}
    assert found["gpus_training"] == 0.0
    assert page(found)


def test_memory_is_cut_where_a_process_began_anew() -> None:
    samples = [Sample(0.0, 10.0, 5.0), Sample(1.0, 11.0, 6.0), Sample(2.0, 5.0, 0.1), Sample(3.0, 6.0, 0.2)]
    assert [len(one) for one in stretches(samples)] == [2, 2]
    assert list(stretches([])) == []
    assert growth_per_hour(samples) is None  # too few
    assert cores(samples[:2]) == 1.0
    assert cores(samples[:1]) is None


def test_a_process_that_is_restarted_again_and_again_has_no_growth() -> None:
    """Its caches fill anew after each restart: that is no growth of hours."""
    samples = [Sample(BEGUN + 5 * at, 100.0 + 9 * (at % 30), float(at % 30)) for at in range(60)]
    assert report(replace(SEEN, samples={"operator": samples}))["processes"]["operator"]["growth_mb_per_hour"] is None
