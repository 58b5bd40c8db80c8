"""Synergy-Tune, step by step (section 4.2)."""

import pytest

from support.planner.planning import GIB, holding, job, node, places, planned, reasons, shares
from synergy_core.mechanisms.demotion import demote
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.pool import Pool, Reservations, shares_of
from synergy_core.model.snapshot import Job, Profile
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


def test_a_job_goes_to_the_fullest_server_that_fits_its_whole_demand() -> None:
    jobs = [
        job("a", 4, arrival_s=0, running=holding("a", ("n1", 4, 12, 250)), wants=(20, 250)),
        job("b", 2, arrival_s=1, running=holding("b", ("n2", 2, 6, 125)), wants=(6, 125)),
        job("new", 1, arrival_s=2, wants=(6, 60)),
    ]
    assert places(planned([node("n1"), node("n2")], jobs))["new"] == {"n2": 1}


def test_a_demand_that_fits_nowhere_is_switched_to_the_proportional_share() -> None:
    jobs = [job("a", 4, wants=(21, 60)), job("b", 1, wants=(12, 20), arrival_s=1)]
    result = planned([node("n1")], jobs)
    assert shares(result, "a")["n1"][:2] == (4, 21)
    assert shares(result, "b")["n1"][:2] == (1, 3)


def test_just_as_many_jobs_are_demoted_as_needed() -> None:
    """Six jobs of one GPU hold 24 CPUs; a seventh and eighth need 3 each: one demotion of 12 to 3 frees 9."""
    jobs = [job("hungry", 1, wants=(12, 20))] + [job(f"j{i}", 1, wants=(4, 20), arrival_s=i + 1) for i in range(3)]
    before = planned([node("n1")], jobs)
    assert shares(before, "hungry")["n1"][1] == 12
    after = planned([node("n1")], [*jobs, *(job(f"k{i}", 1, wants=(3, 20), arrival_s=9) for i in range(4))])
    given = {a.job: a.workers[0].cpu_millis for a in after.allocations}
    assert sum(given.values()) <= 24000
    assert min(given.values()) >= 3000
    assert len(given) == 8


def test_what_a_demoted_job_cannot_use_of_its_share_goes_to_others() -> None:
    """Two jobs that want 20 CPUs but little memory, and one that wants all the memory: each gets what it can use."""
    jobs = [
        job("cpu", 4, wants=(22, 20)),
        job("memory", 4, wants=(2, 440), arrival_s=1),
    ]
    result = planned([node("n1")], jobs)
    assert shares(result, "cpu")["n1"][1] == 22
    assert shares(result, "memory")["n1"][2] == 440


def test_what_is_left_over_goes_to_the_job_that_gains_most_from_it() -> None:
    def from_3_to_24_cpus(slowest: float) -> Profile:
        return Profile(cpu_millis=(3000, 24000), memory_bytes=(20 * GIB,), steps_per_s=((slowest,), (10.0,)))

    jobs = [job(f"f{i}", 1, wants=(1, 20)) for i in range(6)]
    jobs.append(job("lazy", 1, profiles={"V100": from_3_to_24_cpus(9.0)}))
    jobs.append(job("steep", 1, profiles={"V100": from_3_to_24_cpus(1.0)}))
    result = planned([node("n1")], jobs)
    assert shares(result, "lazy")["n1"][1] == 3
    assert shares(result, "steep")["n1"][1] == 24 - 6 - 3


def test_gains_count_relative_to_the_speed_of_a_job() -> None:
    """From 3 to 24 CPUs the first gains 10 of its 90 steps a second, the second 9 times its single one."""

    def profile(slowest: float, fastest: float) -> Profile:
        return Profile(cpu_millis=(3000, 24000), memory_bytes=(20 * GIB,), steps_per_s=((slowest,), (fastest,)))

    jobs = [job(f"f{i}", 1, wants=(1, 20)) for i in range(6)]
    jobs.append(job("fast", 1, profiles={"V100": profile(90.0, 100.0)}))
    jobs.append(job("slow", 1, profiles={"V100": profile(1.0, 10.0)}))
    result = planned([node("n1")], jobs)
    assert (shares(result, "fast")["n1"][1], shares(result, "slow")["n1"][1]) == (3, 24 - 6 - 3)


