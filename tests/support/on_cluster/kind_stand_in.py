"""Stands in for Docker where there is none: `kind` and `docker` as the demo on kind calls them, on a devcluster.

`kind create cluster` first gives the configuration to the real kind, which makes its nodes but gets no further; then
the devcluster takes the place of the cluster that kind would have made. Its fake nodes, which kind would not have, take
no pods meanwhile.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import yaml

from synergy_cli.demo.kind import IMAGES
from synergy_devcluster import BASE_IMAGE, BadInputError, Cluster, Paths, build_image, connect
from synergy_devcluster.images.project import SCHEDULER, load_images
from synergy_devcluster.programs.toolchain import kind_module, locate

_FOLDER = "KIND_STAND_IN_FOLDER"
_DOCKER = """#!/bin/sh
echo "$*" >> "{calls}"
case "$1" in
  logs) echo "Reached target Multi-User System." ;;
  info) echo '{{"MemoryLimit":true,"PidsLimit":true,"CPUShares":true,"CgroupVersion":"2"}}' ;;
esac
"""


def put_on_path(folder: Path) -> dict[str, str]:
    """Write the programs `kind` and `docker` into a folder; the environment in which they are found first, as is the
    devcluster's Helm."""
    for name in ("kind", "docker"):
        script = f'#!/bin/sh\nexec "{sys.executable}" -m support.on_cluster.kind_stand_in {name} "$@"\n'
        _program(folder / name, script)
    (folder / "helm").symlink_to(connect().program("helm"))
    packages = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": packages, _FOLDER: str(folder)}


def accepted_by_kind(config: Path, folder: Path) -> list[str]:
    """The names of the nodes that the real kind is about to make of a configuration, which it has read and checked.

    Raises BadInputError with kind's words where it refuses it.
    """
    tools = folder / "docker-that-makes-nothing"
    tools.mkdir(exist_ok=True)
    calls = tools / "calls"
    calls.write_text("")
    _program(tools / "docker", _DOCKER.format(calls=calls))
    kind = locate(Paths.of(), wanted=(kind_module(),))["kind"]
    done = subprocess.run(
        [kind, "create", "cluster", "--config", config, "--kubeconfig", tools / "kubeconfig"],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "KIND_EXPERIMENTAL_PROVIDER": "docker"},
        capture_output=True,
        text=True,
        check=False,
    )
    runs = [line.split() for line in calls.read_text().splitlines() if line.startswith("run ")]
    if not runs:
        raise BadInputError(done.stderr.strip())
    return sorted(words[words.index("--name") + 1] for words in runs)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _kind(words: list[str], folder: Path) -> None:
    cluster, record = connect(), folder / "clusters"
    match words[:2]:
        case ["get", "clusters"]:
            print(record.read_text() if record.exists() else "No kind clusters found.")
        case ["create", "cluster"]:
            config = Path(_option(words, "--config"))
            accepted_by_kind(config, folder)
            _cordon_fake_nodes(cluster, cordoned=True)
            _bring_kube_scheduler(cluster)
            Path(_option(words, "--kubeconfig")).write_bytes(cluster.kubeconfig.read_bytes())
            record.write_text(yaml.safe_load(config.read_text())["name"])
        case ["export", "kubeconfig"]:
            Path(_option(words, "--kubeconfig")).write_bytes(cluster.kubeconfig.read_bytes())
        case ["load", "docker-image"]:
            tags = words[2 : words.index("--name")]
            load_images(cluster, only=tuple(image.room for image in IMAGES if image.tag in tags))
        case ["delete", "cluster"]:
            _cordon_fake_nodes(cluster, cordoned=False)
            record.unlink()
        case _:
            raise BadInputError(f"kind {words}: not called by the demo")


def _bring_kube_scheduler(cluster: Cluster) -> None:
    """kind's nodes bring the control plane's images."""
    load_images(cluster, only=(SCHEDULER.room,))
    version = subprocess.run(
        [cluster.program("kube-scheduler"), "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    for node in cluster.real_nodes():
        images = ["ctr", f"--address={node.containerd_socket}", "--namespace=k8s.io", "images", "tag", "--force"]
        subprocess.run([*images, SCHEDULER.tag, f"registry.k8s.io/kube-scheduler:{version}"], check=True)


def _cordon_fake_nodes(cluster: Cluster, *, cordoned: bool) -> None:
    kubectl = [str(cluster.program("kubectl")), f"--kubeconfig={cluster.kubeconfig}"]
    verb = "cordon" if cordoned else "uncordon"
    subprocess.run([*kubectl, verb, "--selector=type=kwok"], check=True, stdout=subprocess.DEVNULL)


def _docker(words: list[str]) -> None:
    match words[0]:
        case "info":
            print("a stand-in")
        case "build":
            tag, file = _option(words, "--tag"), Path(_option(words, "--file"))
            archive = build_image(file, Path(words[-1]), tag, {"BASE": BASE_IMAGE})
            print(archive.name)
        case _:
            raise BadInputError(f"docker {words}: not called by the demo")


def _option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


if __name__ == "__main__":
    called, *given = sys.argv[1:]
    if called == "kind":
        _kind(given, Path(os.environ[_FOLDER]))
    else:
        _docker(given)
