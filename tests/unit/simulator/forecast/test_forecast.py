"""Forecasts of snapshots, worked by hand where that is possible."""

import random
from math import inf
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.model.snapshot import Allocation, FieldError, Job, Node, NodeShare, PastJob, Profile, Snapshot
from synergy_simulator.engine.planner import SimulatedPlanner
from synergy_simulator.engine.rounds.clock import RoundClock
from synergy_simulator.forecast.arrivals import Past, drawn, lasting_s, past_of
from synergy_simulator.forecast.forecast import Forecaster
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.present import Beginning, cluster_of
from synergy_simulator.forecast.quantiles import Quantiles
from synergy_simulator.forecast.what_if import Change, changed, what_if

GIB = 1 << 30
ONE = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))
NOW = 600.0


def node(name: str = "v100-0", gpus: int = 1, **more: Any) -> Node:
    return Node(name=name, gpu_type="V100", gpus=gpus, cpu_millis=4000 * gpus, memory_bytes=16 * GIB * gpus, **more)


def job(name: str, steps: int | None = 1000, **more: Any) -> Job:
    return Job(name=name, **{"gpus": 1, "steps_total": steps, "profiles": {"V100": ONE}, "arrival_s": 0.0, **more})


def runs(name: str, node_name: str = "v100-0") -> dict[str, Any]:
    share = NodeShare(node=node_name, gpus=1, cpu_millis=1000, memory_bytes=GIB)
    allocation = Allocation(job=name, gpu_type="V100", workers=(share,), steps_per_s=1.0)
    return {"running": allocation, "started_s": 0.0, "run_started_s": 0.0}


def snapshot(*jobs: Job, nodes: tuple[Node, ...] = (node(),), policy: str = "fifo", **more: Any) -> Snapshot:
    return Snapshot(nodes=nodes, jobs=jobs, now=NOW, config={"policy": policy}, **more)


def forecaster(state: Snapshot, **more: Any) -> Forecaster:
    return Forecaster(state, options_of_snapshot(state), **more)


def test_jobs_one_after_the_other() -> None:
    state = snapshot(job("first", steps_done=600, **runs("first")), job("second", arrival_s=100.0))
    assert forecaster(state).alone == {"first": (NOW, NOW + 400), "second": (NOW + 400, NOW + 1400)}


def test_a_job_that_ends_by_time_takes_it_at_whatever_speed() -> None:
    first = job("first", None, seconds_left=250.0, **runs("first"))
    state = snapshot(first, job("second", None, seconds_left=70.0, profiles={}, arrival_s=100.0))
    assert forecaster(state).alone == {"first": (NOW, NOW + 250), "second": (NOW + 250, NOW + 320)}


def test_pauses_make_a_job_longer() -> None:
    state = snapshot(job("first", steps_done=600, pause_share=0.2, **runs("first")))
    assert forecaster(state).alone == {"first": (NOW, NOW + 500)}


def test_epochs_of_unknown_length_have_no_forecast() -> None:
    (one,) = forecaster(snapshot(job("first", None, **runs("first")))).forecast().jobs
    assert one.unknown == "NoSteps"


def test_the_start_of_a_job_of_unknown_length_is_forecast_where_it_is_asked_for() -> None:
    state = snapshot(job("first", 300, **runs("first")), job("endless", None, arrival_s=1.0))
    assert forecaster(state).alone["endless"] == (inf, inf)
    found = forecaster(state, starts_of=frozenset({"endless"})).alone
    assert found == {"first": (NOW, NOW + 300), "endless": (NOW + 300, inf)}
    jobs = (job("known"), job("endless", None), job("large", None, gpus=8))
    beginning = Beginning(snapshot(*jobs), options(), frozenset(one.name for one in jobs))
    assert (beginning.awaited, beginning.awaited_starts) == ({"known"}, {"endless"})


def test_without_history_there_are_no_draws_and_the_answer_is_a_point() -> None:
    found = forecaster(snapshot(job("first", steps_done=600, **runs("first")))).forecast()
    assert (found.draws, found.arrivals) == (0, "none")
    (one,) = found.jobs
    assert (one.state, one.finish) == ("running", Quantiles(NOW + 400, NOW + 400, NOW + 400, NOW + 400))


def test_a_running_job_that_is_displaced_at_once_starts_when_it_runs_again() -> None:
    state = snapshot(
        job("long", 5000, **runs("long"), attained_gpu_s=600.0), job("short", 300, arrival_s=500.0), policy="srtf"
    )
    assert forecaster(state).alone == {"short": (NOW, NOW + 300), "long": (NOW + 300, NOW + 5300)}