def test_a_job_larger_than_a_server_takes_the_fewest_servers_in_even_shares() -> None:
    result = planned([node("n1", 4), node("n2", 8), node("n3", 8)], [job("a", 12, wants=(36, 700))])
    given = shares(result, "a")
    assert {n: g for n, (g, _, _) in given.items()} == {"n1": 4, "n2": 8}
    assert len({(cpus / gpus, gib / gpus) for gpus, cpus, gib in given.values()}) == 1


def test_a_job_is_not_split_for_more_cpu() -> None:
    """One server has the GPUs but not the CPUs: the job stays whole at its share."""
    jobs = [
        job("a", 4, wants=(20, 60), running=holding("a", ("n1", 4, 20, 60))),
        job("b", 7, wants=(3, 60), arrival_s=1, running=holding("b", ("n2", 7, 21, 60))),
        job("new", 4, wants=(8, 60), arrival_s=2),
    ]
    assert places(planned([node("n1"), node("n2")], jobs))["new"] == {"n1": 4}


def test_a_job_larger_than_a_server_goes_where_its_whole_demand_fits() -> None:
    jobs = [
        job("hungry", 4, wants=(20, 60), running=holding("hungry", ("n1", 4, 12, 60))),
        *(job(f"r{i}", 4, wants=(4, 60), running=holding(f"r{i}", (f"n{i}", 4, 4, 60))) for i in (2, 3)),
        job("wide", 8, wants=(20, 100), arrival_s=1),
    ]
    result = planned([node("n1"), node("n2"), node("n3")], jobs)
    assert places(result)["wide"] == {"n2": 4, "n3": 4}
    assert (shares(result, "hungry")["n1"][1], shares(result, "wide")["n2"][1]) == (20, 10)


def _nearly_full() -> list[Job]:
    """Of 8 GPUs and 24 CPUs each, n1 has 4 GPUs and 2 CPUs left, n2 has 5 GPUs and 21 CPUs."""
    return [
        job("hungry", 4, wants=(22, 60), running=holding("hungry", ("n1", 4, 12, 60))),
        job("modest", 3, wants=(3, 60), running=holding("modest", ("n2", 3, 3, 60))),
    ]


@pytest.mark.parametrize("someone_waits", [True, False])
def test_a_job_that_needs_one_node_goes_where_its_demand_fits(someone_waits: bool) -> None:
    """One that waits finds no room either way."""
    one = job("one", 2, wants=(10, 60), placement="consolidate", arrival_s=1)
    waits = job("waits", 7, placement="consolidate", arrival_s=2)
    result = planned([node("n1"), node("n2")], [*_nearly_full(), one, *([waits] if someone_waits else [])])
    assert places(result)["one"] == {"n2": 2}
    assert shares(result, "hungry")["n1"][1] == 22
    assert reasons(result) == ({"waits": "NoFreeNode"} if someone_waits else {})


def test_but_not_where_the_room_that_it_leaves_would_do_for_one_that_waits() -> None:
    """On n2 both demands fit, but then n1 would have the four GPUs that the last one waits for."""
    both = [
        job("two", 2, wants=(10, 60), placement="consolidate", arrival_s=1),
        job("three", 3, wants=(9, 60), placement="consolidate", arrival_s=2),
    ]
    waits = job("waits", 4, placement="consolidate", arrival_s=3)
    result = planned([node("n1"), node("n2")], [*_nearly_full(), *both, waits])
    assert (places(result)["two"], places(result)["three"]) == ({"n1": 2}, {"n2": 3})
    assert reasons(result) == {"waits": "NoFreeNode"}


