"""A kind cluster under test, and ways to ask it."""

import subprocess
from dataclasses import dataclass

from synergy_cli.demo.kind import KindCluster
from synergy_cli.demo.kind_tools import OwnTools
from synergy_devcluster.kind.docker import OwnDocker


@dataclass(frozen=True)
class OnKind:
    """The cluster, what made it, and what that reported."""

    place: KindCluster
    tools: OwnTools
    docker: OwnDocker
    told: list[str]

    def kubectl(self, *words: str, text_in: str | None = None) -> str:
        """What a kubectl command prints."""
        command = [str(self.place.kubectl), "--kubeconfig", str(self.place.kubeconfig), *words]
        return subprocess.run(command, input=text_in, capture_output=True, text=True, check=True).stdout

    def on_node(self, node: str, *words: str) -> str:
        """What a shell command on a node prints, errors too; it may fail."""
        return self.docker.docker("exec", node, "bash", "-c", f"{' '.join(words)} 2>&1 || true")
