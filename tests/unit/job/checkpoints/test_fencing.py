"""A worker of an older run can neither replace, hide nor remove what a newer run wrote."""

import errno
import logging
import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_job import Checkpoint, CheckpointError, FencedError, atomic_file, newest_checkpoint
from synergy_job.checkpoints import versions as versions_module


@contextmanager
def run(number: int, job: str = "uid-1") -> Iterator[None]:
    """This process is a worker of that run."""
    names = {"SYNERGY_JOB": "j", "SYNERGY_NAMESPACE": "team", "SYNERGY_JOB_UID": job, "SYNERGY_RUN": str(number)}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def test_a_run_that_was_replaced_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("one")
        with pytest.raises(FencedError, match="belongs to a newer run by now"), atomic_file(checkpoint.path) as late:  # noqa: PT012 - the next run begins meanwhile
            late.write(b"late")
            with run(2):
                assert checkpoint.read() == "one"
        with pytest.raises(FencedError):
            checkpoint.write("later")
        with pytest.raises(FencedError):
            checkpoint.read()
    with run(2):
        assert checkpoint.read() == "one"


def _operations(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> None:
    """Call `before` with its number before each operation that changes files."""
    counted = 0

    def wrapped(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **more: object) -> object:
            nonlocal counted
            counted += 1
            before(counted)
            return real(*args, **more)

        monkeypatch.setattr(versions_module.os, name, call)

    for name in ("rename", "replace", "link", "unlink", "fsync"):
        wrapped(name)


@pytest.mark.parametrize("moment", range(1, 16))
def test_whenever_the_next_run_writes_the_older_one_never_hides_it(
    tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("first")
    happened = []

    def next_run(number: int) -> None:
        if number == moment:
            happened.append(number)
            monkeypatch.undo()
            with run(2):
                checkpoint.write("newer")

    _operations(monkeypatch, next_run)
    with run(1):
        with suppress(FencedError):
            checkpoint.write("older")
        monkeypatch.undo()
    if not happened:
        with run(2):
            checkpoint.write("newer")
    with run(3):
        assert checkpoint.read() == "newer"
        assert newest_checkpoint(checkpoint.path) is not None
    kept = [name for name in os.listdir(tmp_path / ".model.versions") if versions_module._DATA.fullmatch(name)]
    assert len(kept) >= 2


class Power(BaseException):
    """The machine goes off."""


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 18)), min_size=1, max_size=6))
def test_a_crash_at_any_operation_loses_nothing_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, crashes: list[tuple[int, int]]
) -> None:
    """`crashes`: how many runs later the next write is, and at which operation it is broken off."""
    checkpoint = Checkpoint(tmp_path_factory.mktemp("crash") / "model")
    number, value = 1, 0
    with run(number):
        checkpoint.write(value)
    for later, moment in crashes:
        number += later
        value += 1

        def off(counted: int, moment: int = moment) -> None:
            if counted >= moment:
                raise Power

        with run(number), pytest.MonkeyPatch.context() as patch:
            _operations(patch, off)
            try:
                checkpoint.write(value)
                written = value
            except Power:
                written = value - 1
        with run(number):
            found = checkpoint.read()
            assert found in (written, value)
            value = found


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_newest_version_is_passed_over_and_told(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        for value in ("a", "b", "c"):
            checkpoint.write([value] * 1000)
        newest = Path(newest_checkpoint(checkpoint.path) or "")
        whole = newest.read_bytes()
        newest.write_bytes(whole[:-10] if damage == "cut" else b"x" * len(whole))
        with caplog.at_level(logging.WARNING):
            assert checkpoint.read() == ["b"] * 1000
        assert "is damaged" in caplog.text


def test_where_no_version_can_be_read_the_error_says_what_to_do(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("a")
        Path(newest_checkpoint(checkpoint.path) or "").write_bytes(b"broken")
        with pytest.raises(CheckpointError, match=r"put a good copy in the place of .*, or delete it and .*versions"):
            checkpoint.read()


def test_a_file_of_the_former_library_and_one_put_there_by_hand_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps("former"))
    checkpoint = Checkpoint(path)
    with run(4):
        assert checkpoint.read() == "former"
        checkpoint.write("now")
        assert checkpoint.read() == "now"
        assert pickle.loads(path.read_bytes()) == "now"
        beside = tmp_path / "good"
        beside.write_bytes(pickle.dumps("by hand"))
        future = time.time() + 5
        os.utime(beside, (future, future))
        beside.rename(path)
        assert checkpoint.read() == "by hand"


def test_a_new_job_takes_over_what_a_former_one_left(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(9, job="uid-1"):
        checkpoint.write("former job")
    with run(1, job="uid-2"):
        assert checkpoint.read() == "former job"
        checkpoint.write("new job")
    with run(10, job="uid-1"), pytest.raises(FencedError, match="of another TrainingJob"):
        checkpoint.write("former job again")
    assert checkpoint.read() == "new job", "outside a cluster too"


def test_storage_without_hard_links_keeps_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(versions_module.os, "link", refuse)
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("a")
        checkpoint.write("b")
    with run(2):
        assert checkpoint.read() == "b"
    assert Path(checkpoint.path).read_bytes() == Path(newest_checkpoint(checkpoint.path) or "").read_bytes()


def test_fewer_versions_than_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep is 0"), atomic_file(tmp_path / "model", keep=0):
        pass


def test_a_job_that_only_reads_anothers_checkpoint_does_not_stop_its_saves(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1, job="trains"):
        checkpoint.write("first")
    with run(7, job="evaluates"):
        assert checkpoint.read() == "first"
        assert newest_checkpoint(checkpoint.path) is not None
    with run(1, job="trains"):
        checkpoint.write("second")
    with run(2, job="trains"):
        assert checkpoint.read() == "second"


def test_a_checkpoint_in_a_folder_that_may_not_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("first")
    real = os.open

    def read_only(path: str, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return real(path, flags, *more)

    monkeypatch.setattr(versions_module.os, "open", read_only)
    with run(2):
        assert checkpoint.read() == "first"
    assert "is read without a claim" in caplog.text


def test_other_errors_of_a_claim_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    with run(1):
        checkpoint.write("first")

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(versions_module.os, "open", broken)
    with run(2), pytest.raises(OSError, match="Input/output error"):
        checkpoint.read()


def test_two_processes_of_one_run_lose_nothing_that_one_of_them_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "model", keep=5)
    real = os.link

    def other_first(source: str, target: str, **more: Any) -> None:
        monkeypatch.setattr(versions_module.os, "link", real)
        checkpoint.write("other")
        real(source, target, **more)

    with run(1):
        checkpoint.write("first")
        monkeypatch.setattr(versions_module.os, "link", other_first)
        checkpoint.write("mine")
        whole = versions_module.Versions(checkpoint.path, None).whole()
        assert [version.problem for version in whole] == ["", "", ""]
        found = {pickle.loads(Path(version.path).read_bytes()) for version in whole}
        assert found == {"first", "other", "mine"}


def test_files_of_others_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model", keep=1)
    with run(1):
        checkpoint.write("a")
        foreign = tmp_path / ".model.versions" / "000001.00000001.00000001.mine"
        foreign.write_text("not ours")
        checkpoint.write("b")
    assert foreign.exists()