def test_spread_takes_what_is_left_over_on_many_nodes() -> None:
    jobs = [
        job("a", 7, running=holding("a", ("n1", 7, 21, 437))),
        job("b", 7, running=holding("b", ("n2", 7, 21, 437))),
        job("new", 2, placement="spread", arrival_s=1),
    ]
    assert places(planned([node("n1"), node("n2"), node("n3")], jobs))["new"] == {"n1": 1, "n2": 1}


def test_integer_rounding_neither_over_allocates_nor_splits_unevenly() -> None:
    odd = [node("n1", 3, cpus=10, gib=100), node("n2", 7, cpus=16, gib=333)]
    result = planned(odd, [job("a", 3), job("b", 5, arrival_s=1), job("c", 2, arrival_s=2)], mechanism="proportional")
    used = {n.name: sum(shares(result, j).get(n.name, (0, 0, 0))[1] for j in "abc") for n in odd}
    assert len(result.allocations) == 3
    assert used["n1"] <= 10
    assert used["n2"] <= 16
    for allocation in result.allocations:
        assert len({w.cpu_millis / w.gpus for w in allocation.workers}) == 1


def test_a_job_without_a_matrix_gets_exactly_its_share_and_its_speed_is_not_known() -> None:
    result = planned([node("n1")], [job("a", 2)])
    assert shares(result, "a") == {"n1": (2, 6, 125)}
    assert (result.allocations[0].steps_per_s, result.allocations[0].proportional_steps_per_s) == (0.0, 0.0)


def test_pods_of_others_shrink_the_share_so_that_every_free_gpu_can_be_used() -> None:
    crowded = node("n1", cpu_millis_used=16000, gpus_used=4)
    result = planned([crowded], [job(f"j{i}", 1) for i in range(4)])
    assert [shares(result, f"j{i}")["n1"][1] for i in range(4)] == [2, 2, 2, 2]


class TestFill:
    """Between rounds."""

    def test_a_running_job_is_cut_down_to_its_share_when_that_lets_another_in(self) -> None:
        jobs = [
            job("old", 4, wants=(24, 60), running=holding("old", ("n1", 4, 24, 60))),
            job("new", 4, wants=(12, 60), arrival_s=1),
        ]
        result = planned([node("n1")], jobs, mode="fill")
        assert shares(result, "new")["n1"][:2] == (4, 12)
        assert shares(result, "old")["n1"] == (4, 12, 60)
        assert result.resized == ("old",)
        assert result.preempted == ()

    def test_a_running_job_is_cut_down_no_further_than_needed(self) -> None:
        jobs = [
            job("old", 4, wants=(24, 60), running=holding("old", ("n1", 4, 24, 60))),
            job("new", 1, wants=(2, 20), arrival_s=1),
        ]
        result = planned([node("n1")], jobs, mode="fill")
        assert shares(result, "new")["n1"][1] >= 2
        assert shares(result, "old")["n1"][1] >= 20

    def test_running_jobs_do_not_grow(self) -> None:
        jobs = [job("old", 4, wants=(24, 60), running=holding("old", ("n1", 4, 12, 250)))]
        result = planned([node("n1")], jobs, mode="fill")
        assert shares(result, "old") == {"n1": (4, 12, 250)}
        assert planned([node("n1")], jobs).resized == ("old",)

    def test_nobody_is_cut_down_when_the_newcomer_does_not_fit_anyway(self) -> None:
        jobs = [
            job("old", 4, wants=(24, 60), running=holding("old", ("n1", 4, 24, 60))),
            job("new", 5, wants=(12, 60), arrival_s=1),
            job("needy", 1, cpu_millis_min=18000, arrival_s=2),
        ]
        result = planned([node("n1")], jobs, mode="fill")
        assert places(result) == {"old": {"n1": 4}}
        assert result.resized == ()

    def test_uneven_shares_of_an_earlier_plan_are_left_alone(self) -> None:
        running = holding("old", ("n1", 2, 8, 60), ("n2", 2, 6, 60))
        result = planned([node("n1"), node("n2")], [job("old", 4, running=running)], mode="fill")
        assert result.allocations == (running,)


