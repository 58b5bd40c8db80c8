"""What a worker writes of a save or load function that failed."""

import json
from pathlib import Path

from synergy_job.loop.termination import write_checkpoint_failure


def test_an_error_about_a_path_that_is_not_utf_8_is_valid_text(tmp_path: Path) -> None:
    path = tmp_path / "termination"
    error = RuntimeError("cannot write " + b"/ckpt/caf\xe9".decode("utf-8", "surrogateescape"))
    write_checkpoint_failure(str(path), "save", error, (7, 1.5))
    told = json.loads(path.read_text("utf-8"))
    assert told["error"] == r"RuntimeError: cannot write /ckpt/caf\udce9"
    assert (told["outcome"], told["function"], told["step"]) == ("failed", "save", 7)