def test_what_is_not_known_is_said() -> None:
    state = snapshot(
        job("endless", None),
        job("large", gpus=8),
        job("profiled", purpose="profile"),
        job("unmeasured", profiles={}, arrival_s=1.0),
        nodes=(node(gpus=4),),
    )
    found = {one.job: one for one in forecaster(state).forecast().jobs}
    assert {name: one.unknown for name, one in found.items()} == {
        "endless": "NoSteps", "large": "NeverFits", "profiled": "NotProfiled", "unmeasured": "NotProfiled",
    }  # fmt: skip
    assert all(one.finish.p50 == inf for one in found.values())


def test_a_job_whose_minimum_no_node_has_left_never_fits() -> None:
    here = node(gpus=4, memory_bytes_used=4 * GIB, cpu_millis_used=1000)
    more = {"fits": {"memory_bytes_min": 60 * GIB, "cpu_millis_min": 15_000}}
    more |= {"memory": {"memory_bytes_min": 60 * GIB + 1}, "cpu": {"cpu_millis_min": 15_001}}
    more |= {"measured": {"memory_bytes_min": 60 * GIB + 1, "purpose": "profile"}}
    found = Beginning(snapshot(*(job(name, **fields) for name, fields in more.items()), nodes=(here,)), options())
    assert found.unknown == dict.fromkeys(("memory", "cpu", "measured"), "NeverFits")


def counted(patch: pytest.MonkeyPatch, most: int) -> list[float]:
    """The moments of plans, which fail when there are too many."""
    plan, moments = SimulatedPlanner.plan, []

    def one(planner: SimulatedPlanner, state: Snapshot, mode: Any) -> Any:
        moments.append(state.now)
        assert len(moments) < most, f"after {state.now - NOW} simulated seconds"
        return plan(planner, state, mode)

    patch.setattr(SimulatedPlanner, "plan", one)
    return moments


@pytest.mark.parametrize("steps", [1000, None])
def test_a_job_that_waits_for_ever_is_not_planned_for_every_five_minutes_of_ten_years(
    monkeypatch: pytest.MonkeyPatch, steps: int | None
) -> None:
    held = job("held", None, preemptible=False, **runs("held", "held-0"))
    stuck = job("stuck", steps, arrival_s=1.0, nodes=("held-0",))
    others = [job(f"j{index}", 25_000 - index, arrival_s=float(index), nodes=("v100-0",)) for index in range(6)]
    state = snapshot(held, stuck, *others, nodes=(node(), node("held-0")), policy="srtf")
    moments = counted(monkeypatch, 20_000)
    found = forecaster(state, starts_of=frozenset({"stuck"})).alone
    assert found["stuck"] == (inf, inf)
    ends = [NOW + sum(25_000 - index for index in range(first, 6)) for first in range(6)]
    assert [found[f"j{index}"][1] for index in range(6)] == pytest.approx(ends, abs=1e-3), "all of them are exact"
    assert max(moments) > NOW + 5 * 365 * 86_400.0, "longer rounds look ten years ahead"


def test_the_future_of_few_jobs_has_longer_rounds_too_if_it_lasts_for_years(monkeypatch: pytest.MonkeyPatch) -> None:
    held = job("held", 100_000_000, preemptible=False, **runs("held"))
    monkeypatch.setattr("synergy_simulator.forecast.forecast._USUAL", 1024)
    counted(monkeypatch, 25_000)
    found = forecaster(snapshot(held, job("waits", arrival_s=1.0), policy="2d-las")).alone
    assert found["held"][1] == NOW + 1e8
    assert found["waits"][0] - NOW == pytest.approx(1e8, rel=1 / 1024)


def test_a_job_without_steps_holds_its_gpus() -> None:
    state = snapshot(job("endless", None, **runs("endless")), job("waits", arrival_s=1.0))
    assert forecaster(state, horizon_s=1e6).alone["waits"] == (inf, inf)


def test_beyond_the_horizon_nothing_is_told() -> None:
    state = snapshot(job("first", 1000, **runs("first")), job("second", arrival_s=1.0))
    found = forecaster(state, horizon_s=500.0).forecast()
    document = found.document(seconds=0.0)
    assert document["jobs"][0]["finish_s"] == {"p10": None, "p50": None, "p90": None}
    assert document["jobs"][1]["start_without_arrivals_s"] is None


