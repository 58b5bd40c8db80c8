"""The node image for kind, built from Debian packages and the programs built here."""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.images.base import SUITE, clear, debian_mirror
from synergy_devcluster.kind import node_images
from synergy_devcluster.kind.archive import FolderImage, write_archive
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import prerequisites
from synergy_devcluster.programs.commands import run
from synergy_devcluster.programs.toolchain import Module, kind_node_module, locate, modules
from synergy_devcluster.programs.versions import pinned
from synergy_devcluster.steps import Report

PACKAGES: Final = (
    "ca-certificates", "conntrack", "containerd", "containernetworking-plugins", "dbus", "ethtool", "hostname",
    "iproute2", "iptables", "kmod", "mount", "nftables", "procps", "runc", "systemd", "systemd-sysv", "util-linux",
)  # fmt: skip
FILES: Final = Path(__file__).parent / "node"
_SERVICES: Final = ("containerd.service", "kubelet.service")
_MASKED: Final = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
    "getty.target", "console-getty.service", "run-rpc_pipefs.mount", "systemd-binfmt.service",
    "systemd-timesyncd.service", "systemd-udevd.service", "systemd-udev-trigger.service",
)  # fmt: skip
_UNNEEDED: Final = ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists")


def tag() -> str:
    """The name of the image, which ends with the version of Kubernetes."""
    return f"localhost/kube-synergy-kind-node:v{pinned().kubernetes}"


def build(report: Report, paths: Paths | None = None) -> Path:
    """Return the archive of the image, built if nothing has it yet; `docker load` takes it.

    Raises:
        DevclusterError: this machine is not root on Debian, a program is missing, or a step failed.
    """
    places = paths or Paths.of()
    archive = places.cache / "kind" / f"node-{fingerprint()}.tar"
    if archive.exists():
        return archive
    prerequisites.check()
    programs = locate(places, report, wanted=_modules())
    with _only_one(archive.parent):
        if not archive.exists():
            report(f"building the node image {tag()} (once)")
            _build(archive, programs)
    return archive


def fingerprint() -> str:
    """A short hash of all that decides what is in the image."""
    digest = hashlib.sha256(repr((SUITE, PACKAGES, _MASKED, [module.fingerprint() for module in _modules()])).encode())
    for file in [*sorted(FILES.rglob("*")), *sorted(Path(__file__).parent.glob("node_image*.py"))]:
        if file.is_file():
            digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _modules() -> tuple[Module, ...]:
    return (*modules(), kind_node_module())


def _build(archive: Path, programs: Mapping[str, Path]) -> None:
    for old in archive.parent.glob("node-*.tar"):
        old.unlink()
    work = archive.parent / "work"
    clear(work)
    root = work / "root"
    root.mkdir(parents=True)
    _debian(root)
    _settings(root)
    for name in ("kubeadm", "kubelet", "kubectl"):
        shutil.copy(programs[name], root / "usr/bin" / name)
    tags = node_images.wanted_by(programs["kubeadm"], pinned().kubernetes)
    _fill(root / "etc/containerd/config.toml", "@PAUSE@", tags["pause"])
    node_images.put_into(root, programs, tags, work)
    stop = {"StopSignal": "SIGRTMIN+3"}
    write_archive([FolderImage(tag(), root, ("/usr/local/bin/node-entrypoint", "/sbin/init"), stop)], archive)
    clear(work)


def _debian(root: Path) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE]
    run([*command, root, debian_mirror()], timeout_s=900)
    for folder in _UNNEEDED:
        shutil.rmtree(root / folder, ignore_errors=True)
        (root / folder).mkdir(parents=True)


def _settings(root: Path) -> None:
    # the image's own units only
    for wants in (root / "etc/systemd/system").glob("*.wants"):
        shutil.rmtree(wants)
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    units = root / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir()
    for service in _SERVICES:
        (units / "multi-user.target.wants" / service).symlink_to(f"/etc/systemd/system/{service}")
    for unit in _MASKED:
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    (root / "kind/version").write_text(f"v{pinned().kubernetes}\n", encoding="utf-8")
    (root / "etc/kubernetes/manifests").mkdir(parents=True, exist_ok=True)
    (root / "var/local-volumes").mkdir()


def _fill(file: Path, placeholder: str, value: str) -> None:
    text = file.read_text(encoding="utf-8")
    if placeholder not in text:
        raise DevclusterError(f"{file} has no {placeholder}")
    file.write_text(text.replace(placeholder, value), encoding="utf-8")


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
