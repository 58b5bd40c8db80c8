"""Whatever a container leaves as its termination message, its run ends and the status can be written."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.operator.world import World
from synergy_api.length import MOST_STEPS
from synergy_api.parts.service import RunOutcome

HALF = "\udcff"
"""Half of a surrogate pair, as Python has it for a byte of a path that is not UTF-8."""
NESTED = 3000
FIELDS = ("step", "checkpoint_step", "save_seconds", "trained_seconds", "ended_early", "function", "error")
OUTCOMES = ("finished", "measured", "yielded", "failed")

numbers = (
    st.integers(-(10**40), 10**40)
    | st.sampled_from((MOST_STEPS, MOST_STEPS + 1, 2**63, 2**64, 10**400))
    | st.floats()
    | st.booleans()
)
texts = st.text(st.sampled_from(f"a é😀\0{HALF}\ud83d"), max_size=250)
values = numbers | texts | st.none() | st.lists(texts, max_size=2)
objects = st.fixed_dictionaries(
    {"outcome": st.sampled_from(OUTCOMES) | values}, optional=dict.fromkeys(FIELDS, values)
).map(json.dumps)
nested = st.builds(lambda opening, times: opening * times, st.sampled_from(("[", '{"step":')), st.integers(1, NESTED))


def left(message: str, code: int = 1) -> World:
    """A job whose only worker has left this message."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", code, message)
    world.settle()
    return world


def outcome(world: World) -> RunOutcome:
    service = world.status.service
    assert service is not None
    assert service.ended_run == 1
    assert service.last is not None
    return service.last


@given(objects | nested | st.text(), st.sampled_from((0, 1, 75, 137)))
@example("[" * NESTED, 1)
@example(json.dumps({"outcome": "failed", "function": HALF, "error": HALF}), 1)
@example(json.dumps({"outcome": "finished", "step": 1, "ended_early": HALF}), 0)
@example(json.dumps({"outcome": "yielded", "step": 10**30}), 75)
def test_a_run_ends_whatever_its_container_leaves(message: str, code: int) -> None:
    world = left(message, code)
    assert outcome(world).reason
    assert world.status.service is not None
    assert world.status.service.failures == (outcome(world).outcome == "Failed")
    if code and outcome(world).outcome != "Yielded":
        assert world.status.service.failures == 1, "it counts against spec.backoffLimit"


def test_an_error_about_a_path_that_is_not_utf_8_is_told() -> None:
    world = left(json.dumps({"outcome": "failed", "function": "save", "error": f"OSError: '/ckpt/{HALF}'", "step": 7}))
    assert world.reason("Running") == "CheckpointFailed"
    assert r"OSError: '/ckpt/\udcff'" in world.message("Running")
    assert outcome(world).step == 7


def test_a_reason_to_end_early_keeps_its_words() -> None:
    world = left(json.dumps({"outcome": "finished", "step": 7, "ended_early": f"loss of {HALF} is 😀"}), 0)
    assert (outcome(world).step, outcome(world).ended_early) == (7, r"loss of \udcff is 😀")
    assert world.status.phase == "Succeeded"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (0, 0),
        (MOST_STEPS, MOST_STEPS),
        (MOST_STEPS + 1, None),
        (10**30, None),
        (-1, None),
        (True, None),
        (7.0, None),
        (float("nan"), None),
        ("7", None),
    ],
)
def test_a_step_that_no_job_has_is_not_told(step: Any, told: int | None) -> None:
    world = left(json.dumps({"outcome": "yielded", "step": step, "trained_seconds": 5.0}), 75)
    assert (outcome(world).outcome, outcome(world).step) == ("Yielded", told)


@pytest.mark.parametrize("field", ["save_seconds", "trained_seconds"])
@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5.5, 5.5), (1e300, None), (float("inf"), None), (float("nan"), None), (-1.0, None), (True, None)],
)
def test_seconds_that_no_worker_has_had_are_not_told(field: str, seconds: float, told: float | None) -> None:
    world = left(json.dumps({"outcome": "yielded", "step": 7, field: seconds}), 75)
    assert getattr(outcome(world), field) == told
    assert outcome(world).step == 7
