"""What a job says of its model, and how fast it was on how many nodes: kept, and told to the planner."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from support.extender.cluster import NOW, allocation, cluster, job, job_object, node_object, share
from synergy_api.parts.progress import PlacementSpeed
from synergy_api.parts.queues import PackRules, Queues, ServiceHistory
from synergy_core.model import snapshot as core
from synergy_extender.cluster.placements import (
    ENOUGH,
    MOST,
    REMEMBERED,
    domains_of,
    level_speeds,
    shared_domains,
    spread_speed,
)
from synergy_extender.cluster.views import JobView, read_job
from synergy_extender.decisions.history import pack_limit, updated
from synergy_extender.leases.reports import Report, Reported, progress_after, repaired
from synergy_extender.planning.policy import PolicyInForce, plan_config, policy_in_force
from synergy_extender.snapshot.snapshot import build_snapshot


def _reported(
    view: JobView, run: int, speed: float, *nodes: str, expected: float = 1.0, times: int = ENOUGH, **said: Any
) -> JobView:
    """The job after a run that has reported the speed so many times."""
    held = allocation(*(share(name) for name in nodes), run=run, stepsPerSecond=expected)
    for _ in range(times):
        now = read_job({**job_object("j", gpus=len(nodes)), "status": {**_status(view), "allocation": held}})
        progress = progress_after(now, Reported("uid-j", run, Report(step=1, steps_per_second=speed, **said)), NOW)
        over = {"service": {"run": run, "endedRun": run}, "progress": progress.to_wire()}
        view = read_job({**job_object("j"), "status": {**_status(now), **over}})
    return view


def _status(view: JobView) -> dict[str, Any]:
    return view.status.to_wire()


def _core(view: JobView) -> core.Job:
    (one,) = build_snapshot(cluster([node_object("n1")], [view]), mode="round", now=NOW, round_s=20).snapshot.jobs
    return one


def test_the_planner_hears_of_the_skew_and_of_measured_placements() -> None:
    view = _reported(job("j"), 1, 9.0, "n1", expected=10.0, largest_tensor_bytes=30, model_bytes=40)
    one = _core(view)
    assert (one.skew, one.model_bytes, one.spread_speed) == (0.75, 40, None)
    view = _reported(view, 2, 4.5, "n1", "n2", expected=10.0)
    one = _core(view)
    assert (one.skew, one.model_bytes) == (0.75, 40), "said once, kept over runs"
    assert one.spread_speed == pytest.approx(0.5)


def test_a_job_that_says_nothing_is_taken_for_one_of_the_many() -> None:
    assert (_core(job("j")).skew, _core(job("j")).model_bytes) == (core.UNKNOWN_SKEW, None)


def test_before_its_first_run_the_profile_tells_of_the_model() -> None:
    point = {"gpuType": "V100", "cpuMillis": 1000, "memoryBytes": 1, "stepsPerSecond": 1.0}
    points = [point, {**point, "largestTensorBytes": 30, "modelBytes": 40}]
    one = _core(job("j", status={"profile": {"state": "Complete", "points": points}}))
    assert (one.skew, one.model_bytes) == (0.75, 40)


def test_the_planner_hears_what_a_preemption_costs() -> None:
    assert _core(job("j")).preemption_cost_s == 0.0
    view = _reported(job("j"), 1, 9.0, "n1", save_seconds=4.0, resume_seconds=30.0)
    assert _core(view).preemption_cost_s == 34.0
    view = _reported(view, 2, 9.0, "n1", resume_seconds=20.0)
    assert _core(view).preemption_cost_s == 24.0, "the newest start counts, and a save that an earlier run made"
    last = {"run": 2, "outcome": "Yielded", "step": 1, "saveSeconds": 6.0}
    ended = {"service": {"run": 2, "endedRun": 2, "last": last}}
    after = repaired(read_job({**job_object("j"), "status": {**_status(view), **ended}}))
    assert after is not None
    assert (after.save_seconds, after.resume_seconds) == (6.0, 20.0), "said on leaving, later than the last report"


def test_more_cpu_is_not_taken_for_a_better_place() -> None:
    view = _reported(job("j"), 1, 5.0, "n1", expected=5.0)
    view = _reported(view, 2, 10.0, "n1", "n2", expected=10.0)
    assert _core(view).spread_speed == pytest.approx(1.0)


def test_a_report_of_another_run_or_without_speed_measures_nothing() -> None:
    view = _reported(job("j"), 1, 0.0, "n1")
    assert view.status.progress is not None
    assert view.status.progress.placements == []
    other = job("j", status={"allocation": allocation(share("n1"), run=2)})
    late = progress_after(other, Reported("uid-j", 1, Report(step=1, steps_per_second=3)), NOW)
    assert late.placements == []


def test_a_repair_of_the_steps_keeps_what_is_known_of_the_model() -> None:
    view = _reported(job("j"), 1, 9.0, "n1", largest_tensor_bytes=30, model_bytes=40)
    ended = {"service": {"run": 1, "endedRun": 1, "last": {"run": 1, "outcome": "Yielded", "step": 77}}}
    after = repaired(read_job({**job_object("j"), "status": {**_status(view), **ended}}))
    assert after is not None
    assert (after.steps, after.model_bytes, after.largest_tensor_bytes) == (77, 40, 30)
    assert view.status.progress is not None
    assert after.placements == view.status.progress.placements


def test_the_worst_gpu_type_counts_and_what_is_kept_is_bounded() -> None:
    def speed(gpu_type: str, nodes: int, relative: float) -> PlacementSpeed:
        return PlacementSpeed(gpu_type=gpu_type, nodes=nodes, relative_speed=relative, reports=ENOUGH)

    assert spread_speed([speed("V100", 1, 1.0), speed("T4", 2, 0.1)], 4, {}) is None
    known = [speed("V100", 1, 1.0), speed("V100", 4, 0.9), speed("T4", 2, 0.5), speed("T4", 1, 1.0)]
    assert spread_speed(known, 4, {}) == 0.5
    view = job("j")
    for nodes in range(1, MOST + 5):
        view = _reported(view, nodes, 1.0, *(f"n{index}" for index in range(nodes)))
    assert view.status.progress is not None
    assert [one.nodes for one in view.status.progress.placements] == list(range(5, MOST + 5))


def test_only_the_fewest_nodes_that_could_hold_it_are_compared_with() -> None:
    def seen_on(*nodes: int) -> list[PlacementSpeed]:
        return [PlacementSpeed(gpu_type="V100", nodes=n, relative_speed=1.0 / n, reports=ENOUGH) for n in nodes]

    assert spread_speed(seen_on(3, 4), 8, {"V100": [8, 4, 4]}) is None, "one node could hold it"
    assert spread_speed(seen_on(2, 4), 16, {"V100": [4, 8, 4, 8]}) == pytest.approx(0.5)
    assert spread_speed(seen_on(2, 4), 16, {"V100": [8, 4, 4]}) == pytest.approx(0.5), "on larger nodes, gone since"
    assert spread_speed(seen_on(2, 4), 17, {"V100": [8, 4, 4]}) is None, "no nodes hold it now"
    assert spread_speed(seen_on(2, 4), 16, {"T4": [8, 8]}) is None, "nodes of the type are not known"
    assert spread_speed(seen_on(1, 4), 16, {}) == pytest.approx(0.25), "no fewer than one"


def test_where_the_plan_expects_no_speed_nothing_is_measured() -> None:
    view = _reported(job("j"), 1, 9.0, "n1", expected=0.0)
    assert view.status.progress is not None
    assert view.status.progress.placements == []


def test_a_placement_s_speed_is_the_mean_of_its_reports() -> None:
    view = _reported(job("j"), 1, 10.0, "n1", expected=10.0, times=20)
    view = _reported(view, 2, 10.0, "n1", "n2", expected=10.0, times=ENOUGH - 1)
    assert _core(view).spread_speed is None, "not enough reports yet"
    view = _reported(view, 2, 10.0, "n1", "n2", expected=10.0, times=16)
    view = _reported(view, 2, 8.0, "n1", "n2", expected=10.0, times=1)
    slow = _core(view).spread_speed
    assert slow == pytest.approx((20 + 0.8) / 21), "one slow report changes little"
    view = _reported(view, 3, 5.0, "n1", "n2", expected=10.0, times=5 * REMEMBERED)
    assert _core(view).spread_speed == pytest.approx(0.5, abs=0.01), "what lasts is followed"
    assert view.status.progress is not None
    assert [one.reports for one in view.status.progress.placements] == [20, REMEMBERED], "and the state is bounded"


@pytest.mark.parametrize(("speed", "expected"), [(1e308, 1e-3), (1e308, 1.0), (5e-324, 10.0)])
def test_a_speed_that_makes_no_sense_measures_nothing(speed: float, expected: float) -> None:
    view = _reported(job("j"), 1, speed, "n1", expected=expected)
    assert view.status.progress is not None
    assert view.status.progress.placements == []
    json.dumps(view.status.to_wire(), allow_nan=False)


@pytest.mark.parametrize(
    "said", [{"model_bytes": 5}, {"largest_tensor_bytes": 5}, {"largest_tensor_bytes": 6, "model_bytes": 5}]
)
def test_sizes_that_contradict_each_other_are_refused(said: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="largest_tensor_bytes"):
        Report(step=1, **said)


def _measured(skew: int, spread: float, name: str) -> JobView:
    """A job whose largest tensor is so many per cent of its model."""
    speeds = {1: 1.0, 2: spread}
    placements = [
        {"gpuType": "V100", "nodes": nodes, "relativeSpeed": speed, "reports": ENOUGH}
        for nodes, speed in speeds.items()
    ]
    return job(name, status={"progress": {"largestTensorBytes": skew, "modelBytes": 100, "placements": placements}})


def test_the_limit_is_learned_from_jobs_that_have_run_here_and_there() -> None:
    jobs = [_measured(70, 0.5, f"slow{n}") for n in range(5)] + [_measured(10, 1.0, f"fast{n}") for n in range(5)]
    learns = PackRules(pack_limit_percent=20, learn_pack_limit=True)
    assert pack_limit(learns, updated(None, jobs[1:], Queues(), learns)) == 0.2, "too few yet: the written one"
    history = updated(None, jobs, Queues(), learns)
    assert history is not None
    assert history.learned_pack_limit_percent == 40.0
    assert pack_limit(learns, history) == 0.4
    assert pack_limit(PackRules(pack_limit_percent=20), history) == 0.2, "not asked to learn"
    assert pack_limit(PackRules(), history) is None
    assert updated(history, [], Queues(), learns) == history, "the jobs are gone, what they taught is not"


def test_the_planner_gets_the_limit_and_the_link() -> None:
    spec = {"placement": {"packLimitPercent": 30, "linkBytesPerSecond": 1.25e9}}
    config = plan_config(policy_in_force({"metadata": {"name": "default"}, "spec": spec}, PolicyInForce()), "round")
    assert (config.pack_limit, config.link_bytes_per_s) == (0.3, 1.25e9)
    usual = plan_config(PolicyInForce(history=ServiceHistory(learned_pack_limit_percent=40.0)), "round")
    assert (usual.pack_limit, usual.link_bytes_per_s) == (None, None)


EAST_WEST = {"n1": ("block", "east"), "n2": ("block", "east"), "n3": ("block", "west"), "n4": ("other", "east")}


def test_what_nodes_share_is_counted_from_the_widest_domain() -> None:
    assert shared_domains(["n1"], EAST_WEST) is None
    assert shared_domains(["n1", "n2"], EAST_WEST) == 2
    assert shared_domains(["n1", "n2", "n3"], EAST_WEST) == 1
    assert shared_domains(["n1", "n4"], EAST_WEST) == 0, "a rack of this name in another block"
    assert shared_domains(["n1", "unknown"], EAST_WEST) == 0
    assert shared_domains(["n1", "n2"], {}) is None
    pool = {
        "metadata": {"name": "p"},
        "spec": {"gpuType": "V100", "nodeSelector": {"nvidia.com/gpu.product": "V100"}, "topology": ["block", "rack"]},
    }
    one = node_object("n1")
    one["metadata"]["labels"] |= {"block": "b", "rack": "r"}
    assert domains_of(cluster([one, node_object("n2")], pools=[pool]).capacities) == {"n1": ("b", "r")}


def test_speeds_of_levels_are_measured_and_the_planner_hears_of_them() -> None:
    view = job("j", gpus=2)
    for run, (speed, nodes) in enumerate(((9.0, ("n1", "n2")), (4.5, ("n1", "n3")), (1.8, ("n1", "n4"))), start=1):
        held = allocation(*(share(name) for name in nodes), run=run, stepsPerSecond=10.0)
        for _ in range(ENOUGH):
            now = read_job({**job_object("j", gpus=2), "status": {**_status(view), "allocation": held}})
            reported = Reported("uid-j", run, Report(step=1, steps_per_second=speed))
            progress = progress_after(now, reported, NOW, domains=EAST_WEST)
            over = {"service": {"run": run, "endedRun": run}, "progress": progress.to_wire()}
            view = read_job({**job_object("j", gpus=2), "status": {**_status(now), **over}})
    assert view.status.progress is not None
    placements = view.status.progress.placements
    assert [(one.nodes, one.shared_domains) for one in placements] == [(2, 2), (2, 1), (2, 0)]
    small = {"V100": [1, 1, 1, 1]}
    assert level_speeds(placements, 2, small) == {"V100": pytest.approx({"2": 1.0, "1": 0.5, "0": 0.2})}
    assert level_speeds(placements, 2, {"V100": [8]}) == {}, "one node could hold it, and was not measured"
    assert level_speeds(placements[1:], 2, small)["V100"] == pytest.approx({"1": 1.0, "0": 0.4})
    assert spread_speed(placements, 2, small) is None, "never on more nodes"
    few = [one.model_copy(update={"reports": ENOUGH - 1}) for one in placements]
    assert level_speeds(few, 2, small) == {}
    state = cluster([node_object(f"n{index}", gpus=1) for index in range(1, 5)], [view])
    (one,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert one.level_speeds == {"V100": pytest.approx({"2": 1.0, "1": 0.5, "0": 0.2})}
