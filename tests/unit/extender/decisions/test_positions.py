"""Positions in the queue are written as the queue changes, and not to all that wait behind a change."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from support.extender.cluster import job, key
from support.extender.deciding import plan
from synergy_api.parts.waiting import QueueStatus
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.decisions.queue import is_near, queue_of

_MOVES = st.lists(st.tuples(st.sampled_from(("enter", "leave", "move")), st.floats(0, 1), st.floats(0, 1)), max_size=40)


class Waiting:
    """Jobs in a queue. `tell` writes what a plan says of it, and returns the jobs whose status changes."""

    def __init__(self, count: int) -> None:
        self.order = [f"j{index}" for index in range(count)]
        self.jobs: dict[Key, JobView] = {}
        self.entered = count

    def enter(self, at: int) -> None:
        self.order.insert(at, f"j{self.entered}")
        self.entered += 1

    def tell(self) -> list[str]:
        jobs = {key(name): self.jobs.get(key(name)) or job(name) for name in self.order}
        found = queue_of(plan(waiting=tuple(self.order)), jobs, (), {})
        changed = [one.name for one, told in found.items() if jobs[one].status.queue != told]
        self.jobs = {
            one: replace(view, status=view.status.model_copy(update={"queue": found[one]}))
            for one, view in jobs.items()
        }
        return changed

    def told(self, name: str) -> int:
        queue: QueueStatus | None = self.jobs[key(name)].status.queue
        assert queue is not None
        return queue.position


@settings(max_examples=25)
@given(st.integers(0, 60), _MOVES)
def test_whatever_moves_the_first_ten_know_their_place_and_the_others_a_near_one(
    count: int, moves: list[tuple[str, float, float]]
) -> None:
    waiting = Waiting(count)
    waiting.tell()
    for move, first, second in moves:
        length = len(waiting.order)
        if move == "enter":
            waiting.enter(int(first * length))
        elif length:
            name = waiting.order.pop(min(length - 1, int(first * length)))
            if move == "move":
                waiting.order.insert(int(second * (length - 1)), name)
        waiting.tell()
        for place, name in enumerate(waiting.order, start=1):
            told = waiting.told(name)
            assert told == place if min(place, told) <= 10 else abs(told - place) <= place / 10


def test_a_job_that_enters_first_changes_few_positions_of_a_thousand() -> None:
    waiting = Waiting(1000)
    assert len(waiting.tell()) == 1000
    written = []
    for _ in range(20):
        waiting.enter(0)
        written.append(len(waiting.tell()))
    assert max(written) < 120
    assert sum(written) / len(written) < 70


def test_another_reason_brings_the_position_as_it_is() -> None:
    waiting = Waiting(40)
    waiting.tell()
    last = waiting.order[-1]
    view = waiting.jobs[key(last)]
    assert view.status.queue is not None
    other = view.status.queue.model_copy(update={"reason": "NoFreeNode", "position": 39})
    waiting.jobs[key(last)] = replace(view, status=view.status.model_copy(update={"queue": other}))
    assert waiting.tell() == [last]
    assert waiting.told(last) == 40


def test_what_is_near() -> None:
    assert is_near(11, 12)
    assert is_near(105, 100)
    assert not is_near(10, 11)
    assert not is_near(11, 10)
    assert not is_near(100, 89)
    assert not is_near(1, 2)
