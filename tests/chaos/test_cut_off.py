"""A node that is cut off, whose worker lives on and shares a volume with the job's next run."""

from pathlib import Path

import pytest

from chaos.played.cut_off import FENCE_SECONDS, cut_off
from chaos.stage import Stage

pytestmark = pytest.mark.integration


@pytest.mark.timeout(300)
@pytest.mark.parametrize("paused", [False, True], ids=["trains on", "is paused meanwhile"])
async def test_no_checkpoint_is_broken_or_set_back(whole: Stage, repository: Path, paused: bool) -> None:
    seen = await cut_off(whole, repository, paused=paused)
    first, second = ([line for line in seen.diary if line.run == run] for run in (1, 2))
    assert any(line.what == "trained" and line.at > seen.cut_at for line in first), "it trained on"
    assert seen.exit_code == 75, "and left by itself"
    assert "NodeNotFenced" in seen.reasons
    begun = second[0]
    assert begun.what == "read"
    assert begun.at - seen.cut_at > FENCE_SECONDS, "the next run waited for the fence"
    saved = [line for line in first if line.what == "saved"]
    assert all(line.at < begun.at for line in saved), "the old run wrote nothing once the new one had read"
    assert begun.step == saved[-1].step, "nothing that was saved is lost"
    steps = [line.step for line in seen.diary if line.what == "saved"]
    assert steps == sorted(set(steps)), "no checkpoint was set back"
    assert seen.newest == steps[-1]