def test_arrivals_delay_under_srtf_and_not_under_fifo() -> None:
    history = tuple(
        PastJob(arrival_s=10.0 * index, gpus=1, model="m", steps=1.0 + index % 3, finish_s=None) for index in range(60)
    )
    profiles = {"m": {"1": {"V100": ONE}}}
    for policy in ("fifo", "srtf"):
        waits = (job("a", 3000, **runs("a")), job("b", 2000, arrival_s=1.0))
        state = snapshot(*waits, policy=policy, history=history, model_profiles=profiles)
        found = {one.job: one for one in forecaster(state, horizon_s=20_000.0).forecast(5).jobs}
        point = found["b"].finish.is_point and found["a"].finish.is_point
        assert point == (policy == "fifo"), found


def test_a_job_that_no_arrival_delays_ends_when_it_would_without_them() -> None:
    """Forty jobs of seven hours: rounds of draws are long by then, those without arrivals are not."""
    jobs = [job(f"j{index:02}", 25_000, arrival_s=float(index)) for index in range(40)]
    history = tuple(PastJob(arrival_s=10.0 * index, gpus=1, model="m", steps=7.0) for index in range(60))
    state = snapshot(*jobs, history=history, model_profiles={"m": {"1": {"V100": ONE}}})
    found = forecaster(state).forecast(3).jobs
    assert [one.finish_without_arrivals_s for one in found] == [NOW + 25_000 * (index + 1) for index in range(40)]
    assert all(one.finish.is_point and one.finish.p50 == one.finish_without_arrivals_s for one in found)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    tasks = Beginning(snapshot(*(job(f"j{index}", arrival_s=37.0 * index) for index in range(20))), options()).tasks
    past = Past(tuple(sorted(tasks.values(), key=lambda task: task.arrival_s)), 0.0, 800.0)
    first, again, other = (list(drawn(past, 800.0, 9000.0, seed)) for seed in ("1", "1", "2"))
    assert first == again
    assert [task.arrival_s for task in first] != [task.arrival_s for task in other]


def options() -> Any:
    return options_of_snapshot(snapshot())


def test_half_of_the_draws_last_as_long_as_the_past() -> None:
    lengths = [lasting_s(Past((), 0.0, 500.0), str(seed)) for seed in range(400)]
    assert 160 < sum(length > 500.0 for length in lengths) < 240
    assert 80 < sum(length > 1500.0 for length in lengths) < 120, "a quarter lasts three times as long"


@given(st.lists(st.floats(0, 5000), min_size=2, max_size=40, unique=True), st.integers(0, 99))
def test_draws_come_in_order_within_their_time(times: list[float], seed: int) -> None:
    state = snapshot(*(job(f"j{index}", arrival_s=at) for index, at in enumerate(sorted(times))))
    tasks = sorted(Beginning(state, options()).tasks.values(), key=lambda task: task.arrival_s)
    past = Past(tuple(tasks), tasks[0].arrival_s, 5001.0)
    until = 5001.0 + 40 * past.span_s
    arrivals = [task.arrival_s for task in drawn(past, 5001.0, until, str(seed))]
    assert arrivals == sorted(arrivals)
    assert all(5001.0 < at <= until for at in arrivals)


def test_draws_come_as_often_as_in_the_past_and_differ_more_the_less_past_there_is() -> None:
    """Half of the past is busy and half empty. Over 20 times its length, blocks that are all drawn from it would even
    out to one part in 13; what is not known of the rate does not even out."""
    times = [float(minute * 60) for minute in range(0, 240, 4)]
    state = snapshot(*(job(f"j{index}", arrival_s=at) for index, at in enumerate(times)))
    tasks = sorted(Beginning(state, options()).tasks.values(), key=lambda task: task.arrival_s)
    past = Past(tuple(tasks), 0.0, 8 * 3600.0)
    counts = [
        sum(1 for _ in drawn(past, past.until_s, past.until_s + 20 * past.span_s, str(seed))) for seed in range(60)
    ]
    assert mean(counts) == pytest.approx(20 * len(times), rel=0.15)
    assert stdev(counts) > 0.2 * 20 * len(times)


def test_past_jobs_get_the_speeds_of_their_model_else_of_their_job_else_of_their_time() -> None:
    fast = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((5.0,),))
    rows = [
        PastJob(arrival_s=1.0, gpus=1, model="m", steps=10.0),
        PastJob(arrival_s=2.0, gpus=1, model="unknown", steps=20.0),
        PastJob(arrival_s=3.0, gpus=1, model="gone", steps=30.0, finish_s=63.0),
        PastJob(arrival_s=4.0, gpus=1, model="lost", steps=40.0),
    ]
    state = snapshot(job("j", arrival_s=2.0), model_profiles={"m": {"1": {"V100": fast}}})
    past = past_of(state, Beginning(state, options()).tasks, rows)
    told = [(task.steps, task.share_steps_per_s) for task in past.tasks]
    assert told == [(10.0, 5.0), (1000.0, 1.0), (60.0, 1.0)]


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60))
def test_quantiles_ascend_and_lie_among_the_draws(draws: list[float]) -> None:
    found = Quantiles.of(draws)
    assert min(draws) <= found.p10 <= found.p50 <= found.p90 <= found.by <= max(draws)


