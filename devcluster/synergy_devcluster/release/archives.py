"""Archives that come out the same each time: no times, owners or names of this machine."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

_BLOCK = 1 << 20


def retagged(archive: Path, target: Path, tag: str, epoch: int) -> None:
    """Write a docker archive, compressed, whose image is called `tag` and whose files are of `epoch` (seconds)."""
    with tarfile.open(archive) as old, _compressed(target) as new:
        for member in old:
            if member.name == "repositories":  # the names in an older form
                continue
            file = old.extractfile(member)
            content = file
            if member.name == "manifest.json" and file is not None:
                (about,) = json.load(file)
                data = json.dumps([{**about, "RepoTags": [tag]}], separators=(",", ":")).encode()
                member.size, content = len(data), io.BytesIO(data)
            new.addfile(_anonymous(member, epoch), content)


def repacked(archive: Path, target: Path, epoch: int) -> None:
    """Write a compressed archive anew: its files sorted by name and of `epoch` (seconds)."""
    with tarfile.open(archive) as old, _compressed(target) as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            new.addfile(_anonymous(member, epoch), old.extractfile(member) if member.isfile() else None)


def checksums(files: Iterable[Path]) -> str:
    """Lines that `sha256sum --check` reads, sorted by name."""
    lines = []
    for file in sorted(files, key=lambda one: one.name):
        digest = hashlib.sha256()
        with file.open("rb") as content:
            while block := content.read(_BLOCK):
                digest.update(block)
        lines.append(f"{digest.hexdigest()}  {file.name}\n")
    return "".join(lines)


class _compressed:  # noqa: N801 - used as a function
    """A new archive whose compressed form has no name and no time."""

    def __init__(self, target: Path) -> None:
        self._file = target.open("wb")
        self._gzip = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=self._file, mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def __enter__(self) -> tarfile.TarFile:
        return self._tar

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._gzip.close()
        self._file.close()


def _anonymous(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
    member.pax_headers = {}
    return member
