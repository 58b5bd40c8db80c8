"""Big-data schedulers with fixed demands, and with Synergy's tuning (section 5.7)."""

import pytest

from support.planner.planning import holding, job, node, places, planned, reasons, shares
from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Job


def _drf(*args, **more) -> Plan:
    return planned(*args, mechanism="drf", **more)


def _tetris(*args, **more) -> Plan:
    return planned(*args, mechanism="tetris", **more)


def _names(result: Plan) -> set[str]:
    return {a.job for a in result.allocations}


class TestDrf:
    """Progressive filling by dominant share."""

    def test_the_tenant_with_the_smaller_dominant_share_gets_the_next_job(self) -> None:
        """One job of a takes half of the CPUs, one of b an eighth of the GPUs: then b is behind up to its fifth."""
        jobs = [job(f"a{i}", 1, wants=(12, 20), tenant="a", arrival_s=i) for i in range(3)]
        jobs += [job(f"b{i}", 1, wants=(2, 20), tenant="b", arrival_s=9 + i) for i in range(6)]
        assert _names(_drf([node("n1")], jobs)) == {"a0", "b0", "b1", "b2", "b3", "b4", "b5"}
        assert _names(planned([node("n1")], jobs, mechanism="greedy")) == {"a0", "a1"}

    def test_shares_are_parts_of_what_the_cluster_has(self) -> None:
        """A job of a takes a quarter of the CPUs, one of b an eighth of the GPUs and a little less of the memory."""
        jobs = [job(f"a{i}", 1, wants=(6, 20), tenant="a", arrival_s=i) for i in range(4)]
        jobs += [job(f"b{i}", 1, wants=(2, 60), tenant="b", arrival_s=9 + i) for i in range(6)]
        assert _names(_drf([node("n1")], jobs)) == {"a0", "a1", "b0", "b1", "b2", "b3", "b4", "b5"}

    def test_the_weight_of_a_tenants_jobs_divides_their_share(self) -> None:
        def jobs(weight: float) -> list[Job]:
            heavy = [job(f"a{i}", 1, wants=(6, 20), tenant="a", arrival_s=i, weight=weight) for i in range(4)]
            return heavy + [job(f"b{i}", 1, wants=(6, 20), tenant="b", arrival_s=9 + i) for i in range(4)]

        assert _names(_drf([node("n1")], jobs(1.0))) == {"a0", "a1", "b0", "b1"}
        assert _names(_drf([node("n1")], jobs(3.5))) == {"a0", "a1", "a2", "b0"}

    def test_what_runs_counts(self) -> None:
        running = holding("a0", ("n1", 1, 12, 20))
        jobs = [job("a0", 1, wants=(12, 20), tenant="a", arrival_s=5, running=running)]
        jobs += [job("a1", 1, wants=(12, 20), tenant="a"), job("b0", 1, wants=(12, 20), tenant="b", arrival_s=9)]
        assert _names(_drf([node("n1")], jobs)) == {"a0", "b0"}

    def test_jobs_without_a_tenant_come_in_the_order_of_the_line(self) -> None:
        jobs = [job("last", 1, wants=(14, 20), arrival_s=2), job("first", 1, wants=(14, 20), arrival_s=1)]
        result = _drf([node("n1")], jobs)
        assert _names(result) == {"first"}
        assert reasons(result) == {"last": "NoFreeCPUOrMemory"}


