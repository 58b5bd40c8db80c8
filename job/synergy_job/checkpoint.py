"""Checkpoint files that are there whole or not at all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any


class CheckpointError(RuntimeError):
    """A checkpoint is there but cannot be read; the message names the file."""


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write that takes the place of `path` at once when the block ends without an error.

    The bytes are on the disk before the name is (write beside it, fsync, rename, fsync of the folder), so that a crash
    at any moment leaves the old file or the new one. The folder is made where it is missing. One process at a time may
    write a path.
    """
    target = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(target)
    os.makedirs(folder, exist_ok=True)
    beside = os.path.join(folder, f".{name}.tmp")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Checkpoint:
    """One pickled object in one file, written atomically.

    Reading runs what the pickle says, as `torch.load` does: read only files that the job itself wrote.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.fspath(path))

    def write(self, state: Any) -> None:
        """Put `state` in the file's place; a crash leaves the old file or the new one."""
        with atomic_file(self.path) as file:
            pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)

    def read(self) -> Any:
        """What was last written, None where nothing was. Raises `CheckpointError` for a file that cannot be read."""
        try:
            with open(self.path, "rb") as file:
                return pickle.load(file)  # noqa: S301 - the job's own file
        except FileNotFoundError:
            return None
        except Exception as error:
            raise CheckpointError(
                f"the checkpoint {self.path} cannot be read ({type(error).__name__}: {error}); "
                "put a good copy in its place, or delete it to train from the beginning"
            ) from error
