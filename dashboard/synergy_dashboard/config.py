"""Settings, from environment variables only."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class ConfigError(ValueError):
    """A setting that cannot be used; the text names its variable."""


@dataclass(frozen=True)
class Settings:
    """Where the dashboard listens, where its history is, and whom it trusts."""

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
    """For how long the history is kept."""
    log_level: str = "INFO"
    kubeconfig: str | None = None


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `SYNERGY_*` variables. Raises ConfigError naming the variable."""
    read = _Reader(environ)
    trusted = read.flag("SYNERGY_DASHBOARD_TRUSTED_PROXY")
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
        keep_days=read.days("SYNERGY_DASHBOARD_KEEP_DAYS", 90.0),
        log_level=read.level("SYNERGY_LOG_LEVEL", "INFO"),
        kubeconfig=read.text("SYNERGY_KUBECONFIG", "") or None,
    )


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str) -> str:
        return self._environ.get(name, "") or default

    def flag(self, name: str) -> bool:
        value = self.text(name, "false").lower()
        if value not in ("true", "false"):
            raise ConfigError(f"{name} is {value!r}: give true or false")
        return value == "true"

    def days(self, name: str, default: float) -> float:
        text = self._environ.get(name, "")
        try:
            value = float(text) if text else default
        except ValueError:
            value = -1.0
        if not 0 < value < 1e5:
            raise ConfigError(f"{name} is {text!r}: give a number of days above zero")
        return value

    def port(self, name: str, default: int) -> int:
        text = self._environ.get(name, "") or str(default)
        if not text.isdecimal() or not 0 <= int(text) <= 65535:
            raise ConfigError(f"{name} is {text!r}: give a port from 0 to 65535")
        return int(text)

    def level(self, name: str, default: str) -> str:
        value = self.text(name, default).upper()
        if value not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ConfigError(f"{name} is {value!r}: give DEBUG, INFO, WARNING or ERROR")
        return value
