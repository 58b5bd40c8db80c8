"""The operator's configuration from environment variables (docs/architecture.md, Images)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from synergy_operator.views.owners.kinds import KINDS
from synergy_operator.views.settings import DCGM_INTERVAL_SECONDS, FENCE_SECONDS, HOST_IP, WorkerSettings
from synergy_service.settings import ConfigError, EnvironmentReader
from synergy_service.tracing import read_endpoint

LEAST_FENCE_SECONDS: Final = 10
MOST_FENCE_SECONDS: Final = 3600


@dataclass
class Environment:
    """The configuration. The CA certificate is read again whenever its file changes."""

    profiler_image: str
    extender_url: str
    ca_file: Path
    priority_class: str = ""
    log_level: str = "INFO"
    health_port: int = 8080
    fence_seconds: int = FENCE_SECONDS
    metrics_port: int = 8081
    dcgm_url: str = ""
    dcgm_interval_seconds: float = DCGM_INTERVAL_SECONDS
    managed_kinds: tuple[str, ...] = ()
    tracing_endpoint: str = ""
    """Where spans go; empty: nowhere."""
    _cached: tuple[float, WorkerSettings] | None = field(default=None, repr=False)

    def settings(self) -> WorkerSettings:
        """The current settings for worker pods. Raises OSError if the CA file cannot be read."""
        changed = self.ca_file.stat().st_mtime
        if self._cached is None or self._cached[0] != changed:
            pem = self.ca_file.read_text(encoding="ascii")
            found = WorkerSettings(
                self.profiler_image,
                self.extender_url,
                pem,
                self.priority_class,
                self.fence_seconds,
                self.dcgm_url,
                self.dcgm_interval_seconds,
            )
            self._cached = (changed, found)
        return self._cached[1]


def read_environment(environ: Mapping[str, str]) -> Environment:
    """The configuration. Raises ValueError that names each missing variable, or the one whose value is bad."""
    required = ("SYNERGY_PROFILER_IMAGE", "SYNERGY_EXTENDER_URL", "SYNERGY_CA_FILE")
    missing = [name for name in required if not environ.get(name)]
    if missing:
        raise ValueError(f"set {', '.join(missing)} in the environment")
    read = EnvironmentReader(environ)
    return Environment(
        profiler_image=environ["SYNERGY_PROFILER_IMAGE"],
        extender_url=environ["SYNERGY_EXTENDER_URL"],
        ca_file=Path(environ["SYNERGY_CA_FILE"]),
        priority_class=read.text("SYNERGY_PRIORITY_CLASS", ""),
        log_level=read.log_level(),
        fence_seconds=read.whole(
            "SYNERGY_FENCE_SECONDS",
            FENCE_SECONDS,
            least=LEAST_FENCE_SECONDS,
            most=MOST_FENCE_SECONDS,
            what="a whole number of seconds",
        ),
        health_port=read.port("SYNERGY_HEALTH_PORT", 8080, least=1),
        metrics_port=read.port("SYNERGY_METRICS_PORT", 8081),
        dcgm_url=_dcgm_url(read),
        managed_kinds=_managed_kinds(read),
        tracing_endpoint=read_endpoint(read),
        dcgm_interval_seconds=read.positive("SYNERGY_DCGM_INTERVAL_S", DCGM_INTERVAL_SECONDS, most=3600),
    )


def _managed_kinds(read: EnvironmentReader) -> tuple[str, ...]:
    """Kinds whose objects the operator starts and stops if they have its label."""
    kinds = read.names("SYNERGY_MANAGED_KINDS", ()) if read.text("SYNERGY_MANAGED_KINDS", "") else ()
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"SYNERGY_MANAGED_KINDS has {kind!r}: give some of {', '.join(KINDS)}")
    return kinds


def _dcgm_url(read: EnvironmentReader) -> str:
    """Where profile runs find the dcgm-exporter of their node."""
    url = read.text("SYNERGY_DCGM_URL", "")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(f"SYNERGY_DCGM_URL is {url!r}: give an address such as http://{HOST_IP}:9400/metrics")
    return url
