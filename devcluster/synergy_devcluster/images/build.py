"""Container images without a registry: built by buildah on a local base, kept as archives, loaded into containerd."""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images.base import BASE_IMAGE, Buildah, base_fingerprint, ensure_base
from synergy_devcluster.images.dockerfile import Dockerfile, input_files, parse
from synergy_devcluster.images.pip_settings import pip_settings
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.commands import run
from synergy_devcluster.steps import Report, silent

_KEPT_S = 3600.0
_KEPT = 3
_UNTAGGED_KEPT = 40
"""A build of all images leaves about a dozen."""
_TAG = re.compile(r"localhost/[a-z0-9]([a-z0-9._/-]*[a-z0-9])?:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def build_image(
    dockerfile: Path,
    context: Path,
    tag: str,
    build_args: Mapping[str, str] | None = None,
    *,
    paths: Paths | None = None,
    report: Report = silent,
) -> Path:
    """Build an image with buildah and return its archive; nothing is done when no input changed.

    Inputs are the Dockerfile, the build arguments, the base images, and the files of the context that its
    COPY and ADD lines name. RUN lines see this machine's network and pip settings.

    Args:
        dockerfile: The Dockerfile; it may start from :data:`BASE_IMAGE`, from ``scratch``, or from an
            image built here before.
        context: The folder its COPY lines read.
        tag: ``localhost/NAME:TAG``.
        build_args: Values for its ARG lines.

    Raises:
        BadInputError: the Dockerfile, the context or the tag is wrong.
        DevclusterError: the build failed.
    """
    places, arguments = paths or Paths.of(), dict(build_args or {})
    _check_inputs(dockerfile, context, tag)
    parsed = parse(dockerfile.read_text(encoding="utf-8"), arguments)
    store = Buildah(places.images / "store")
    if not parsed.bases:
        # told without the store: what is there already waits for no build of somebody else's
        archive = places.images / f"{_file_name(tag)}-{_fingerprint(dockerfile, context, arguments, parsed, store)}.tar"
        if archive.exists():
            archive.touch()
            return archive
    with _only_one(places.images):
        if BASE_IMAGE in parsed.bases:
            ensure_base(places, store, report)
        name = _file_name(tag)
        archive = places.images / f"{name}-{_fingerprint(dockerfile, context, arguments, parsed, store)}.tar"
        if not archive.exists():
            report(f"building image {tag}")
            _buildah_build(dockerfile, context, tag, arguments, store)
            _forget_unused(places.images, name)
            _export(tag, archive, store)
            store.forget_untagged(_UNTAGGED_KEPT)
        archive.touch()
    return archive


def _forget_unused(folder: Path, name: str) -> None:
    """Remove an image's archives but the newest few and those asked for in the last hour: another checkout may be about
    to load its own."""
    used = {old: old.stat().st_mtime for old in folder.glob(f"{name}-{'?' * 16}.tar")}
    for old in sorted(used, key=lambda one: used[one], reverse=True)[_KEPT:]:
        if time.time() - used[old] > _KEPT_S:
            old.unlink()


def pause_image(program: Path, tag: str, paths: Paths, report: Report) -> Path:
    """Build the sandbox image from our own static program."""
    paths.images.mkdir(parents=True, exist_ok=True)
    # a context of its own: several clusters may come up at once
    with tempfile.TemporaryDirectory(prefix="pause-context-", dir=paths.images) as folder:
        context = Path(folder)
        shutil.copy2(program, context / "pause")
        dockerfile = context / "Dockerfile"
        text = 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n'
        dockerfile.write_text(text, encoding="utf-8")
        return build_image(dockerfile, context, tag, paths=paths, report=report)


def load_archive(archive: Path, socket: Path) -> None:
    """Import an image archive (docker or OCI) into the node's containerd.

    Raises:
        BadInputError: the file is missing or no image archive.
    """
    if not archive.is_file():
        raise BadInputError(f"archive {archive} is not a file")
    try:
        run(["ctr", f"--address={socket}", "--namespace=k8s.io", "images", "import", archive], timeout_s=900)
    except DevclusterError as error:
        if "unrecognized image format" in str(error) or "tar header" in str(error):
            raise BadInputError(f"archive {archive} is not a docker or OCI image archive") from error
        raise


def _check_inputs(dockerfile: Path, context: Path, tag: str) -> None:
    if not _TAG.fullmatch(tag):
        raise BadInputError(f"tag {tag!r}: write localhost/NAME:TAG, no image here goes to a registry")
    if not dockerfile.is_file():
        raise BadInputError(f"dockerfile {dockerfile} is not a file")
    if not context.is_dir():
        raise BadInputError(f"context {context} is not a folder")


def _fingerprint(
    dockerfile: Path, context: Path, arguments: Mapping[str, str], parsed: Dockerfile, store: Buildah
) -> str:
    digest = hashlib.sha256(dockerfile.read_bytes())
    for name in sorted(arguments):
        digest.update(f"\0{name}={arguments[name]}".encode())
    for base in parsed.bases:
        digest.update(f"\0{base}@{base_fingerprint() if base == BASE_IMAGE else _known_base(store, base)}".encode())
    for path in input_files(context, parsed.sources):
        digest.update(f"\0{path.relative_to(context)}\0{path.lstat().st_mode:o}\0".encode())
        digest.update(os.readlink(path).encode() if path.is_symlink() else path.read_bytes())
    return digest.hexdigest()[:16]


def _known_base(store: Buildah, base: str) -> str:
    identity = store.image_id(base)
    if identity is None:
        raise BadInputError(f"FROM {base}: no such image here, build it first or start from {BASE_IMAGE}")
    return identity


def _buildah_build(dockerfile: Path, context: Path, tag: str, arguments: Mapping[str, str], store: Buildah) -> None:
    with pip_settings() as mounts:
        options = ["--isolation=chroot", "--network=host", "--pull=never", "--layers=true"]
        options += [f"--volume={source}:{target}:ro" for source, target in mounts]
        options += [f"--build-arg={name}={value}" for name, value in arguments.items()]
        store.run(["build", *options, f"--file={dockerfile}", f"--tag={tag}", context], timeout_s=1800)


def _export(tag: str, archive: Path, store: Buildah) -> None:
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    store.run(["push", "--quiet", tag, f"docker-archive:{partial}:{tag}"], timeout_s=600)
    partial.rename(archive)


def _file_name(tag: str) -> str:
    return tag.removeprefix("localhost/").replace("/", "_").replace(":", "_")


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
