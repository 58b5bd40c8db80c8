"""A devcluster apart from any other on the machine: its own name, in a network namespace of its own.

So these tests may take it down, break it and bring it up again while another devcluster runs.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.apart import NETWORK
from synergy_devcluster import BASE_IMAGE, build_image
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.processes import ProcessId, end, start_ticks, wait_for
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_devcluster.state import State, StateFile

UP = ("up", "--gpus", "2", "--fake-nodes", "V100=2x8,T4=1x4", "--volumes", "4")
IMAGE = "localhost/devcluster-test:1"


@dataclass(frozen=True)
class Place:
    """A network namespace with an interface that looks like the way out, and the name of the cluster in it."""

    name: str
    holder: ProcessId
    paths: Paths = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", Paths.of(self.name))

    def inside(self, *argv: str | Path) -> list[str]:
        """Return the command line that runs a program in the namespace."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--", *map(str, argv)]

    def run(self, *argv: str | Path, timeout_s: float = 60) -> "subprocess.CompletedProcess[str]":
        """Run a program in the namespace to its end."""
        return subprocess.run(
            self.inside(*argv), capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a devcluster command."""
        return self.inside(sys.executable, "-m", "synergy_devcluster", "--name", self.name, *arguments)

    def devcluster(self, *arguments: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run a devcluster command in the namespace."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False, timeout=timeout_s)

    def state(self) -> State:
        """Return what the state file says now."""
        state = StateFile.of(self.paths).load()
        assert state, "there is a cluster"
        return state

    def kubectl(self, *arguments: str, manifest: Any = None) -> str:
        """Run kubectl as administrator; a manifest goes to its standard input."""
        argv = self.inside(self.state().programs["kubectl"], f"--kubeconfig={self.paths.kubeconfig}", *arguments)
        text = json.dumps(manifest) if manifest is not None else None
        result = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object, or an empty one when there is none."""
        text = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        return json.loads(text) if text else {}

    def pod(self, name: str, **changes: Any) -> None:
        """Create a pod of one container ``c`` for the real node; ``changes`` go over annotations, spec, container."""
        container = {"name": "c", "image": IMAGE, "imagePullPolicy": "Never", **changes.pop("container", {})}
        metadata = {"name": name, "annotations": changes.pop("annotations", {})}
        where = {"nodeSelector": {"kubernetes.io/hostname": REAL_NODE}, "terminationGracePeriodSeconds": 1}
        spec = {"restartPolicy": "Never", "containers": [container], **where, **changes}
        self.kubectl(
            "create", "-f", "-", manifest={"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )

    def wait_phase(self, pod: str, phase: str, timeout_s: float = 20) -> dict[str, Any]:
        """Wait until a pod is in a phase and return it."""
        assert wait_for(lambda: self.get("pod", pod).get("status", {}).get("phase") == phase, timeout_s, 0.2), (
            f"pod {pod} did not become {phase}: {self.get('pod', pod).get('status')}"
        )
        return self.get("pod", pod)


@pytest.fixture(scope="package")
def place() -> Iterator[Place]:
    """A network namespace with loopback and a default route to nowhere; what is left in it is ended afterwards."""
    script = f"{NETWORK} && echo ready && exec sleep infinity"
    argv = ["unshare", "--net", "--", "sh", "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        ticks = start_ticks(process.pid)
        assert ticks
        made = Place(f"ksdev-test-{os.getpid()}-{uuid.uuid4().hex[:4]}", ProcessId(process.pid, ticks))
        yield made
        made.devcluster("down")
        end([made.holder], 0)
    for lock in (made.paths.lock_file, made.paths.state_lock):
        lock.unlink(missing_ok=True)


@pytest.fixture(scope="package")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with Python whose container sleeps."""
    context = tmp_path_factory.mktemp("image")
    (context / "Dockerfile").write_text(f'FROM {BASE_IMAGE}\nUSER 10001:10001\nCMD ["sleep", "infinity"]\n')
    return build_image(context / "Dockerfile", context, IMAGE)


@pytest.fixture
def cluster(place: Place, image: Path) -> Place:
    """The place with a whole cluster in it, which has the test image."""
    up = place.devcluster(*UP)
    assert up.returncode == 0, up.stderr
    if "image loaded" not in place.kubectl("get", "namespace", "default", "-o", "jsonpath={.metadata.annotations}"):
        assert place.devcluster("load-image", str(image)).returncode == 0
        place.kubectl("annotate", "namespace", "default", "devcluster-test=image loaded")
    return place
