"""Checkpoint files are whole, whatever happens while they are written."""

import os
from pathlib import Path

import pytest

from synergy_job import Checkpoint, CheckpointError, atomic_file


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "folder" / "model")
    assert checkpoint.read() is None
    checkpoint.write({"step": 1})
    checkpoint.write({"step": 2})
    assert checkpoint.read() == {"step": 2}
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == [".model.versions", "model"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="half way"), atomic_file(file) as new:  # noqa: PT012
        new.write(b"new")
        raise RuntimeError("half way")
    assert file.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == [".model.versions", "model"]
    assert os.listdir(tmp_path / ".model.versions") == []


def test_a_state_that_cannot_be_pickled_leaves_the_old_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    checkpoint.write("old")
    with pytest.raises((AttributeError, TypeError)):
        checkpoint.write(lambda: None)
    assert checkpoint.read() == "old"


def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"not a pickle")
    with pytest.raises(
        CheckpointError, match=f"the checkpoint {file} cannot be read .* delete it and .* to train from"
    ):
        Checkpoint(file).read()
