"""The base of every image built here: Debian with Python and CA certificates, made once by debootstrap."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.commands import run
from synergy_devcluster.steps import Report

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3", "python3-pip", "python3-venv")
BASE_IMAGE = f"localhost/kube-synergy-base:{SUITE}"
_REMOVED_AT_ONCE = 20
_DOCKERFILE = """FROM scratch
ADD root.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
CMD ["python3"]
"""


def base_fingerprint() -> str:
    """Return a short hash of what decides the base image's content."""
    return hashlib.sha256(repr((SUITE, PACKAGES, _DOCKERFILE, "like-a-python-image, 2")).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Buildah:
    """buildah with an image store of its own: nothing of the machine's is used or changed."""

    store: Path

    def run(self, arguments: Sequence[str | Path], timeout_s: float = 60) -> str:
        """Run one buildah command on the store."""
        self.store.mkdir(parents=True, exist_ok=True)
        place = [f"--root={self.store / 'root'}", f"--runroot={self.store / 'run'}", "--storage-driver=overlay"]
        return run(["buildah", *place, *arguments], timeout_s=timeout_s)

    def image_id(self, tag: str) -> str | None:
        """Return the id of the image of this name, or None when the store has none."""
        listing = self.run(["images", "--no-trunc", "--format={{.Name}}:{{.Tag}} {{.ID}}"])
        return dict(line.split(" ", 1) for line in listing.splitlines()).get(tag)

    def forget_untagged(self, keep: int) -> None:
        """Remove images without a name, and the layers that only they have. The newest `keep` stay, because the next
        build starts from them. A removal takes a second, so one call removes a few. An image that cannot be removed,
        because the container of an interrupted build uses it, stays and does not count."""
        untagged = [one for one in json.loads(self.run(["images", "--json"]) or "[]") if not one["names"]]
        untagged.sort(key=lambda one: str(one["createdatraw"]))
        removed = 0
        for old in untagged[: max(0, len(untagged) - keep)]:
            if removed == _REMOVED_AT_ONCE:
                return
            with suppress(DevclusterError):
                self.run(["rmi", old["id"]], timeout_s=300)
                removed += 1


def ensure_base(paths: Paths, store: Buildah, report: Report) -> None:
    """Make the base image in the store unless it is there.

    Raises:
        DevclusterError: the machine's apt names no Debian mirror, or debootstrap failed.
    """
    made = paths.images / f"base-{base_fingerprint()}.id"
    if made.exists() and made.read_text(encoding="utf-8") == store.image_id(BASE_IMAGE):
        return
    report(f"making the base image {BASE_IMAGE} (once)")
    work = paths.images / "base"
    clear(work)
    work.mkdir(parents=True)
    root = work / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE]
    run([*command, root, debian_mirror()], timeout_s=900)
    for cache in ("var/cache/apt/archives", "var/lib/apt/lists", "var/log"):
        _empty(root / cache)
    _like_a_python_image(root)
    run(["tar", "--numeric-owner", "--one-file-system", "-C", root, "-cf", work / "root.tar", "."], timeout_s=300)
    shutil.rmtree(root)
    (work / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
    store.run(["build", "--isolation=chroot", f"--tag={BASE_IMAGE}", work], timeout_s=600)
    shutil.rmtree(work)
    made.write_text(store.image_id(BASE_IMAGE) or "", encoding="utf-8")


def clear(work: Path) -> None:
    """Remove what an interrupted run left of its work: debootstrap has /proc mounted in its tree meanwhile."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    for point in reversed([line.split()[1] for line in mounts]):
        if Path(point).is_relative_to(work):
            run(["umount", point])
    shutil.rmtree(work, ignore_errors=True)


def _like_a_python_image(root: Path) -> None:
    """Let ``python`` and a plain ``pip install`` work, as they do in the images of the Python project."""
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    # where a build mounts the machine's pip settings
    (root / "etc/pip.conf").touch()
    for marker in (root / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        marker.unlink()


def debian_mirror() -> str:
    """Return the address of the Debian mirror that this machine's apt uses.

    Raises:
        DevclusterError: apt has no Debian mirror configured.
    """
    listing = run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)",
            "Created-By: Packages",
        ]
    )
    for line in listing.splitlines():
        origin, component, codename, address = line.split(" ", 3)
        if origin == "Debian" and component == "main" and "-" not in codename:
            return address
    raise DevclusterError("apt names no Debian mirror (run 'apt-get update' with a Debian source in /etc/apt)")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