class TestDemotion:
    """Demotion alone, on a packing made by hand."""

    @staticmethod
    def _packing(*jobs: tuple[str, int, tuple[int, int], tuple[int, int]]) -> tuple[Packing, dict[str, QueueEntry]]:
        """Jobs on one node of 8 GPUs: (name, GPUs, what each GPU has, what it can be cut down to)."""
        pool = Pool("V100", [node("n1")])
        packing = Packing(PoolSelection(Reservations(pool)))
        made = {}
        for name, gpus, has, least in jobs:
            made[name] = QueueEntry(JobInfo(job(name, gpus), [pool], 0.05))
            packing.assign(made[name], shares_of(((0, gpus),), has), shares_of(((0, gpus),), least))
        return packing, made

    def test_the_job_that_releases_enough_with_the_least_to_spare_is_cut_down(self) -> None:
        packing, made = self._packing(
            ("large", 1, (12000, 1), (3000, 1)), ("right", 1, (7000, 1), (3000, 1)), ("small", 1, (4000, 1), (3000, 1))
        )
        assert demote(packing, ((0, 1),), (4000, 1))
        assert packing.assigned[made["right"]].per_gpu == (3000, 1)
        assert packing.assigned[made["large"]].per_gpu == (12000, 1)
        assert packing.assigned[made["small"]].per_gpu == (4000, 1)

    def test_several_are_cut_down_where_no_one_alone_is_enough(self) -> None:
        packing, made = self._packing(("a", 1, (11000, 1), (3000, 1)), ("b", 1, (12000, 1), (3000, 1)))
        assert demote(packing, ((0, 1),), (15000, 1))
        assert {packing.assigned[entry].per_gpu for entry in made.values()} == {(3000, 1)}

    def test_all_is_undone_when_it_does_not_help(self) -> None:
        packing, made = self._packing(("a", 1, (11000, 1), (3000, 1)), ("b", 1, (12000, 1), (3000, 1)))
        before = packing.free.copy()
        assert not demote(packing, ((0, 1),), (19000, 1))
        assert (packing.free == before).all()
        assert packing.assigned[made["a"]].per_gpu == (11000, 1)
        assert packing.assigned[made["b"]].per_gpu == (12000, 1)

    def test_a_cut_that_takes_more_of_something_else_draws_in_others(self) -> None:
        """The CPU-hungry job has little memory; at its share it has more, which another must give."""
        whole = 500 * GIB
        packing, made = self._packing(
            ("cpu", 4, (6000, 1), (3000, whole // 8)), ("memory", 3, (0, whole // 3 - 1), (0, whole // 8))
        )
        assert demote(packing, ((0, 1),), (3000, 1))
        assert packing.assigned[made["cpu"]].per_gpu == (3000, whole // 8)
        assert packing.assigned[made["memory"]].per_gpu == (0, whole // 8)
        assert (packing.free >= 0).all()


def test_a_matrix_where_memory_stands_in_for_cpu_does_not_break_anything() -> None:
    trade = Profile(
        cpu_millis=(3000, 12000),
        memory_bytes=(20 * GIB, 400 * GIB),
        steps_per_s=((1.0, 10.0), (10.0, 10.0)),
    )
    jobs = [job(f"j{i}", 2, profiles={"V100": trade}, arrival_s=i) for i in range(4)]
    result = planned([node("n1")], jobs)
    assert len(result.allocations) == 4
    assert all(a.steps_per_s >= a.proportional_steps_per_s for a in result.allocations)


def test_a_job_that_one_node_can_hold_is_not_spread_for_the_sake_of_more_cpu() -> None:
    """It wants 6 CPUs for each GPU. The node that has room for all four GPUs has 3, two smaller ones have 12."""
    nodes = [node("whole", 4, cpus=12), node("half-1", 2, cpus=24), node("half-2", 2, cpus=24)]
    assert places(planned(nodes, [job("j", 4, wants=(24, 20))])) == {"j": {"whole": 4}}
