"""Write image archives as `docker load`, `kind load` and `ctr import` read them, from folders and without a builder."""

import hashlib
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synergy_devcluster.programs.commands import run

_BLOCK = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH_VARIABLE = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class FolderImage:
    """An image of one layer: what a folder holds, and how a container of it starts."""

    tag: str
    root: Path
    entrypoint: Sequence[str] = ()
    more: Mapping[str, object] = field(default_factory=dict)


def write_archive(images: Iterable[FolderImage], file: Path) -> None:
    """Write an archive of all images. Layers are made beside it meanwhile.

    Raises:
        DevclusterError: a folder could not be packed.
    """
    partial = file.with_suffix(".partial")
    manifest = []
    with tarfile.open(partial, "w") as archive:
        for number, image in enumerate(images):
            layer = file.with_suffix(f".layer-{number}")
            try:
                run(["tar", "--numeric-owner", "--one-file-system", "-C", image.root, "-cf", layer, "."], timeout_s=900)
                digest = _sha256(layer)
                archive.add(layer, f"{digest}.tar", filter=_plain)
            finally:
                layer.unlink(missing_ok=True)
            config = file.with_suffix(f".config-{number}")
            config.write_text(json.dumps(_config(image, digest)), encoding="utf-8")
            name = f"{_sha256(config)}.json"
            archive.add(config, name, filter=_plain)
            config.unlink()
            manifest.append({"Config": name, "RepoTags": [image.tag], "Layers": [f"{digest}.tar"]})
        listing = file.with_suffix(".manifest")
        listing.write_text(json.dumps(manifest), encoding="utf-8")
        archive.add(listing, "manifest.json", filter=_plain)
        listing.unlink()
    partial.rename(file)


def _config(image: FolderImage, layer: str) -> dict[str, object]:
    machine = platform.machine()
    settings = {"Env": [PATH_VARIABLE], "Entrypoint": list(image.entrypoint) or None, **image.more}
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created_by": "synergy_devcluster.kind"}],
    }


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