class TestTetris:
    """Alignment of demand and machine."""

    def test_the_job_that_uses_what_the_machine_has_most_of_is_taken_first(self) -> None:
        """The CPUs of the machine are nearly used up: the second in line needs memory and passes the first."""
        old = job("old", 4, wants=(20, 20), running=holding("old", ("n1", 4, 20, 20)))
        new = [job(f"cpu{i}", 4, wants=(4, 20), arrival_s=i) for i in (1, 3, 4)]
        new.append(job("memory", 4, wants=(2, 400), arrival_s=2))
        assert _names(_tetris([node("n1")], [old, *new])) == {"old", "memory"}
        smaller = node("n2", 2)  # jobs of four fit on one machine all the same
        assert _names(_tetris([node("n1"), smaller], [old, *new])) == {"old", "memory"}

    def test_the_place_in_line_counts_as_much(self) -> None:
        jobs = [job("small", 4, wants=(13, 20)), job("large", 4, wants=(14, 20), arrival_s=1)]
        assert _names(_tetris([node("n1")], jobs)) == {"small"}

    def test_a_machine_in_use_is_filled_before_an_empty_one(self) -> None:
        jobs = [
            job("old", 6, wants=(6, 60), running=holding("old", ("n2", 6, 6, 60))),
            job("new", 2, wants=(6, 60), arrival_s=1),
        ]
        assert places(_tetris([node("n1"), node("n2")], jobs))["new"] == {"n2": 2}

    def test_a_job_larger_than_any_machine_is_split_and_one_that_fits_on_none_now_too(self) -> None:
        jobs = [job("huge", 12, wants=(36, 300)), job("small", 4, wants=(4, 60), arrival_s=1)]
        result = _tetris([node("n1"), node("n2")], jobs)
        assert sum(places(result)["huge"].values()) == 12
        assert len(places(result)["huge"]) == 2
        assert sum(places(result)["small"].values()) == 4
        held = [job(f"r{i}", 6, wants=(6, 60), running=holding(f"r{i}", (f"n{i}", 6, 6, 60))) for i in (1, 2)]
        late = _tetris([node("n1"), node("n2")], [*held, job("new", 4, wants=(4, 60), arrival_s=1)])
        assert places(late)["new"] == {"n1": 2, "n2": 2}

    def test_a_job_larger_than_any_machine_keeps_its_place_in_line(self) -> None:
        small = [job(f"small{i}", 4, wants=(4, 60), arrival_s=1 + i) for i in range(2)]
        result = _tetris([node("n1"), node("n2")], [job("huge", 12, wants=(12, 300)), *small])
        assert len(_names(result)) == 2
        assert "huge" in _names(result)

    def test_a_job_larger_than_any_machine_waits_for_its_turn(self) -> None:
        jobs = [job(f"small{i}", 4, wants=(4, 60), arrival_s=i) for i in range(3)]
        result = _tetris([node("n1"), node("n2")], [*jobs, job("huge", 12, wants=(12, 300), arrival_s=9)])
        assert _names(result) == {"small0", "small1", "small2"}


@pytest.mark.parametrize("mechanism", ["drf", "tetris"])
class TestBoth:
    """Static, and tuned."""

    def test_a_job_keeps_what_it_has_though_another_is_ahead_of_it(self, mechanism: str) -> None:
        old = job("old", 8, wants=(24, 60), arrival_s=1, running=holding("old", ("n1", 8, 24, 60)))
        for name in (mechanism, f"{mechanism}-tune"):
            result = planned([node("n1")], [job("first", 1, wants=(3, 20)), old], mechanism=name)
            assert (_names(result), result.preempted) == ({"old"}, ())

    def test_a_job_that_another_mechanism_gave_less_keeps_that_where_its_demand_does_not_fit(
        self, mechanism: str
    ) -> None:
        jobs = [job(f"j{i}", 1, wants=(12, 60), running=holding(f"j{i}", ("n1", 1, 3, 60))) for i in range(8)]
        result = planned([node("n1")], jobs, mechanism=mechanism)
        assert len(result.allocations) == 8
        assert result.preempted == ()
        assert sorted(shares(result, f"j{i}")["n1"][1] for i in range(8)) == [3] * 8

    def test_a_job_that_holds_more_beside_one_gpu_than_beside_another_gets_its_demand(self, mechanism: str) -> None:
        held = holding("old", ("n1", 1, 3, 60), ("n2", 1, 6, 60))
        result = planned([node("n1"), node("n2")], [job("old", 2, wants=(6, 120), running=held)], mechanism=mechanism)
        assert shares(result, "old") == {"n1": (1, 3, 60), "n2": (1, 3, 60)}

    def test_hungry_jobs_leave_gpus_idle_which_tuning_fills(self, mechanism: str) -> None:
        jobs = [job(f"j{i}", 1, wants=(12, 60), arrival_s=i) for i in range(8)]
        assert len(planned([node("n1")], jobs, mechanism=mechanism).allocations) == 2
        assert len(planned([node("n1")], jobs, mechanism=f"{mechanism}-tune").allocations) == 8

    def test_profile_runs_come_first_and_keep_to_their_share(self, mechanism: str) -> None:
        jobs = [job(f"p{i}", 1, purpose="profile", cpu_millis_min=3000, arrival_s=5 + i) for i in range(3)]
        jobs += [job(f"j{i}", 1, wants=(3, 20), arrival_s=i) for i in range(8)]
        result = planned([node("n1")], jobs, mechanism=mechanism, profile_gpu_percent=25)
        assert {"p0", "p1"} <= _names(result)
        assert reasons(result)["p2"] == "ProfileShareUsed"

    def test_a_job_takes_the_gpu_type_on_which_it_is_fastest_and_else_another(self, mechanism: str) -> None:
        nodes = [node("k", 1, gpu_type="K80"), node("v", 1)]
        slow, fast = (job("x", wants=(3, 20)).profiles["V100"] for _ in range(2))
        profiles = {"K80": type(slow)(cpu_millis=(1000,), memory_bytes=(1,), steps_per_s=((0.1,),)), "V100": fast}
        jobs = [job(f"j{i}", 1, profiles=profiles, arrival_s=i) for i in range(2)]
        result = planned(nodes, jobs, mechanism=mechanism)
        assert places(result) == {"j0": {"v": 1}, "j1": {"k": 1}}
