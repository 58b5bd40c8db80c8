"""Checkpoint files that are there whole or not at all, and that a worker of an older run cannot undo."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from synergy_job.checkpoints import fence
from synergy_job.checkpoints.files import sync_folder
from synergy_job.checkpoints.version import Version, writer_of
from synergy_job.checkpoints.versions import Versions

log = logging.getLogger("synergy_job")

KEPT = 2
"""Versions of a checkpoint that are kept."""


class CheckpointError(RuntimeError):
    """A checkpoint is there but cannot be read; the message names the file."""


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, keep: int = KEPT) -> Iterator[IO[bytes]]:
    """A binary file to write that takes the place of `path` at once when the block ends without an error.

    The bytes are on the disk before the name is. A crash at any moment leaves the old file or the new one. The newest
    `keep` versions stay in a folder beside it (`synergy_job.checkpoints.versions`); `newest_checkpoint` finds them. The
    folder is made where it is missing. One process of a run at a time may write a path.

    Raises FencedError, with nothing changed, where a newer run of the job writes the path, or this process has lost its
    lease.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: it must be at least 1")
    target = os.path.abspath(os.fspath(path))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    fence.check()
    versions = Versions(target, writer_of(os.environ), keep)
    mine = versions.claim()
    temporary = versions.temporary(mine)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fence.check()  # the block may have taken long
        versions.claim()
        versions.publish(temporary, mine)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(target))


def newest_checkpoint(path: str | os.PathLike[str]) -> str | None:
    """The file to read for the checkpoint at `path`: its newest whole version; None where nothing was written.

    A version that is damaged is passed over for the one before it, with a warning in the log. Where only `path` itself
    is there (an earlier version of this library wrote it, or a person put it there), that.
    """
    return next(checkpoint_files(path), None)


def checkpoint_files(path: str | os.PathLike[str]) -> Iterator[str]:
    """The files to read for the checkpoint at `path`, the best first: what `newest_checkpoint` returns, and its older
    versions."""
    target = os.path.abspath(os.fspath(path))
    versions = Versions(target, writer_of(os.environ))
    versions.join()
    whole = versions.whole()
    by_hand = _put_there_by_hand(target, whole)
    if by_hand:
        yield target
    for version in whole:
        problem = version.problem
        if not problem:
            yield version.path
        else:
            log.warning("checkpoint %s is damaged (%s); the one before it is tried", version.path, problem)
    if not by_hand and not whole and os.path.exists(target):
        yield target


def _put_there_by_hand(target: str, whole: list[Version]) -> bool:
    """Whether somebody has put another file in the checkpoint's place since the newest version was written."""
    try:
        shown = os.stat(target)
        versions = [os.stat(version.path) for version in whole]
    except FileNotFoundError:
        return False
    if not versions or any(os.path.samestat(shown, version) for version in versions):
        return False
    return shown.st_mtime_ns > max(version.st_mtime_ns for version in versions)


class Checkpoint:
    """One pickled object in one file, written atomically. The newest `keep` versions of it are kept.

    Reading runs what the pickle says, as `torch.load` does: read only files that the job itself wrote.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: int = KEPT) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._keep = keep

    def write(self, state: Any) -> None:
        """Put `state` in the file's place; a crash leaves the old file or the new one. Raises `FencedError` where this
        run may not write it any more."""
        with atomic_file(self.path, keep=self._keep) as file:
            pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)

    def read(self) -> Any:
        """What was last written, None where nothing was. Where the newest version cannot be read, the one before it,
        with a warning in the log. Raises `CheckpointError` where none can be read."""
        failure: tuple[str, Exception] | None = None
        for name in checkpoint_files(self.path):
            try:
                with open(name, "rb") as file:
                    return pickle.load(file)  # noqa: S301 - the job's own file
            except FileNotFoundError:
                continue
            except Exception as error:  # noqa: BLE001 - pickles raise anything
                log.warning("checkpoint %s cannot be read (%s: %s)", name, type(error).__name__, error)
                failure = failure or (name, error)
        if failure is None and not Versions(self.path, None).whole():
            return None
        name, why = failure if failure is not None else (self.path, CheckpointError("all of its versions are damaged"))
        raise CheckpointError(
            f"the checkpoint {name} cannot be read ({type(why).__name__}: {why}), nor one before it; "
            f"put a good copy in the place of {self.path}, or delete it and {Versions(self.path, None).folder} "
            "to train from the beginning"
        ) from why
