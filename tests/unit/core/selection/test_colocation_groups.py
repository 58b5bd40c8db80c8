"""Co-location groups among the jobs of a plan."""

from dataclasses import replace

from support.planner.planning import GIB, holding, job, node
from synergy_core.colocation.group import alone_again, running_group
from synergy_core.colocation.grouping import Grouping
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.policies.queue import Ranking
from synergy_core.selection.colocation_groups import CoLocationGroups, colocation_groups


def together(*groups: tuple[str, ...], alone: tuple[str, ...] = (), **more: object) -> CoLocationGroups:
    """Groups of running jobs on V100s, and jobs that must leave their place."""
    held = {name: holding(name, ("n1", 1, 3, 60)) for group in (*groups, alone) for name in group}
    jobs = {name: job(name, 1, running=held[name], **more) for name in held}
    made = [running_group([jobs[name] for name in group]) for group in groups]
    made += [alone_again(jobs[name]) for name in alone]
    return CoLocationGroups(
        {one.job.name: one for one in made}, {member.name: one for one in made for member in one.members}
    )


def test_a_group_takes_the_position_of_its_first_member() -> None:
    groups = together(("b", "d"))
    (name,) = groups.by_name
    assert groups.ranking(Ranking(("a", "b", "c", "d"))).names == ("a", name, "c")
    assert groups.ranking(Ranking(("d", "a", "b"), first=("b",))).names == (name, "a")
    assert groups.ranking(Ranking(("d", "a", "b"), first=("a", "b"))).first == ("a", name)


def test_a_job_that_leaves_its_group_keeps_the_types_that_the_policy_gives_it() -> None:
    groups = together(alone=("a",), gpu_types=("V100", "K80"))
    (name,) = groups.by_name
    given = groups.ranking(Ranking(("a", "b"), types={"a": ("K80",), "b": ("P100",)}))
    assert given.types == {name: ("K80",), "b": ("P100",)}
    assert groups.ranking(Ranking(("a",))).types == {}


def test_a_group_that_keeps_its_gpu_takes_the_types_of_its_first_member() -> None:
    groups = together(("a", "b"), gpu_types=("V100",))
    (name,) = groups.by_name
    types = groups.ranking(Ranking(("a", "b"), types={"a": ("K80",), "b": ("P100",)})).types
    assert types == {name: ("K80",)}


def test_without_groups_nothing_changes() -> None:
    ranking = Ranking(("a", "b"), types={"a": ("K80",)})
    assert CoLocationGroups({}, {}).ranking(ranking) is ranking


def _shares(name: str, *with_: str) -> Job:
    """A job that may share a GPU, and on n1 shares one with these others."""
    usage = {"V100": Usage(compute=0.3, bandwidth=0.1, memory_bytes=GIB)}
    held = replace(holding(name, ("n1", 1, 2, 20)), shares_gpu_with=with_) if with_ else None
    return job(name, sharing=True, tenant="t", usage=usage, running=held)


def test_of_two_groups_with_jobs_from_one_gpu_the_one_with_the_highest_in_line_keeps_it() -> None:
    jobs = {one.name: one for one in (_shares("a", "b"), _shares("b", "a"), _shares("x"), _shares("y"))}
    snapshot = Snapshot(nodes=(node("n1", replicas=2, gpu_memory_bytes=16 * GIB),), jobs=tuple(jobs.values()))
    pools, config = [Pool("V100", snapshot.nodes)], PlanConfig(policy="fifo", colocation="auto")
    grouping = Grouping(snapshot, pools, config)
    made = [grouping.together([jobs[name] for name in names], "V100") for names in (("b", "y"), ("a", "x"))]
    candidates = [one for one in made if one is not None]
    groups = colocation_groups(snapshot, Ranking(("a", "b", "y", "x")), pools, config, candidates)
    first, second = groups.by_member["a"], groups.by_member["b"]
    assert [[one.name for one in group.members] for group in (first, second)] == [["a", "x"], ["b", "y"]]
    assert (first.job.running is None, second.job.running is None) == (False, True)


def test_between_rounds_jobs_that_share_a_gpu_take_one_whoever_else_is_there() -> None:
    """One that waits, and comes first by name, has the other GPU."""
    nodes = (node("n1", 2, replicas=2, gpu_memory_bytes=16 * GIB),)
    pair = (_shares("b", "c"), _shares("c", "b"))
    result = plan(Snapshot(nodes=nodes, jobs=(*pair, job("a"))), PlanConfig(colocation="auto", mode="fill"))
    assert {one.job: one.partners for one in result.allocations} == {"a": (), "b": ("c",), "c": ("b",)}
