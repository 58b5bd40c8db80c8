"""The dashboard's settings, from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synergy_service.settings import ConfigError, EnvironmentReader


@dataclass(frozen=True)
class Settings:
    """Addresses, the database of the history, and the trusted proxy."""

    database: str
    """SQLAlchemy URL."""
    host: str = "0.0.0.0"  # noqa: S104 - a pod listens on all its addresses
    port: int = 8080
    ops_port: int = 8081
    tls_dir: Path | None = None
    """The folder with `tls.crt` and `tls.key`; None: plain HTTP."""
    proxy_secret: Path | None = None
    """The file with the secret that a trusted proxy shows; None: no proxy is trusted."""
    keep_days: float = 90.0
    """Days for which the history is kept."""
    log_level: str = "INFO"
    kubeconfig: str | None = None


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `SYNERGY_*` variables. Raises ConfigError naming the variable."""
    read = EnvironmentReader(environ)
    trusted = read.switch("SYNERGY_DASHBOARD_TRUSTED_PROXY", default=False)
    secret = read.text("SYNERGY_DASHBOARD_PROXY_SECRET_FILE", "")
    if trusted and not secret:
        raise ConfigError("SYNERGY_DASHBOARD_PROXY_SECRET_FILE is not set: a trusted proxy shows the secret in it")
    tls = read.text("SYNERGY_TLS_DIR", "")
    return Settings(
        database=read.text("SYNERGY_DASHBOARD_DATABASE", "sqlite:////var/lib/kube-synergy/dashboard.db"),
        host=read.text("SYNERGY_HOST", "0.0.0.0"),  # noqa: S104 - as above
        port=read.port("SYNERGY_DASHBOARD_PORT", 8080),
        ops_port=read.port("SYNERGY_OPS_PORT", 8081),
        tls_dir=Path(tls) if tls else None,
        proxy_secret=Path(secret) if trusted else None,
        keep_days=read.positive("SYNERGY_DASHBOARD_KEEP_DAYS", 90.0, most=1e5, what="a number of days above zero"),
        log_level=read.log_level(),
        kubeconfig=read.text("SYNERGY_KUBECONFIG", "") or None,
    )
