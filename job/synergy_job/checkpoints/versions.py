"""The versions of one checkpoint file, ordered by the run that wrote them.

Beside the file `model.pkl` is the folder `.model.pkl.versions`. All names in it are made once and never reused:

    epoch-000002                      which TrainingJob writes here (its UID): a new job takes the next epoch
    run-000002.00000007               run 7 of that job has begun to use the checkpoint
    000002.00000007.00000003          the third version that it wrote ...
    000002.00000007.00000003.json     ... is whole: its size and checksum

Of two versions the one of the later (epoch, run, number) is newer, whenever it was written. So a worker of an older run
that writes late can neither replace nor hide what a newer run wrote, and removes only what is older than itself.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import secrets
import shutil

from synergy_job.checkpoints.fence import FencedError
from synergy_job.checkpoints.files import make, remove, sync_folder, text, touch
from synergy_job.checkpoints.version import Version, Writer, checksum

log = logging.getLogger("synergy_job")

_DATA = re.compile(r"(\d{6})\.(\d{8})\.(\d{8})")
_OURS = re.compile(r"(\d{6})\.(\d{8})\.\d{8}(\.json)?")
_RUN = re.compile(r"run-(\d{6})\.(\d{8})")
_EPOCH = re.compile(r"epoch-(\d{6})")
_TEMPORARY = re.compile(r"tmp-(\d{6})\.(\d{8})\..*")


class Versions:
    """The versions of the checkpoint at `path`; the newest `keep` of them are kept.

    `writer` is the run of this process. Without one (outside a cluster) it writes as the newest run there is.
    """

    def __init__(self, path: str, writer: Writer | None, keep: int = 2) -> None:
        self.path = path
        self.folder = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.versions")
        self._writer = writer
        self._keep = keep

    def whole(self) -> list[Version]:
        """The versions that were written to their end, the newest first. They may have been damaged since."""
        names = self._names()
        found = []
        for name in names:
            match = _DATA.fullmatch(name)
            if match is None or f"{name}.json" not in names:
                continue
            try:
                with open(os.path.join(self.folder, f"{name}.json"), encoding="utf-8") as file:
                    told = json.load(file)
                order = [int(group) for group in match.groups()]
                path = os.path.join(self.folder, name)
                found.append(Version(order[0], order[1], order[2], path, int(told["size"]), int(told["checksum"])))
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("the version %s of checkpoint %s is passed over: %s", name, self.path, error)
        return sorted(found, reverse=True)

    def claim(self) -> tuple[int, int]:
        """Claim the checkpoint for this run: older runs then stop writing it; its (epoch, run).

        Raises FencedError where a newer run has said so.
        """
        os.makedirs(self.folder, exist_ok=True)
        newest = self._newest_claim()
        if self._writer is None:
            return newest
        mine = (self._epoch(self._writer.job), self._writer.run)
        if newest > mine:
            raise FencedError(
                f"no checkpoint is written: {self.path} belongs to a newer run by now (run {newest[1]}"
                + (")" if newest[0] == mine[0] else " of another TrainingJob)")
            )
        touch(os.path.join(self.folder, f"run-{mine[0]:06d}.{mine[1]:08d}"))
        return mine

    def join(self) -> None:
        """Claim the checkpoint before it is read, where this run's job writes it.

        A job that only reads the checkpoint of another one claims nothing: a claim would stop that one's saves. Neither
        does a reader that may not write here. Raises FencedError where a newer run has claimed it.
        """
        if self._writer is None or self._known_epoch(self._writer.job) is None:
            return
        try:
            self.claim()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            log.warning("checkpoint %s is read without a claim: %s", self.path, error)

    def temporary(self, mine: tuple[int, int]) -> str:
        """A name to write to that no other writer uses."""
        return os.path.join(self.folder, f"tmp-{mine[0]:06d}.{mine[1]:08d}.{os.getpid()}.{secrets.token_hex(8)}")

    def publish(self, temporary: str, mine: tuple[int, int]) -> None:
        """Make what was written, and is on the disk, the newest version of this run; then let `path` show the newest
        version there is, and remove what is not kept.

        Raises FencedError where a newer run has taken over meanwhile: it removes what older runs have not finished.
        """
        try:
            self._publish(temporary, mine)
        except FileNotFoundError:
            self.claim()
            raise

    def _publish(self, temporary: str, mine: tuple[int, int]) -> None:
        written = {"size": os.path.getsize(temporary), "checksum": checksum(temporary)}
        data = self._named(temporary, mine)
        told = self.temporary(mine)
        with open(told, "w", encoding="utf-8") as file:
            json.dump(written, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(told, f"{data}.json")
        sync_folder(self.folder)
        versions = self.whole()
        self._show(versions[0].path, mine)
        self._prune(versions, mine)

    def _named(self, temporary: str, mine: tuple[int, int]) -> str:
        """Give what was written the next free name of this run; nothing that has the name already is replaced."""
        number = max((version[2] for version in self._data() if version[:2] == mine), default=0)
        while True:
            number += 1
            data = os.path.join(self.folder, f"{mine[0]:06d}.{mine[1]:08d}.{number:08d}")
            try:
                os.link(temporary, data)
            except FileExistsError:
                continue
            except FileNotFoundError:
                raise
            except OSError:  # a storage without hard links: one process of a run writes a path
                os.rename(temporary, data)
            else:
                os.unlink(temporary)
            return data

    def _show(self, newest: str, mine: tuple[int, int]) -> None:
        beside = self.temporary(mine)
        try:
            os.link(newest, beside)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES):
                raise
            shutil.copy2(newest, beside)  # a storage without hard links: the bytes are there twice
        os.replace(beside, self.path)
        sync_folder(os.path.dirname(self.path))

    def _prune(self, versions: list[Version], mine: tuple[int, int]) -> None:
        kept = {os.path.basename(version.path) for version in versions[: self._keep]}
        for name in self._names():
            data = _OURS.fullmatch(name)
            match = data or _TEMPORARY.fullmatch(name) or _RUN.fullmatch(name)
            if match is None or name.removesuffix(".json") in kept:
                continue
            owner = (int(match.group(1)), int(match.group(2)))
            finished = data is not None
            if owner < mine or (finished and owner == mine):
                remove(os.path.join(self.folder, name))

    def _epoch(self, job: str) -> int:
        """The epoch of this job; a new one where it has none yet."""
        while True:
            known = self._known_epoch(job)
            if known is not None:
                return known
            taken = max(self._epochs(), default=0) + 1
            beside = os.path.join(self.folder, f"new-{os.getpid()}.{secrets.token_hex(8)}")
            with open(beside, "w", encoding="utf-8") as file:
                file.write(job)
                file.flush()
                os.fsync(file.fileno())
            try:
                if make(beside, os.path.join(self.folder, f"epoch-{taken:06d}")):
                    sync_folder(self.folder)
                    return taken
            finally:
                remove(beside)

    def _known_epoch(self, job: str) -> int | None:
        """The newest epoch of this job; None where it has not written here."""
        epochs = sorted(self._epochs(), reverse=True)
        return next((epoch for epoch in epochs if text(os.path.join(self.folder, f"epoch-{epoch:06d}")) == job), None)

    def _epochs(self) -> list[int]:
        return [int(match.group(1)) for name in self._names() if (match := _EPOCH.fullmatch(name))]

    def _newest_claim(self) -> tuple[int, int]:
        claims = [(int(m.group(1)), int(m.group(2))) for name in self._names() if (m := _RUN.fullmatch(name))]
        return max([*claims, *(version[:2] for version in self._data())], default=(1, 0))

    def _data(self) -> list[tuple[int, int, int]]:
        found = (_DATA.fullmatch(name) for name in self._names())
        return [(int(m.group(1)), int(m.group(2)), int(m.group(3))) for m in found if m is not None]

    def _names(self) -> set[str]:
        try:
            return set(os.listdir(self.folder))
        except FileNotFoundError:
            return set()
