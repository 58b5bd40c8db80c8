"""The controller's settings, from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synergy_service.settings import EnvironmentReader


@dataclass(frozen=True)
class Settings:
    """Where the kubeconfigs are, and how long to wait."""

    kubeconfigs: Path
    """The folder with a kubeconfig for each worker cluster, whose name is the file's."""
    namespace: str = "kube-synergy"
    """Of the Leases by which worker clusters know the hub's newest data, in the hub and in each of them."""
    away_s: float = 60.0
    """A job that waits in a cluster that cannot be reached for so long is offered to another."""
    reconsider_s: float = 600.0
    """A job that has waited in a cluster for so long is offered to another, if it starts there much sooner."""
    host: str = "0.0.0.0"  # noqa: S104 - a pod listens on all its addresses
    ops_port: int = 8081
    log_level: str = "INFO"
    kubeconfig: str | None = None
    """Of the hub; None: that of the pod."""


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `SYNERGY_*` variables. Raises ConfigError naming the variable."""
    read = EnvironmentReader(environ)
    return Settings(
        kubeconfigs=Path(read.required("SYNERGY_CLUSTERS_FOLDER")),
        namespace=read.text("SYNERGY_CLUSTERS_NAMESPACE", "kube-synergy"),
        away_s=read.positive("SYNERGY_CLUSTERS_AWAY_SECONDS", 60.0, most=86400.0),
        reconsider_s=read.positive("SYNERGY_CLUSTERS_RECONSIDER_SECONDS", 600.0, most=1e6),
        host=read.text("SYNERGY_HOST", "0.0.0.0"),  # noqa: S104 - as above
        ops_port=read.port("SYNERGY_OPS_PORT", 8081),
        log_level=read.log_level(),
        kubeconfig=read.text("SYNERGY_KUBECONFIG", "") or None,
    )
