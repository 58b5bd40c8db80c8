"""Checkpoints that a framework writes in its own form: which of them is whole, and the newest."""

from __future__ import annotations

import os
import re
import shutil
from typing import Any

from synergy_job.checkpoints import fence
from synergy_job.checkpoints.checkpoint import Checkpoint, CheckpointError
from synergy_job.checkpoints.version import writer_of
from synergy_job.checkpoints.versions import Versions

_BEGUN = re.compile(r"step-\d{12}\.(\d{6})\.(\d{8})(\.[a-z]+)?")


class Saved:
    """The record of a folder's checkpoints. A checkpoint counts once it is recorded: then it is whole, and on disk.

    The record keeps the protection of `synergy_job.Checkpoint`: a worker of an old run cannot replace a newer one.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self._record = Checkpoint(os.path.join(self.folder, "synergy_job.pkl"))

    def begin(self, step: int, ending: str = "") -> str:
        """Claim the folder; the name for this run's checkpoint of `step`, which no other run writes to.

        Raises like `claim`.
        """
        epoch, run = self.claim()
        return f"step-{step:012d}.{epoch:06d}.{run:08d}{ending}"

    def claim(self) -> tuple[int, int]:
        """Claim the folder for this run before something is written there; its (epoch, run).

        Raises FencedError where a newer run has claimed it, or this process has lost its lease.
        """
        os.makedirs(self.folder, exist_ok=True)
        fence.check()
        return Versions(self._record.path, writer_of(os.environ)).claim()

    def record(self, step: int, name: str, *, own: bool = True, **more: Any) -> None:
        """The checkpoint `name`, a file or a folder here, has been written after `step`; `more` comes back with it.

        Of its `own` checkpoints it keeps the newest two. The framework may have removed the one before already. What
        this run and older ones have begun and not recorded is removed too, once one that was begun is recorded.
        """
        _to_disk(os.path.join(self.folder, name))
        before = self._record.read()
        kept, older = None, None
        if before is not None:
            again = before["name"] == name or not before.get("own", True)
            kept, older = (before["before"], None) if again else (before["name"], before["before"])
        self._record.write({"step": step, "name": name, "before": kept, "own": own, **more})
        if older is not None and older != name:
            _remove(os.path.join(self.folder, older))
        if mine := _owner(name):
            for found in os.listdir(self.folder):
                owner = _owner(found)
                if owner is not None and owner <= mine and found not in (name, kept):
                    _remove(os.path.join(self.folder, found))

    def newest(self) -> dict[str, Any] | None:
        """The newest record, None if there is none. Raises `CheckpointError` if what it names is gone."""
        found: dict[str, Any] | None = self._record.read()
        if found is None:
            return None
        if not os.path.exists(self.path(found)):
            raise CheckpointError(
                f"{self.path(found)} is gone: restore it, or delete {self._record.path} and its versions to begin anew"
            )
        return found

    def path(self, record: dict[str, Any]) -> str:
        """Where the checkpoint of a record is."""
        return os.path.join(self.folder, record["name"])


def _owner(name: str) -> tuple[int, int] | None:
    """Epoch and run of a checkpoint that `begin` named; None for other names."""
    match = _BEGUN.fullmatch(name)
    return None if match is None else (int(match.group(1)), int(match.group(2)))


def _to_disk(path: str) -> None:
    files = (
        [path] if os.path.isfile(path) else [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
    )
    for file in files:
        opened = os.open(file, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _remove(path: str) -> None:
    """Remove a checkpoint. The framework may have removed it."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)
