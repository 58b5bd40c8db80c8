"""Training goes on without a control plane, and the lease is honoured."""

import os

import pytest

from chaos.played.gang import RATE
from chaos.played.outage import outage
from chaos.stage import Stage

pytestmark = pytest.mark.integration

SECONDS = float(os.environ.get("OUTAGE_SECONDS", "10"))


@pytest.mark.timeout(420 + 3 * SECONDS)
async def test_training_goes_on_without_a_control_plane(whole: Stage) -> None:
    seen = await outage(whole, SECONDS)
    assert seen.broken == []
    assert seen.told == ("second", 1)
    assert seen.after["first"] - seen.before["first"] > 0.5 * RATE * SECONDS, "it trained all the while"
    assert seen.runs["first"] == 1, "and was not disturbed when the control plane came back"
    assert -1.0 < seen.left_after < 10.0, "who was told to leave left at its lease's end"
    assert seen.saved > 0
    assert seen.resumed == seen.saved, "it went on from there later"
    assert seen.runs["second"] > 1
