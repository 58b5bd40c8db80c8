"""The images that a node of kind holds from its start: the control plane's, kube-proxy's and the node's agent."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.kind.archive import FolderImage, write_archive
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.commands import run

AGENT_IMAGE: Final = "localhost/kind-node-agent:1"
_PROGRAMS: Final = {
    "kube-apiserver": "usr/local/bin",
    "kube-controller-manager": "usr/local/bin",
    "kube-proxy": "usr/local/bin",
    "kube-scheduler": "usr/local/bin",
    "etcd": "usr/local/bin",
    "coredns": "",
    "pause": "",
}
"""Where kubeadm's manifests expect each image's program."""
_ENTRYPOINTS: Final = {"coredns": ("/coredns",), "pause": ("/pause",)}
_IPTABLES: Final = ("xtables-nft-multi", "xtables-legacy-multi", "conntrack", "nft")
_ALIASES: Final = tuple(
    f"{family}tables{verb}" for family in ("ip", "ip6") for verb in ("", "-save", "-restore")
)  # kube-proxy runs these


def wanted_by(kubeadm: Path, version: str) -> dict[str, str]:
    """The tag that kubeadm gives to each program's image.

    Raises:
        DevclusterError: kubeadm names an image that is not known here.
    """
    listing = run([kubeadm, "config", "images", "list", f"--kubernetes-version=v{version}"]).split()
    tags = {tag.rpartition("/")[2].partition(":")[0]: tag for tag in listing}
    if set(tags) != set(_PROGRAMS):
        raise DevclusterError(f"kubeadm {version} wants images {' '.join(sorted(tags))}: unknown here")
    return tags


def put_into(root: Path, programs: Mapping[str, Path], tags: Mapping[str, str], work: Path) -> None:
    """Give the containerd in a node's file system its images, as if it had pulled and unpacked them."""
    archive = work / "images.tar"
    write_archive(_images(root, programs, tags, work), archive)
    store = root / "var/lib/containerd"
    _import(archive, store, work)
    archive.unlink()


def _images(root: Path, programs: Mapping[str, Path], tags: Mapping[str, str], work: Path) -> Iterator[FolderImage]:
    for name, tag in tags.items():
        folder = _around(programs[name], work / name, _PROGRAMS[name])
        if name == "kube-proxy":
            _add_iptables(root, folder)
        yield FolderImage(tag, folder, _ENTRYPOINTS.get(name, ()))
        shutil.rmtree(folder)
    folder = _around(programs["kind-node-agent"], work / "agent", "")
    yield FolderImage(AGENT_IMAGE, folder, ("/kind-node-agent",))
    shutil.rmtree(folder)


def _around(program: Path, folder: Path, where: str) -> Path:
    (folder / where).mkdir(parents=True)
    (folder / "tmp").mkdir(mode=0o1777)
    shutil.copy(program, folder / where / program.name)
    return folder


def _add_iptables(root: Path, folder: Path) -> None:
    """Add what kube-proxy runs, with its libraries, from the node's own Debian."""
    for link, target in (("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin"), ("bin", "usr/bin")):
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / link).symlink_to(target)
    files = {Path("/usr/sbin") / name for name in _IPTABLES}
    extensions = sorted((root / "usr/lib").glob("*/xtables/*.so"))
    files |= {Path("/") / file.relative_to(root) for file in extensions}
    listing = run(["chroot", root, "ldd", *sorted(files)])
    libraries = {word for line in listing.splitlines() for word in line.split() if word.startswith("/")}
    for file in sorted({str(file) for file in files} | {library.rstrip(":") for library in libraries}):
        _copy(root, folder, file)
    for alias in _ALIASES:
        (folder / "usr/sbin" / alias).symlink_to("xtables-nft-multi")


def _copy(root: Path, folder: Path, file: str) -> None:
    """Copy a file's content; links on the way are followed inside the node's file system."""
    content = run(["chroot", root, "realpath", file]).strip()
    target = folder / file.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / content.lstrip("/"), target)


def _import(archive: Path, store: Path, work: Path) -> None:
    """Import an archive with a containerd of its own over the store; layers stay unpacked only."""
    socket, config = work / "containerd.sock", work / "containerd.toml"
    config.write_text(
        f'version = 2\nroot = "{store}"\nstate = "{work / "containerd-state"}"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{socket}"\n',
        encoding="utf-8",
    )
    process = processes.spawn(["containerd", f"--config={config}", "--log-level=warn"], work / "containerd.log", {})
    ctr = ["ctr", f"--address={socket}", "--namespace=k8s.io"]
    try:
        if not processes.wait_for(lambda: _answers(ctr), 30):
            raise DevclusterError(f"containerd does not start over {store}: see {work / 'containerd.log'}")
        run([*ctr, "images", "import", archive], timeout_s=600)
        for line in run([*ctr, "content", "list"]).splitlines()[1:]:
            if "containerd.io/uncompressed" in line:
                run([*ctr, "content", "remove", line.split()[0]])
    finally:
        processes.end([process], 10)
    shutil.rmtree(work / "containerd-state", ignore_errors=True)


def _answers(ctr: list[str]) -> bool:
    return subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode == 0
