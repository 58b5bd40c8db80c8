"""Co-location groups among the jobs of a plan."""

from support.planning import holding, job
from synergy_core.colocation.group import alone_again, running_group
from synergy_core.policies.queue import Ranking
from synergy_core.selection.colocation_groups import CoLocationGroups


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