def test_quantiles_of_nineteen_draws_are_draws() -> None:
    assert Quantiles.of(list(range(1, 20))) == Quantiles(2, 10, 18, 18)


def test_a_quantile_between_a_time_and_never_is_never() -> None:
    assert Quantiles.of([1.0, 2.0, inf, inf]) == Quantiles(1.0, inf, inf, inf)


def test_an_end_that_many_draws_agree_on_leaves_80_percent_inside() -> None:
    def ends(draws: list[float]) -> tuple[float, float, float, float]:
        found = Quantiles.of(draws)
        return (found.p10, found.p50, found.p90, found.by)

    later = [100.0 * index for index in range(1, 14)]
    assert ends([5.0] * 7 + later) == pytest.approx((5.0, 350.0, 980.0, 1190.0)), "16.8 of 21"
    assert ends([*later, *[inf] * 7]) == pytest.approx((420.0, 1050.0, inf, inf)), "4.2 of 21"
    assert Quantiles.of([5.0] * 17 + later[:3]).is_point, "17 of 20 draws are more than 80 percent"


def test_intervals_hold_80_percent_where_a_third_of_the_truths_is_the_earliest_time() -> None:
    """The 10th to the 90th percentile would hold 90 %: nothing falls below the earliest time."""
    chance = random.Random(5)

    def time() -> float:
        return 0.0 if chance.random() < 0.35 else chance.expovariate(1 / 3600.0)

    found = [(Quantiles.of([time() for _ in range(20)]), time()) for _ in range(3000)]
    inside = sum(one.p10 <= truth <= one.p90 for one, truth in found)
    assert 0.78 < inside / len(found) < 0.83


def test_with_many_jobs_gpus_are_filled_when_a_round_begins() -> None:
    assert [RoundClock(300.0, 0.0, fine).fill(100.0) for fine in (4, 16, None)] == [300.0, 100.0, 100.0]


@given(st.integers(0, 10**8).map(lambda tenths: tenths / 10), st.integers(1, 32))
def test_longer_rounds_begin_where_shorter_ones_do(moment: float, fine: int) -> None:
    clock = RoundClock(300.0, 0.0, fine)
    start = clock.start(moment)
    assert start >= moment
    assert start % 300.0 == 0.0
    assert clock.after(start) > start
    assert clock.length(moment) <= 300.0 * max(1.0, 1.0 + moment / (fine * 300.0))
    assert clock.length(moment) * 2 > 300.0 * (1.0 + moment / (fine * 300.0))
    assert moment <= clock.fill(moment) <= moment + clock.length(moment)


@given(st.integers(0, 10**8).map(lambda tenths: tenths / 10), st.integers(1, 32))
def test_a_long_round_sees_an_event_at_its_nearer_end(moment: float, fine: int) -> None:
    clock = RoundClock(300.0, 0.0, fine)
    seen = clock.seen(moment)
    assert abs(seen - moment) <= clock.step_s(moment) / 2
    assert seen <= clock.fill(seen) < seen + clock.step_s(seen) or clock.step_s(seen) == 0, "filled in that round"
    assert clock.seen(moment, after=moment) > moment or clock.step_s(moment) == 0


def test_events_are_seen_at_once_in_rounds_of_the_usual_length() -> None:
    assert [RoundClock(300.0, 0.0, fine).seen(299.5) for fine in (None, 512, 3)] == [299.5, 299.5, 300.0]
    assert RoundClock(300.0, 0.0, 3).seen(inf) == inf


def test_short_jobs_are_thinned_to_the_same_load() -> None:
    state = snapshot(*(job(f"j{index}", 100, arrival_s=60.0 * index) for index in range(600)))
    tasks = sorted(Beginning(state, options()).tasks.values(), key=lambda task: task.arrival_s)
    past = Past(tuple(tasks), 0.0, 36_000.0)
    whole = list(drawn(past, 36_000.0, 400_000.0, "1"))
    thin = list(drawn(past, 36_000.0, 400_000.0, "1", lambda _moment: 1000.0))
    assert {task.steps for task in thin} == {1000.0}
    assert sum(task.steps for task in thin) == pytest.approx(sum(task.steps for task in whole), rel=0.15)
    assert [task.steps for task in drawn(past, 36_000.0, 50_000.0, "1", lambda _moment: 99.0)][:3] == [100.0] * 3


