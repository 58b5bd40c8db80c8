"""One version of a checkpoint: the run that wrote it, its order among others, and whether its file is intact."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass

_CHUNK = 1 << 22
CHECKED_BYTES = 1 << 30
"""A checksum covers so many bytes: reading more again would take too long."""


@dataclass(frozen=True)
class Writer:
    """Who writes: the job's UID (or its name, where the UID is not known) and the number of its run."""

    job: str
    run: int


def writer_of(environ: os._Environ[str] | dict[str, str]) -> Writer | None:
    """The run that this process belongs to; None outside a TrainingJob."""
    if not environ.get("SYNERGY_JOB") or not environ.get("SYNERGY_RUN", "").isdigit():
        return None
    name = environ.get("SYNERGY_JOB_UID") or f"{environ.get('SYNERGY_NAMESPACE', '')}/{environ['SYNERGY_JOB']}"
    return Writer(name, int(environ["SYNERGY_RUN"]))


@dataclass(frozen=True, order=True)
class Version:
    """One whole version; the greatest is the newest."""

    epoch: int
    run: int
    number: int
    path: str
    size: int
    checksum: int

    @property
    def problem(self) -> str:
        """What is wrong with the file; empty where it is as it was written."""
        try:
            size = os.path.getsize(self.path)
            if size != self.size:
                return f"it has {size} bytes instead of {self.size}"
            return "" if checksum(self.path) == self.checksum else "its checksum is wrong"
        except OSError as error:
            return f"{type(error).__name__}: {error}"


def checksum(path: str) -> int:
    """CRC-32 of the first `CHECKED_BYTES`."""
    value, left = 0, CHECKED_BYTES
    with open(path, "rb") as file:
        while left > 0 and (chunk := file.read(min(_CHUNK, left))):
            value, left = zlib.crc32(chunk, value), left - len(chunk)
    return value
