"""What a release has, made one after the other."""

import os
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images import sbom
from synergy_devcluster.images.project import GPU_PLUGIN, PROJECT_IMAGES, SCHEDULER, SOURCE, build_images
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import toolchain
from synergy_devcluster.programs.commands import run
from synergy_devcluster.release.archives import checksums, repacked, retagged
from synergy_devcluster.release.version import release_notes, release_version
from synergy_devcluster.steps import Report, silent

IMAGES = tuple(image.room for image in (*PROJECT_IMAGES, GPU_PLUGIN) if image != SCHEDULER)
"""The images of a release. The kube-scheduler is Kubernetes' own."""
EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"


def make_release(
    folder: Path, source: Path = SOURCE, *, images: tuple[str, ...] = IMAGES, report: Report = silent
) -> list[Path]:
    """Write the release of the source tree's version into the folder and return its files, SHA256SUMS last.

    Args:
        folder: Made if it is not there; files of the same name are replaced.
        source: The project's source tree.
        images: Images to archive.

    Raises:
        BadInputError: files disagree about the version, the changelog lacks it, or changes are not committed.
        DevclusterError: a build failed.
    """
    version = release_version(source)
    notes = release_notes(source, version)
    epoch = source_epoch(source)
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / f"kube-synergy-{version}-notes.md"]
    made[0].write_text(notes, encoding="utf-8")
    report("building wheel and source distribution")
    made += _distributions(folder, source, epoch)
    report("packing the chart")
    made.append(_chart(folder, source, version, epoch))
    for tag, archive in (build_images(source, only=images, report=report) if images else {}).items():
        name = PurePosixPath(tag).name.partition(":")[0]
        report(f"archiving {name}:{version}")
        made += _image(folder, archive, name, version, epoch)
    sums = folder / "SHA256SUMS"
    sums.write_text(checksums(made), encoding="utf-8")
    return [*made, sums]


def source_epoch(source: Path) -> int:
    """Seconds since 1970 that files of the release bear: SOURCE_DATE_EPOCH, else the time of the last commit.

    Raises:
        BadInputError: SOURCE_DATE_EPOCH is no number; or without it, changes are not committed, or git is not there.
    """
    given = os.environ.get(EPOCH_VARIABLE)
    if given is not None:
        if not given.isdecimal():
            raise BadInputError(f"{EPOCH_VARIABLE}: {given!r} is not a number of seconds since 1970")
        return int(given)
    git = ["git", "-C", str(source)]
    try:
        changed = run([*git, "status", "--porcelain"]).splitlines()
        if changed:
            raise BadInputError(f"{changed[0][3:]} is not committed: commit it, or set {EPOCH_VARIABLE} for a trial")
        return int(run([*git, "log", "-1", "--format=%ct"]))
    except BadInputError:
        raise
    except DevclusterError as error:
        raise BadInputError(f"{source} is no git checkout: set {EPOCH_VARIABLE} ({error})") from error


def _distributions(folder: Path, source: Path, epoch: int) -> list[Path]:
    """The source distribution and the wheel."""
    environment = {**os.environ, EPOCH_VARIABLE: str(epoch)}
    with tempfile.TemporaryDirectory() as scratch:
        build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel"]
        run(["env", "-C", source, *build, "--directory", scratch], env=environment, timeout_s=600)
        return [Path(shutil.copy(file, folder)) for file in sorted(Path(scratch).iterdir())]


def _chart(folder: Path, source: Path, version: str, epoch: int) -> Path:
    """The chart as `helm push` takes it."""
    target = folder / f"kube-synergy-{version}.tgz"
    with tempfile.TemporaryDirectory() as scratch:
        run([toolchain.locate(Paths.of())["helm"], "package", source / "helm/kube-synergy", "--destination", scratch])
        repacked(Path(scratch) / target.name, target, epoch)
    return target


def _image(folder: Path, archive: Path, name: str, version: str, epoch: int) -> list[Path]:
    """The archive, for `docker load` and `ctr images import`, and what is in it."""
    packed, listed = folder / f"{name}-{version}.image.tar.gz", folder / f"{name}-{version}.cdx.json"
    retagged(archive, packed, f"{name}:{version}", epoch)
    sbom.write(sbom.parts_of(archive), f"{name}:{version}", listed, at=datetime.fromtimestamp(epoch, UTC))
    return [packed, listed]
