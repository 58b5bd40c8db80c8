"""One worker of a gang may not write the checkpoint that all of them write together."""

from pathlib import Path

import pytest

from support.job.process import Job

RANKS = range(3)
STEPS = 6
SCRIPT = f"""
import os, sys
from pathlib import Path
import synergy_job

rank, folder, fenced = os.environ["RANK"], Path(sys.argv[2]), []

def save(step):
    if rank == os.environ["FENCED"] and not fenced:
        fenced.append(step)
        raise synergy_job.FencedError("another run has the checkpoint")
    (folder / f"saved-{{rank}}").write_text(str(step))

for _ in synergy_job.iterate(lambda epoch: range({STEPS}), save=save, load=lambda: None, save_on="all",
                             checkpoint_every_steps={STEPS}):
    pass
"""


@pytest.mark.parametrize("fenced", RANKS)
def test_all_leave_and_nobody_tries_the_same_step_again(gang: Job, tmp_path: Path, fenced: int) -> None:
    """The last step is also one of a periodic checkpoint: a worker that tried it again would wait for the others, which
    have written theirs."""
    gang.script = tmp_path / "saves_together.py"
    gang.script.write_text(SCRIPT)
    environ = {"SYNERGY_STEPS": str(STEPS), "FENCED": str(fenced)}
    ended = [gang.end(process) for process in [gang.start(rank=rank, **environ) for rank in RANKS]]
    assert [code for code, _ in ended] == [75, 75, 75], ended
    saved = {rank for rank in RANKS if (gang.folder / f"saved-{rank}").exists()}
    assert saved == set(RANKS) - {fenced}
