"""Where the devcluster keeps its files."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from synergy_devcluster.errors import BadInputError

DEFAULT_NAME = "kube-synergy-devcluster"
NAME_VARIABLE = "KUBE_SYNERGY_DEVCLUSTER_NAME"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")


@dataclass(frozen=True)
class Paths:
    """The folders of one devcluster.

    ``state`` holds everything one cluster writes (deleted by ``down``), ``run`` its sockets, ``cgroup`` is
    the control group of its pods, and ``cache`` keeps what outlives a cluster: built programs and images.
    """

    state: Path
    run: Path
    cgroup: str
    cache: Path

    @classmethod
    def of(cls, name: str | None = None) -> "Paths":
        """Return the folders of the devcluster of this name, else of the one that the environment names; the cache
        follows the XDG rules.

        One machine runs one devcluster, but for those in network namespaces of their own, each with its name.

        Raises:
            BadInputError: the name cannot be a folder's.
        """
        name = name or os.environ.get(NAME_VARIABLE) or DEFAULT_NAME
        if not _NAME.fullmatch(name):
            raise BadInputError(f"--name or {NAME_VARIABLE}: {name!r}: use small letters, digits and dashes")
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return cls(Path("/var/lib") / name, Path("/run") / name, f"/{name}", Path(home) / "kube-synergy")

    @property
    def state_file(self) -> Path:
        """The record of what ``up`` has started and changed."""
        return self.state / "state.json"

    @property
    def lock_file(self) -> Path:
        """Held while ``up`` or ``down`` works; outside ``state``, which ``down`` deletes."""
        return self.run.with_name(self.run.name + ".lock")

    @property
    def state_lock(self) -> Path:
        """Held while the state file is changed."""
        return self.run.with_name(self.run.name + ".state.lock")

    @property
    def logs(self) -> Path:
        """One log file per component."""
        return self.state / "logs"

    @property
    def audit_log(self) -> Path:
        """What service accounts asked of the API server, one JSON object a line."""
        return self.logs / "audit.log"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Configuration files of the components."""
        return self.state / "config"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.config / "admin.kubeconfig"

    @property
    def volumes(self) -> Path:
        """The folders behind the static persistent volumes."""
        return self.state / "volumes"

    @property
    def binaries(self) -> Path:
        """Built programs, one folder per module and version."""
        return self.cache / "bin"

    @property
    def failed_logs(self) -> Path:
        """The logs of the last ``up`` that failed."""
        return self.cache / "logs-of-failed-up"

    @property
    def images(self) -> Path:
        """Built image archives and the base image's root file system."""
        return self.cache / "images"
