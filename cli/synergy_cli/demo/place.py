"""Where the demo takes place: a cluster that is started, given kube-synergy, and taken away again."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import synergy_devcluster
from synergy_cli.product import install
from synergy_devcluster.programs import prerequisites

Report = Callable[[str], None]


class DemoCluster(Protocol):
    """A cluster for the demo. Every method raises DevclusterError, in one line, if it cannot do its part."""

    @property
    def cpu_millis(self) -> int:
        """What the GPU node must offer to jobs and to what runs beside them."""

    def check(self) -> None:
        """Say what this machine lacks, before anything is done."""

    def start(self, report: Report) -> None:
        """Bring the cluster up, if none is there, and install kube-synergy on it."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, once it is started."""

    @property
    def kubectl(self) -> Path:
        """The program, once it is started."""

    @property
    def mine(self) -> bool:
        """Whether `start` found no cluster and made one."""

    def end(self, report: Report) -> None:
        """Take the cluster away."""

    @property
    def how_to_end(self) -> str:
        """The command that takes it away."""


class Devcluster:
    """A devcluster with two GPUs."""

    cpu_millis: Final = 1600

    def __init__(self) -> None:
        self._cluster: synergy_devcluster.Cluster | None = None
        self._mine = False

    def check(self) -> None:
        """See DemoCluster."""
        prerequisites.check()

    def start(self, report: Report) -> None:
        """See DemoCluster."""
        self._mine = not _is_running()
        self._cluster = synergy_devcluster.up(synergy_devcluster.Options(gpus=2), report=report)
        install(self._cluster, {"dashboard.enabled": "true"}, report=report)

    @property
    def kubeconfig(self) -> Path:
        """See DemoCluster."""
        assert self._cluster is not None
        return self._cluster.kubeconfig

    @property
    def kubectl(self) -> Path:
        """See DemoCluster."""
        assert self._cluster is not None
        return Path(self._cluster.program("kubectl"))

    @property
    def mine(self) -> bool:
        """See DemoCluster."""
        return self._mine

    def end(self, report: Report) -> None:
        """See DemoCluster."""
        synergy_devcluster.down(report=report)

    how_to_end: Final = "kube-synergy devcluster down"


def _is_running() -> bool:
    try:
        synergy_devcluster.connect()
    except synergy_devcluster.DevclusterError:
        return False
    return True
