"""What a machine needs for a devcluster: checked before anything starts, reported in one message."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.programs.commands import run
from synergy_devcluster.programs.versions import at_least, find_version, pinned

DEBIAN_PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "nft": "nftables",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "debootstrap": "debootstrap",
    "buildah": "buildah",
}
"""Debian package by the program that is looked for."""


@dataclass(frozen=True)
class Missing:
    """What a machine lacks: Debian packages, and other things in words with what to do."""

    packages: tuple[str, ...]
    others: tuple[str, ...]

    def message(self) -> str:
        """Return one line that names everything missing and the command that gets it."""
        parts = list(self.others)
        if self.packages:
            parts.append(
                f"Debian packages {' '.join(self.packages)} are missing: "
                f"apt-get install --no-install-recommends {' '.join(self.packages)}, "
                "or 'kube-synergy devcluster prerequisites --install'"
            )
        return "; ".join(parts)


def find_missing(which: Callable[[str], str | None] = shutil.which, *, with_go: bool = True) -> Missing:
    """Look for everything a devcluster needs. ``which`` finds a program by name or path; Go is needed to build only."""
    packages = sorted({package for program, package in DEBIAN_PACKAGES.items() if which(program) is None})
    found = [_system(), _user(), _go(which) if with_go else None, _kernel()]
    return Missing(tuple(packages), tuple(text for text in found if text))


def check(*, with_go: bool = True) -> None:
    """Raise one error that names everything missing, if anything is.

    Raises:
        DevclusterError: the machine lacks something.
    """
    missing = find_missing(with_go=with_go)
    if missing.packages or missing.others:
        raise DevclusterError(f"this machine cannot run a devcluster yet: {missing.message()}")


def install(report: Callable[[str], None]) -> None:
    """Install the missing Debian packages with apt-get.

    Raises:
        DevclusterError: not root, no apt-get, or apt-get failed.
    """
    missing = find_missing()
    if not missing.packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise DevclusterError(f"only root on Debian can install packages: {missing.message()}")
    report(f"installing {' '.join(missing.packages)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-q"], env=env, timeout_s=600)
    run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing.packages], env=env, timeout_s=1200)


def _system() -> str | None:
    if platform.system() != "Linux":
        return f"the devcluster runs on Linux, this is {platform.system()}: use a Linux machine, a virtual one will do"
    return None


def _user() -> str | None:
    return None if os.geteuid() == 0 else "the devcluster starts containers and makes a network: run it as root"


def _go(which: Callable[[str], str | None]) -> str | None:
    wanted = pinned().go_minimum
    program = which("go")
    if program is None:
        return f"Go {wanted} or newer is not on PATH: install it, or put every program into a folder and use --bin-dir"
    told = subprocess.run([program, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    version = find_version(told.strip().removeprefix("go")) or told.strip().removeprefix("go") or "unknown"
    return None if at_least(version, wanted) else f"Go {version} is on PATH, {wanted} or newer is needed"


def _kernel() -> str | None:
    if platform.system() != "Linux":
        return None
    if not Path("/sys/fs/cgroup").is_dir():
        return "no cgroup file system at /sys/fs/cgroup: mount the cgroup controllers"
    filesystems = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    return None if "overlay" in filesystems else "the kernel has no overlay file system: run 'modprobe overlay'"
