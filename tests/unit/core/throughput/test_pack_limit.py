"""What predicts that spreading slows a job down: PACKLIMIT learned, all-reduce reckoned, and the ILP of appendix D."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import holding, job, node, places, planned, saturating
from synergy_core.cache import Memory
from synergy_core.mechanisms.optimum.placement_ilp import least_load, load_of
from synergy_core.model.placement import choose
from synergy_core.model.snapshot import FieldError, Job
from synergy_core.throughput.all_reduce import spread_speed
from synergy_core.throughput.pack_limit import learned_pack_limit
from synergy_core.throughput.skew import PackRules

TABLE_6 = {"VGG19": 0.715, "VGG16": 0.743, "VGG11": 0.773, "AlexNet": 0.61, "ResNet152": 0.039, "ResNet101": 0.053,
           "ResNet50": 0.092, "Inception4": 0.036, "Inception3": 0.086, "GoogleNet": 0.146}  # fmt: skip
SENSITIVE = ("VGG19", "VGG16", "VGG11", "AlexNet")
"""Figure 3: whom spreading slows down."""


class TestLearnedLimit:
    def test_the_paper_s_models_are_told_apart(self) -> None:
        measured = [(skew, 0.6 if name in SENSITIVE else 0.99) for name, skew in TABLE_6.items()] * 2
        limit = learned_pack_limit(measured)
        assert limit == pytest.approx((0.146 + 0.61) / 2), "half way between the two classes"

    def test_few_measurements_teach_nothing(self) -> None:
        assert learned_pack_limit([(0.7, 0.5)] * 50 + [(0.1, 1.0)] * 4) is None

    @settings(max_examples=50)
    @given(
        st.lists(st.tuples(st.floats(0.01, 1.0), st.booleans()), max_size=25),
    )
    def test_no_other_threshold_errs_less(self, noise: list[tuple[float, bool]]) -> None:
        measured = [*[(0.8, 0.5)] * 5, *[(0.2, 1.0)] * 5, *((skew, 0.5 if slow else 1.0) for skew, slow in noise)]
        limit = learned_pack_limit(measured)
        assert limit is not None
        slow = sum(speed < 0.95 for _, speed in measured)

        def error(at: float) -> float:
            missed = sum(speed < 0.95 and skew <= at for skew, speed in measured) / slow
            return missed + sum(speed >= 0.95 and skew > at for skew, speed in measured) / (len(measured) - slow)

        assert error(limit) <= min(error(at) for at in np.linspace(0.0, 1.0, 201)) + 1e-9


class TestAllReduce:
    def test_what_is_sent_beyond_the_backward_pass_is_lost(self) -> None:
        # a gigabyte over 1 GB/s takes a second on two nodes, of which 2/3 of the 0.3 s step are free
        assert spread_speed(10**9, 1 / 0.3, 1e9, 2) == pytest.approx(0.3 / (0.3 + 1.0 - 0.2))
        assert spread_speed(10**8, 1 / 0.3, 1e9, 2) == 1.0

    def test_more_nodes_send_more(self) -> None:
        speeds = [spread_speed(10**9, 2.0, 1e9, nodes) for nodes in (1, 2, 4, 8, 64)]
        assert speeds[0] == 1.0
        assert speeds == sorted(speeds, reverse=True)

    @pytest.mark.parametrize(("steps", "link", "nodes"), [(0.0, 1.0, 2), (1.0, 0.0, 2), (1.0, 1.0, 0)])
    def test_what_makes_no_sense_is_refused(self, steps: float, link: float, nodes: int) -> None:
        with pytest.raises(ValueError, match="must be above 0"):
            spread_speed(1, steps, link, nodes)

    def test_a_plan_that_knows_the_link_goes_by_it(self) -> None:
        nodes = [node(f"n{index}", 4) for index in range(2)]
        others = [
            job(f"r{index}", 3, preemptible=False, running=holding(f"r{index}", (f"n{index}", 3, 9, 180)))
            for index in range(2)
        ]

        def runs(one: Job, link: float | None) -> bool:
            made = planned(nodes, [*others, one], pack_limit=0.3, mechanism="proportional", link_bytes_per_s=link)
            return one.name in places(made)

        skewed = job("skewed", 2, wants=(6, 100), skew=0.9, model_bytes=10**6)
        assert (runs(skewed, None), runs(skewed, 1e9)) == (False, True), "a megabyte a step is nothing"
        large = job("large", 2, wants=(6, 100), skew=0.01, model_bytes=10**10)
        assert (runs(large, None), runs(large, 1e9)) == (True, False), "ten gigabytes a step are ten seconds"
        measured = job("measured", 2, wants=(6, 100), model_bytes=10**10, spread_speed=0.99)
        assert runs(measured, 1e9)

    def test_as_many_nodes_are_reckoned_with_as_it_could_land_on(self) -> None:
        """A gigabyte at 2 steps/s over 3 GB/s costs nothing on two nodes and a third of the speed on eight."""

        def lies(gpus: int, nodes: int, allowed: int | None = None) -> str:
            may_use = None if allowed is None else tuple(f"n{index}" for index in range(allowed))
            two_a_second = {"V100": saturating(1, 20, speed=2.0)}
            one = job("j", gpus, profiles=two_a_second, model_bytes=10**9, skew=0.9, nodes=may_use)
            memory = Memory()
            memory.begin(tuple(node(f"n{n}", 8) for n in range(nodes)), 0.0, PackRules(0.3, 3e9))
            return memory.info(one).placement

        assert (lies(2, 8), lies(8, 8)) == ("spread", "pack"), "a worker for each GPU at the most"
        assert (lies(8, 2), lies(8, 8, allowed=2)) == ("spread", "spread"), "and no more nodes than there are for it"

    def test_a_link_that_sends_nothing_is_refused(self) -> None:
        with pytest.raises(FieldError, match="link_bytes_per_s: must be above 0"):
            planned([node("n")], [], link_bytes_per_s=0.0)


class TestAppendixD:
    def test_the_programme_is_the_best_of_all_placements(self) -> None:
        free, load, servers = (2, 1, 2), (0, 5, 1), (7, 2)
        every = [
            load_of(assignments, hosts, servers, load)
            for assignments in product(*(range(one + 1) for one in free))
            for hosts in product(range(3), repeat=2)
            if sum(assignments) == 3
        ]
        best = least_load(3, servers, free, load)
        assert best is not None
        assert (best.load_bytes, sum(best.workers)) == (pytest.approx(min(every)), 3)
        assert load_of(best.workers, best.hosts, servers, load) == best.load_bytes

    def test_servers_that_host_nothing_load_no_link(self) -> None:
        best = least_load(2, (0,), (1, 2), (5, 3))
        assert best is not None
        assert (best.load_bytes, sum(best.workers)) == (5.0, 2)

    def test_without_room_there_is_no_placement(self) -> None:
        assert least_load(3, (1, 1), (1, 1), (0, 0)) is None

    @settings(max_examples=15)
    @given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.sampled_from((2, 4)), st.integers(1, 9))
    def test_packing_loads_no_link_where_one_node_has_room_and_is_never_better(
        self, free: list[int], need: int, largest: int
    ) -> None:
        room = np.array(free)
        assignments = choose("pack", need, room, room.astype(float))
        if assignments is None:
            return
        servers = [largest] + [1] * (need - 1)
        workers = [dict(assignments).get(node, 0) for node in range(len(free))]
        hosts = [node for node, count in enumerate(workers) for _ in range(count)]
        ours = load_of(workers, hosts, servers, [0] * len(free))
        best = least_load(need, servers, free, [0] * len(free))
        assert best is not None
        assert ours >= best.load_bytes
        if max(free) >= need:
            assert (ours, best.load_bytes) == (0.0, 0.0)
