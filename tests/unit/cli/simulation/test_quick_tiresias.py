"""Figures of Tiresias in their quick versions: each has the shape that the paper claims. Some 10 s of one core."""

from pathlib import Path

import pytest

from support.simulator.quick_figures import quick_figures


@pytest.fixture
def figures(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, float]:
    """What the reproduction that the test names as its parameter found."""
    return quick_figures(f"tiresias-{request.param}", tmp_path / "plot.html")


@pytest.mark.parametrize("figures", ["fig7"], indirect=True)
def test_the_three_jobs_take_as_long_as_in_the_paper(figures: dict[str, float]) -> None:
    assert figures == pytest.approx({"srsf": 28 / 3, "2d-gittins": 10.0, "2d-las": 35 / 3})


@pytest.mark.parametrize("figures", ["table5"], indirect=True)
def test_who_knows_no_durations_is_near_who_does_and_far_from_first_in_first_out(figures: dict[str, float]) -> None:
    assert figures["srtf_average"] > 0.9
    assert 0.9 < figures["2d-gittins_average"] < 1.1
    assert figures["yarn-cs_average"] > figures["best-effort_average"] > 0.98
    assert figures["yarn-cs_median"] > 1.5


@pytest.mark.parametrize("figures", ["fig12"], indirect=True)
def test_placement_by_skew_trains_fastest(figures: dict[str, float]) -> None:
    assert figures["by_skew_training"] == 1.0
    assert figures["anywhere_training"] > 1.05
    assert figures["anywhere_training"] > figures["fewest_nodes_now_training"]


@pytest.mark.parametrize("figures", ["composition"], indirect=True)
def test_tuning_helps_every_policy_on_one_type(figures: dict[str, float]) -> None:
    for policy in ("2d-las", "2d-gittins", "las", "srtf", "ftf"):
        assert figures[f"one type_{policy}_tune_h"] < figures[f"one type_{policy}_proportional_h"]
        assert figures[f"three types_{policy}_proportional_h"] > 0


@pytest.mark.parametrize("figures", ["ilp"], indirect=True)
def test_the_programme_is_never_worse_than_the_fewest_nodes_and_takes_much_longer(figures: dict[str, float]) -> None:
    assert 1.0 <= figures["least_of_packed"] <= figures["packed"]
    assert figures["spread"] > 1.0
    assert figures["slower"] > 10
