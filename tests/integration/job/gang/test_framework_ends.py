"""A framework that ends training before the job does, in a gang."""

import json
from pathlib import Path

from support.job.process import Job

RANKS = range(3)
STEPS = 4
SCRIPT = f"""
import os, sys
from pathlib import Path
from synergy_job.integrations.steps import Steps

folder = Path(sys.argv[2])
steps = Steps(save=lambda step: (folder / f"saved-{{os.environ['RANK']}}").write_text(str(step)),
              load=lambda: None, epoch_steps=5)
for made in range(1, {STEPS + 1}):
    assert steps.next()
steps.end("the framework has enough", begun=True)
assert not steps.next()
"""


def test_the_last_step_is_saved_and_all_are_done(gang: Job, tmp_path: Path) -> None:
    """The gang has granted steps that nobody makes any more."""
    gang.script = tmp_path / "framework.py"
    gang.script.write_text(SCRIPT)
    ended = [gang.end(process) for process in [gang.start(rank=rank) for rank in RANKS]]
    assert [code for code, _ in ended] == [0, 0, 0], ended
    told = json.loads((gang.folder / "termination-0").read_text())
    assert (told["outcome"], told["step"], told["checkpoint_step"]) == ("finished", STEPS, STEPS)
    assert told["ended_early"] == "the framework has enough"
    assert (gang.folder / "saved-0").read_text() == str(STEPS)
