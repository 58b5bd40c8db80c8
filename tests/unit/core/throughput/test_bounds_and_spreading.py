"""Upper bounds of whole jobs, and what spreading costs a job of which too little is known."""

import pytest

from support.planner.planning import GIB, job, node, planned, shares
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job
from synergy_core.throughput.all_reduce import spread_speed
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.pack_limit import learned_pack_limit
from synergy_core.throughput.skew import kept_when_spread

LINK = 1e9
FEWEST_AND_MOST = (1, 4)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_an_upper_bound_is_of_the_whole_job_however_many_gpus_it_has(gpus: int) -> None:
    """It would be fastest with 24 CPUs, another one with 200 GiB."""
    much_cpu = job("j", gpus, wants=(24, 20), cpu_millis_max=8000)
    assert shares(planned([node("n")], [much_cpu]), "j")["n"][1] == pytest.approx(8.0)
    much_memory = job("j", gpus, wants=(3, 200), memory_bytes_max=40 * GIB)
    assert shares(planned([node("n")], [much_memory]), "j")["n"][2] == pytest.approx(40.0)


def _kept(one: Job, *, link: float | None = LINK, steps_per_s: float = 2.0) -> float:
    return kept_when_spread(one, "V100", link, steps_per_s, FEWEST_AND_MOST)


def test_spreading_costs_what_all_reduce_takes_over_the_link() -> None:
    model = 500_000_000
    near, far = (spread_speed(model, 2.0, LINK, nodes) for nodes in FEWEST_AND_MOST)
    assert 0.0 < far < near
    assert _kept(job("j", 4, model_bytes=model)) == pytest.approx(far / near)


def test_what_a_step_hides_counts_as_it_was_measured() -> None:
    model = 1_000_000_000
    hidden = {part: _kept(job("j", 4, model_bytes=model, overlap=part)) for part in (0.0, 2 / 3, 1.0)}
    assert hidden[0.0] < hidden[2 / 3] < hidden[1.0]
    assert hidden[2 / 3] == pytest.approx(_kept(job("j", 4, model_bytes=model))), "what is assumed"
    assert spread_speed(10**9, 1 / 0.3, 1e9, 2, 0.0) == pytest.approx(0.3 / (0.3 + 1.0))


def test_of_a_job_of_which_too_little_is_known_spreading_costs_nothing() -> None:
    assert _kept(job("j", 4)) == 1.0
    assert _kept(job("j", 4, model_bytes=500_000_000), link=None) == 1.0
    assert _kept(job("j", 4, model_bytes=500_000_000), steps_per_s=0.0) == 1.0


def test_what_was_measured_counts_before_what_is_worked_out() -> None:
    assert _kept(job("j", 4, model_bytes=500_000_000, spread_speed=0.5)) == 0.5


@pytest.mark.parametrize(("on_one_node", "types"), [(True, {"A100"}), (False, {"A100", "V100"})])
def test_a_job_that_needs_one_node_has_no_type_whose_nodes_are_all_too_small(
    on_one_node: bool, types: set[str]
) -> None:
    pools = [
        Pool("A100", [node("a", 8, gpu_type="A100")]),
        Pool("V100", [node("v1", 4), node("v2", 4)]),
        Pool("K80", [node("k", 4, gpu_type="K80")]),
    ]
    wide = JobClass(job("wide", 8, gpu_types=("A100", "V100", "K80")), (), 0.05)
    assert set(wide.share_speeds(pools, on_one_node=on_one_node)) == types


def test_of_limits_that_err_alike_the_one_farthest_from_what_was_measured_is_learned() -> None:
    """All jobs have one skew, and some are slowed down: a limit at half of it packs all, one at it packs none."""
    assert learned_pack_limit([(0.4, 0.5)] * 6 + [(0.4, 1.0)] * 5) == pytest.approx(0.2)
