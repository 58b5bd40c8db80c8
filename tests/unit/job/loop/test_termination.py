"""What a worker writes of a save or load function that failed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synergy_job.loop.termination import LONGEST_MESSAGE, write_checkpoint_failure, write_termination_message


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("worker") / "termination"


def told(path: Path) -> Any:
    """What the operator reads: the kubelet keeps the last 4096 bytes of the file."""
    return json.loads(path.read_bytes()[-4096:])


def test_an_error_about_a_path_that_is_not_utf_8_is_valid_text(path: Path) -> None:
    error = RuntimeError("cannot write " + b"/ckpt/caf\xe9".decode("utf-8", "surrogateescape"))
    write_checkpoint_failure(str(path), "save", error, (7, 1.5))
    assert told(path)["error"] == r"RuntimeError: cannot write /ckpt/caf\udce9"
    assert (told(path)["outcome"], told(path)["function"], told(path)["step"]) == ("failed", "save", 7)


def test_of_a_long_error_the_name_and_the_last_line_are_kept(path: Path) -> None:
    keys = "\n".join(f"\tMissing key: layer.{number}.weight" for number in range(1000))
    write_checkpoint_failure(str(path), "load", ValueError(f"state of Net:\n{keys}\nno space left on device"), None)
    error = told(path)["error"]
    assert error.startswith("ValueError: state of Net:\n\tMissing key: layer.0.weight")
    assert error.endswith("\nno space left on device")
    assert len(error) == 500


def test_an_error_of_so_many_letters_is_kept_whole(path: Path) -> None:
    write_checkpoint_failure(str(path), "save", OSError("盘" * 491), None)
    assert told(path)["error"] == "OSError: " + "盘" * 491


@given(st.text(), st.none() | st.tuples(st.integers(0, 1 << 62), st.floats(0, 1e10)))
@example("😀" * 500, (1 << 62, 1e10))
@example("\0" * 5000, (1 << 62, 1e10))
@example("\udcff" * 500, None)
def test_a_failure_fits_beside_those_of_five_other_containers(
    path: Path, text: str, kept: tuple[int, float] | None
) -> None:
    write_checkpoint_failure(str(path), "save", OSError(text), kept)
    assert path.stat().st_size <= LONGEST_MESSAGE
    assert told(path)["error"].startswith("OSError: ")
    assert told(path).get("step") == (kept[0] if kept is not None else None)


def test_half_of_a_surrogate_pair_in_the_reason_of_an_early_end_is_escaped(path: Path) -> None:
    write_termination_message(str(path), "finished", 5, 5, ended_early="caf\udce9 é")
    assert told(path)["ended_early"] == "caf\udce9 é"
    assert path.read_text("utf-8").isprintable()
