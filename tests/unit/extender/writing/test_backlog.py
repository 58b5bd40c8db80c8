"""What no job waits for gives way to a new job, and nothing that runs depend on is lost by it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import allocation, job, share
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.writing_order import ordered, waited_for
from synergy_extender.writing.backlog import AT_ONCE, LONGEST_S, Backlog, Written

RUNS = (ChangeKind.LEAVE, ChangeKind.STAY, ChangeKind.ENTER, ChangeKind.ADMIT)


def change(name: str, kind: ChangeKind, node: str = "n1") -> StatusChange:
    """A change of a job on that node."""
    held = Allocation.model_validate(allocation(share(node))) if kind in RUNS else None
    status = {"allocation": allocation(share(node))} if kind is ChangeKind.STAY else {}
    return StatusChange(job(name, status=status), kind, held, None)


class Desk:
    """Takes what is written. `arrivals` jobs have come; `comes_after` says after how many writes another one does."""

    def __init__(self, comes_after: int | None = None) -> None:
        self.written: list[StatusChange] = []
        self.arrivals = 0
        self.now = 100.0
        self.comes_after = comes_after
        self.fails = False
        self.backlog = Backlog(self.write, lambda: self.arrivals, lambda: self.now)

    async def write_pass(self, changes: Sequence[StatusChange], seen: int, *, new_round: bool = False) -> Written:
        return await self.backlog.write(changes, seen, new_round=new_round)

    async def write(self, changes: Sequence[StatusChange]) -> list[Key]:
        if self.fails:
            raise TimeoutError
        self.written += changes
        if self.comes_after is not None and len(self.written) >= self.comes_after:
            self.arrivals += 1
        return [one.job.key for one in changes if one.job.key.name == "dropped"]


def test_a_run_that_stays_beside_a_new_one_is_written_before_it_and_others_at_last() -> None:
    beside, elsewhere = change("b", ChangeKind.STAY, "n2"), change("c", ChangeKind.STAY, "n9")
    enters, told = change("a", ChangeKind.ENTER, "n2"), change("d", ChangeKind.QUEUE)
    leaves, admitted = change("e", ChangeKind.LEAVE), change("f", ChangeKind.ADMIT)
    found = ordered([told, elsewhere, admitted, enters, beside, leaves])
    assert found == [leaves, beside, enters, admitted, elsewhere, told]
    assert waited_for(found) == 4
    assert waited_for([elsewhere]) == 0


@given(st.lists(st.tuples(st.sampled_from(list(ChangeKind)), st.integers(0, 4)), max_size=12))
def test_the_order_loses_nothing_and_waits_for_all_that_enters(drawn: list[tuple[ChangeKind, int]]) -> None:
    changes = [change(f"j{index}", kind, f"n{node}") for index, (kind, node) in enumerate(drawn)]
    found = ordered(changes)
    assert sorted(one.job.key for one in found) == sorted(one.job.key for one in changes)
    late = found[waited_for(found) :]
    assert {one.kind for one in late} <= {ChangeKind.STAY, ChangeKind.QUEUE, ChangeKind.POSITION, ChangeKind.ESTIMATE}
    entering = {one.allocation.workers[0].node for one in found if one.kind is ChangeKind.ENTER and one.allocation}
    before_entering = True
    for one in found:
        before_entering = before_entering and one.kind < ChangeKind.ENTER
        if one.kind is ChangeKind.STAY and one.allocation is not None and one.allocation.workers[0].node in entering:
            assert before_entering, "what it gives up is written before the new place"


async def test_without_a_new_job_all_is_written_at_once() -> None:
    desk = Desk()
    changes = [change(f"s{index}", ChangeKind.STAY) for index in range(AT_ONCE + 3)]
    written = await desk.write_pass([*changes, change("dropped", ChangeKind.QUEUE)], 0)
    assert (len(desk.written), written.left) == (AT_ONCE + 4, False)
    assert [key.name for key in written.dropped] == ["dropped"]


async def test_when_a_job_comes_the_rest_waits_for_the_pass_that_gives_it_a_place() -> None:
    desk = Desk(comes_after=AT_ONCE)
    stays = [change(f"s{index}", ChangeKind.STAY) for index in range(AT_ONCE + 2)]
    first = await desk.write_pass([*stays, change("told", ChangeKind.QUEUE)], 0)
    assert (len(desk.written), first.left) == (AT_ONCE, True)
    desk.comes_after = None
    enters, again = change("new", ChangeKind.ENTER), change(stays[-1].job.key.name, ChangeKind.LEAVE)
    second = await desk.write_pass(ordered([enters, again]), desk.arrivals)
    assert [one.job.key.name for one in desk.written[AT_ONCE:]] == [again.job.key.name, "new", stays[-2].job.key.name]
    assert not second.left
    assert "told" not in {one.job.key.name for one in desk.written}, "the next plan says it anew"


@pytest.mark.parametrize("kind", [ChangeKind.LEAVE, ChangeKind.ENTER, ChangeKind.ADMIT])
async def test_what_a_job_waits_for_never_gives_way(kind: ChangeKind) -> None:
    desk = Desk(comes_after=1)
    await desk.write_pass([change(f"s{index}", kind) for index in range(3 * AT_ONCE)], 0)
    assert len(desk.written) == 3 * AT_ONCE


async def test_changes_give_way_for_some_seconds_only() -> None:
    desk = Desk(comes_after=0)
    stays = [change(f"s{index}", ChangeKind.STAY) for index in range(3 * AT_ONCE)]
    assert (await desk.write_pass(stays, 0)).left
    desk.now += LONGEST_S
    assert not (await desk.write_pass([], -1)).left
    assert len(desk.written) == 3 * AT_ONCE


async def test_another_leader_writes_nothing_of_an_earlier_one() -> None:
    desk = Desk(comes_after=0)
    left: Any = await desk.write_pass([change(f"s{index}", ChangeKind.STAY) for index in range(2 * AT_ONCE)], 0)
    assert left.left
    written = len(desk.written)
    desk.backlog.forget()
    await desk.write_pass([], desk.arrivals)
    assert len(desk.written) == written


async def test_what_is_left_survives_a_pass_whose_writes_fail() -> None:
    """The round counts as planned: nothing would find these changes again before the next one."""
    desk = Desk(comes_after=0)
    stays = [change(f"s{index}", ChangeKind.STAY) for index in range(2 * AT_ONCE)]
    assert (await desk.write_pass(stays, 0)).left
    desk.fails = True
    with pytest.raises(TimeoutError):
        await desk.write_pass([change("new", ChangeKind.ENTER)], desk.arrivals)
    desk.fails, desk.comes_after = False, None
    assert not (await desk.write_pass([], desk.arrivals)).left
    assert sorted(one.job.key for one in desk.written) == sorted(one.job.key for one in stays)


def resized(name: str, before: int, after: int, node: str = "n1") -> StatusChange:
    """A run that stays, with other CPU than its status says."""
    status = {"phase": "Running", "allocation": allocation(share(node, cpu_millis=before))}
    held = Allocation.model_validate(allocation(share(node, cpu_millis=after)))
    return StatusChange(job(name, status=status), ChangeKind.STAY, held, None)


async def test_a_new_round_says_anew_how_runs_go_on_and_nothing_of_the_last_one_is_written_after_it() -> None:
    desk = Desk(comes_after=0)
    assert (await desk.write_pass([resized("stays", 2000, 4000)], 0)).left
    desk.comes_after = None
    enters = change("new", ChangeKind.ENTER, "n9")
    assert not (await desk.write_pass([enters], desk.arrivals, new_round=True)).left
    assert [one.job.key.name for one in desk.written] == ["new"]


async def test_a_round_whose_writes_fail_is_kept_and_not_the_one_before() -> None:
    desk = Desk(comes_after=0)
    assert (await desk.write_pass([resized("before", 2000, 4000)], 0)).left
    desk.fails = True
    with pytest.raises(TimeoutError):
        await desk.write_pass(
            [change("new", ChangeKind.ENTER), resized("now", 2000, 4000, "n9")], desk.arrivals, new_round=True
        )
    desk.fails, desk.comes_after = False, None
    await desk.write_pass([], desk.arrivals)
    assert [one.job.key.name for one in desk.written] == ["now"]


async def test_a_run_does_not_grow_into_what_a_later_pass_gave_to_another() -> None:
    desk = Desk(comes_after=0)
    left = [resized("grows", 2000, 4000), resized("shrinks", 4000, 2000), resized("elsewhere", 2000, 4000, "n9")]
    assert (await desk.write_pass(left, 0)).left
    desk.comes_after = None
    await desk.write_pass([change("new", ChangeKind.ENTER)], desk.arrivals)
    assert sorted(one.job.key.name for one in desk.written) == ["elsewhere", "new", "shrinks"]


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 8), st.integers(0, 1)), max_size=4),
            st.booleans(),
        ),
        max_size=8,
    )
)
async def test_what_is_written_late_is_of_the_newest_round_and_into_no_newcomer(
    passes: list[tuple[bool, list[tuple[int, bool, int, int]], bool]],
) -> None:
    desk = Desk()
    allowed: list[StatusChange] = []
    for number, (new_round, drawn, comes) in enumerate(passes):
        changes = [
            change(f"new{number}", ChangeKind.ENTER, f"n{node}") if enters else resized(f"j{name}", 4, cpu, f"n{node}")
            for name, enters, cpu, node in {one[0]: one for one in drawn}.values()
        ]
        entered = {one.allocation.workers[0].node for one in changes if one.kind is ChangeKind.ENTER and one.allocation}
        kept = () if new_round else allowed
        names = {one.job.key for one in changes}
        allowed = [one for one in kept if one.job.key not in names and not (grows(one) and node(one) in entered)]
        allowed += changes
        before = len(desk.written)
        desk.comes_after = 0 if comes else None
        desk.arrivals += comes
        await desk.write_pass(ordered(changes), -1 if comes else desk.arrivals, new_round=new_round)
        written = desk.written[before:]
        assert all(any(one is two for two in allowed) for one in written)
        allowed = [one for one in allowed if not any(one is two for two in written)]
        assert comes or not [one for one in allowed if one.kind is ChangeKind.STAY], "all that may be written is"


def node(one: StatusChange) -> str:
    assert one.allocation is not None
    return one.allocation.workers[0].node


def grows(one: StatusChange) -> bool:
    assert one.allocation is not None
    held = one.job.status.allocation
    return one.kind is ChangeKind.STAY and held is not None and one.allocation.workers[0].cpu_millis > 4
