"""What a job keeps of its speed by how near its nodes are."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import GIB, job, node
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import FieldError, Job, Node, Profile
from synergy_core.selection.job_info import JobInfo
from synergy_core.throughput.all_reduce import spread_speed
from synergy_core.throughput.levels import Tier, tiers
from synergy_core.throughput.skew import WORTH_PACKING, PackRules


def rack(name: str, *domains: str, gpus: int = 4, **more: Any) -> Node:
    return node(name, gpus, cpus=3 * gpus, gib=60 * gpus, domains=domains, **more)


def blocks(**more: Any) -> Pool:
    """Two blocks of two racks of two nodes."""
    return Pool(
        "V100", [rack(f"{b}{r}{n}", b, f"{b}{r}", **more) for b in ("a", "b") for r in ("x", "y") for n in range(2)]
    )


def known(of: Job, pool: Pool, speed: float = 1.0, link: float | None = None) -> list[tuple[int, float, bool]]:
    return [(one.depth, round(one.kept, 6), one.fewest_nodes) for one in tiers(of, pool, speed, link)]


def test_measured_levels_are_tiers_from_the_node_to_everywhere() -> None:
    slow = job("j", 4, level_speeds={"V100": {"2": 0.9, "1": 0.5, "0": 0.2}})
    assert known(slow, blocks()) == [(3, 1.0, True), (2, 0.9, False), (1, 0.5, False), (0, 0.2, False)]
    gang = job("j", 8, level_speeds={"V100": {"1": 0.5, "0": 0.2}})
    assert known(gang, blocks()) == [(2, 1.0, True), (1, 0.5, False), (0, 0.2, False)]


def test_levels_that_hardly_differ_are_one_tier() -> None:
    one = job("j", 8, level_speeds={"V100": {"1": 0.96, "0": 0.5}})
    assert known(one, blocks()) == [(1, 1.0, False), (0, 0.5, False)]
    assert known(job("j", 8, level_speeds={"V100": {"1": 0.98, "0": 0.96}}), blocks()) == [(0, 1.0, False)]


def test_an_unknown_level_is_like_the_next_wider_one_that_is_known() -> None:
    assert known(job("j", 8, level_speeds={"V100": {"0": 0.4}}), blocks()) == [(2, 1.0, True), (0, 0.4, False)]
    assert known(job("j", 8, spread_speed=0.4), blocks()) == [(2, 1.0, True), (0, 0.4, False)]
    assert known(job("j", 8, level_speeds={"V100": {"1": 0.4}}), blocks()) == [(2, 1.0, True), (0, 0.4, False)]
    assert known(job("j", 8), blocks()) == [(0, 1.0, False)], "of what nobody knows, nothing is said"


def test_links_of_levels_tell_what_all_reduce_takes_there() -> None:
    pool = blocks(domain_bytes_per_s=(1e9, 1e10))
    large = job("j", 8, model_bytes=10**9, overlap=0.0)
    near, block, across = (
        spread_speed(10**9, 1.0, link, nodes, 0.0) for link, nodes in ((1e10, 2), (1e9, 4), (1e8, 8))
    )
    found = [(2, 1.0, True), (1, round(block / near, 6), False), (0, round(across / near, 6), False)]
    assert known(large, pool, link=1e8) == found
    assert known(large, pool) == [*found[:1], (0, found[1][1], False)], "no link is known across: as in a block"
    assert known(job("j", 8), pool, link=1e8) == [(0, 1.0, False)], "nor what it sends"
    assert known(large, pool, speed=0.0, link=1e8) == [(0, 1.0, False)], "nor how often"


def test_one_domain_of_all_nodes_has_nothing_beyond() -> None:
    pool = Pool("V100", [rack(f"n{index}", "all", f"r{index % 2}") for index in range(4)])
    told = {"V100": {"1": 0.5, "0": 0.1}}
    assert known(job("j", 8, level_speeds=told), pool) == [(2, 1.0, True), (1, 0.5, False)]


def test_a_domain_that_cannot_hold_a_gang_is_not_the_nearest() -> None:
    sizes = {"n0": (3, "b"), "n1": (2, "a"), "n2": (1, "b"), "n3": (1, "a")}
    pool = Pool("V100", [rack(name, names, gpus=gpus) for name, (gpus, names) in sizes.items()])
    assert known(job("j", 6, level_speeds={"V100": {"1": 0.5, "0": 0.1}}), pool) == [(0, 1.0, True)]


@pytest.mark.parametrize(
    "more", [{"gpus": 1}, {"placement": "consolidate"}, {"placement": "spread"}, {"purpose": "profile"}]
)
def test_jobs_that_have_no_choice_have_no_tiers(more: dict[str, Any]) -> None:
    told = {"V100": {"2": 0.5, "1": 0.4, "0": 0.1}}
    pool = blocks()
    assert JobInfo(job("j", **{"gpus": 4, "level_speeds": told, **more}), [pool], 0.0).tiers(pool) == ()
    flat = Pool("V100", [node("n", 4)])
    assert JobInfo(job("j", 4, level_speeds=told), [flat], 0.0).tiers(flat) == ()


def test_speeds_of_a_job_follow_from_its_profile_and_the_rules() -> None:
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((2.0,),))
    one = job("j", 8, profiles={"V100": profile}, model_bytes=10**9, overlap=0.0)
    pool = blocks(domain_bytes_per_s=(1e9, 1e10))
    info = JobInfo(one, [pool], 0.0, rules=PackRules(None, 1e8))
    assert info.tiers(pool) == tiers(one, pool, 2.0, 1e8)
    assert info.speed_parts([pool]) == {"V100": (1.0, info.tiers(pool)[-1].kept)}
    assert info.lies_spread(((0, 4), (2, 4)), pool)
    assert not info.lies_spread(((0, 4), (1, 4)), pool)


def test_more_bandwidths_than_domains_are_refused() -> None:
    with pytest.raises(FieldError, match="domain_bytes_per_s: has more entries than domains"):
        rack("n", "a", domain_bytes_per_s=(1.0, 2.0))


def _placements(gpus: int, rooms: list[int], first: int = 0) -> Iterator[NodeAssignments]:
    """Every way to have so many GPUs on the nodes."""
    if gpus == 0:
        yield ()
        return
    for index in range(first, len(rooms)):
        for here in range(1, min(gpus, rooms[index]) + 1):
            for rest in _placements(gpus - here, rooms, index + 1):
                yield ((index, here), *rest)


def _shared(names: list[tuple[str, ...]], deepest: int) -> int:
    """Domains that nodes with these names share, counted one by one."""
    if len(names) == 1:
        return deepest + 1
    depth = 0
    while all(len(one) > depth for one in names) and len({one[: depth + 1] for one in names}) == 1:
        depth += 1
    return depth


names_of = st.sampled_from(((), ("a",), ("a", "x"), ("a", "y"), ("b", "x")))


@given(
    st.lists(st.tuples(st.integers(1, 3), names_of), min_size=2, max_size=5),
    st.integers(2, 6),
    st.tuples(*(st.sampled_from((0.05, 0.3, 0.5, 0.97, 1.0, 1.3)) for _ in range(3))),
)
def test_every_placement_is_in_the_tier_whose_speed_it_has(
    cluster: list[tuple[int, tuple[str, ...]]], gpus: int, speeds: tuple[float, ...]
) -> None:
    """All placements of a small cluster, one by one: the first tier has the nearest ones on the fewest nodes, and each
    placement has the measured speed of its depth within what packing is worth."""
    nodes = [rack(f"n{index}", *names, gpus=size) for index, (size, names) in enumerate(cluster)]
    pool = Pool("V100", nodes)
    told = {str(depth): speed for depth, speed in enumerate(speeds)}
    found = tiers(job("j", gpus, level_speeds={"V100": told}), pool, 0.0, None)
    every = list(_placements(gpus, [size for size, _ in cluster]))
    if not every or not pool.domains:
        return
    deepest = max(len(names) for _, names in cluster)
    depth_of = {one: _shared([cluster[index][1] for index, _ in one], deepest) for one in every}
    fewest = min(map(len, every))
    nearest = max(depth for one, depth in depth_of.items() if len(one) == fewest)
    best = [one for one in every if len(one) == fewest and depth_of[one] == nearest]
    assert all(found[0].has(one, pool, fewest) for one in best)
    assert found[0].kept == 1.0
    for one in every:
        tier = next((tier for tier in found if tier.has(one, pool, fewest)), None)
        if one in best or depth_of[one] >= nearest:
            continue
        assert tier is not None
        speed = speeds[depth_of[one]]
        assert WORTH_PACKING <= speed / tier.kept <= 1 / WORTH_PACKING, (one, found)
    assert list(found) == sorted(found, key=lambda tier: -tier.depth)
    assert Tier(nearest, 1.0, fewest_nodes=True) == found[0] or found[0].depth < nearest