def test_of_eleven_futures_one_has_no_arrivals() -> None:
    """The shortest job first: each draw of long-lasting arrivals delays the last job, so the least is that future."""
    history = tuple(PastJob(arrival_s=10.0 * index, gpus=1, model="m", steps=7.0) for index in range(60))
    state = snapshot(
        *(job(f"j{index}", 1000 + index) for index in range(20)),
        policy="srtf",
        history=history,
        model_profiles={"m": {"1": {"V100": ONE}}},
    )
    one = forecaster(state)
    last = {job.job: job for job in one.forecast(10).jobs}["j19"]
    draws = [one.draw(f"0 {index}")["j19"][1] for index in range(10)]
    assert last.finish == Quantiles.of([*draws, one.alone["j19"][1]]) != Quantiles.of(draws)


def test_rounds_are_as_long_as_ever_where_nobody_asks_for_more() -> None:
    clock = RoundClock(300.0)
    assert [clock.start(at) for at in (0.0, 1.0, 300.0, 1e6)] == [0.0, 300.0, 300.0, 1_000_200.0]
    assert clock.fill(12.5) == 12.5


def test_nodes_that_are_alike_are_one_pool() -> None:
    pools = cluster_of([node("a"), node("b"), node("c", gpus=4)]).pools
    assert [(pool.name, pool.nodes, pool.gpus_per_node) for pool in pools] == [("a", 2, 1), ("c", 1, 4)]


class TestWhatIf:
    jobs = (job("a", steps_done=600, **runs("a")), job("b", arrival_s=100.0))

    def test_one_more_node_starts_the_waiting_job_now(self) -> None:
        as_is, other = what_if(snapshot(*self.jobs), Change(add_nodes={"v100": 1}))
        assert (as_is.times["b"], other.times["b"]) == ((NOW + 400, NOW + 1400), (NOW, NOW + 1000))
        assert (as_is.makespan_s, other.makespan_s) == (1400, 1000)
        assert (as_is.avg_jct_s, other.avg_jct_s) == ((1000 + 1900) / 2, (1000 + 1500) / 2)
        assert (as_is.gpu_utilization, other.gpu_utilization) == (1.0, 0.7)

    def test_a_job_that_is_added_stands_apart_from_the_average(self) -> None:
        as_is, other = what_if(snapshot(*self.jobs), Change(add_jobs=[job("c", 10, arrival_s=NOW)]))
        assert "c" not in as_is.times
        assert other.times["c"] == (NOW + 1400, NOW + 1410)
        assert as_is.avg_jct_s == other.avg_jct_s

    def test_a_node_that_goes_takes_its_job_back_to_the_queue(self) -> None:
        state = snapshot(*self.jobs, nodes=(node(), node("v100-1")))
        found = changed(state, Change(remove_nodes=["v100-0"]))
        assert ([one.name for one in found.nodes], found.jobs[0].running) == (["v100-1"], None)

    def test_a_drained_node_keeps_its_job(self) -> None:
        found = changed(snapshot(*self.jobs), Change(drain_nodes=["v100-0"]))
        assert (found.nodes[0].schedulable, found.jobs[0].running is None) == (False, False)

    def test_another_policy_and_round(self) -> None:
        short = job("c", 10, arrival_s=200.0)
        as_is, other = what_if(snapshot(*self.jobs, short), Change(config={"policy": "srtf", "round_s": 60.0}))
        assert as_is.times["c"][0] > other.times["c"][0]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (Change(add_nodes={"x": 1}), "--add-nodes: no node is like 'x'"),
            (Change(remove_nodes=["x"]), "--remove-node: there is no node 'x'"),
            (Change(add_jobs=[job("a")]), "--add-job: there is a job 'a' already"),
            (Change(config={"speed": 1}), "config.speed: 'speed' is not there; choose one of"),
            (Change(config={"round_s": 0}), "config.round_s: must be above 0"),
            (Change(config={"aware": 7}), "config.aware: "),
        ],
    )
    def test_what_cannot_be_is_refused(self, change: Change, words: str) -> None:
        with pytest.raises(FieldError, match=words.replace("(", r"\(")):
            what_if(snapshot(*self.jobs), change)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"policy": "fifo", "speed": 1}, "config.speed: 'speed' is not there; choose one of"),
        ({"fill": "perhaps"}, "config.fill: "),
        ({"preemption_overhead_s": -1.0}, "config.preemption_overhead_s: must be at least 0"),
    ],
)
def test_a_config_that_cannot_be_is_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(FieldError, match=words):
        options_of_snapshot(Snapshot(nodes=(node(),), jobs=(), config=config))
