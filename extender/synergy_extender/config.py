"""Settings, from the environment. Bad ones are refused with the variable's name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synergy_extender.leader import Timing


class ConfigError(ValueError):
    """A setting that cannot be used; the text names its variable."""


SCHEDULER_NAMES = ("kube-synergy-scheduler", "system:kube-scheduler")
"""In the certificates that the chart makes; of every Kubernetes' own kube-scheduler."""


@dataclass(frozen=True)
class Settings:
    """Where the extender listens, its identity, and its time limits."""

    tls_dir: Path
    pod_name: str
    pod_namespace: str
    host: str = "0.0.0.0"  # noqa: S104 - a pod listens on all its addresses
    scheduler_port: int = 9443
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    api_port: int = 9444
    ops_port: int = 8080
    plan_timeout_s: float = 60.0
    sharing_models: tuple[str, ...] = ()
    """GPU types of which the planner's process has a predictor that was fitted."""
    progress_writes_per_second: float = 20.0
    """Of the whole cluster; the replicas share them."""
    replicas: int = 1
    forecasts: bool = True
    """Whether waiting jobs are told when they will start."""
    leader: Timing = field(default_factory=Timing)
    priority_class: str = ""
    """The priority class of workers whose template names none: quotas may depend on it."""
    log_level: str = "INFO"
    kubeconfig: str | None = None


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `SYNERGY_*` variables. Raises ConfigError naming the variable."""
    read = _Reader(environ)
    try:
        timing = Timing(
            lease_s=read.seconds("SYNERGY_LEASE_SECONDS", 10.0),
            renew_s=read.seconds("SYNERGY_RENEW_SECONDS", 7.0),
            retry_s=read.seconds("SYNERGY_RETRY_SECONDS", 2.0),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return Settings(
        tls_dir=Path(read.text("SYNERGY_TLS_DIR", "/etc/kube-synergy/tls")),
        pod_name=read.required("SYNERGY_POD_NAME"),
        pod_namespace=read.required("SYNERGY_POD_NAMESPACE"),
        host=read.text("SYNERGY_HOST", "0.0.0.0"),  # noqa: S104 - as above
        scheduler_port=read.port("SYNERGY_SCHEDULER_PORT", 9443),
        scheduler_names=read.names("SYNERGY_SCHEDULER_NAMES", SCHEDULER_NAMES),
        api_port=read.port("SYNERGY_API_PORT", 9444),
        ops_port=read.port("SYNERGY_OPS_PORT", 8080),
        plan_timeout_s=read.seconds("SYNERGY_PLAN_TIMEOUT_SECONDS", 60.0),
        sharing_models=read.sharing_models("SYNERGY_SHARING_MODELS"),
        progress_writes_per_second=read.seconds("SYNERGY_PROGRESS_WRITES_PER_SECOND", 20.0, "a number above zero"),
        forecasts=read.switch("SYNERGY_FORECASTS", default=True),
        replicas=read.count("SYNERGY_REPLICAS", 1),
        leader=timing,
        priority_class=read.text("SYNERGY_PRIORITY_CLASS", ""),
        log_level=read.level("SYNERGY_LOG_LEVEL", "INFO"),
        kubeconfig=read.text("SYNERGY_KUBECONFIG", "") or None,
    )


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str) -> str:
        return self._environ.get(name, "") or default

    def required(self, name: str) -> str:
        value = self._environ.get(name, "")
        if not value:
            raise ConfigError(f"{name} is not set: the chart sets it from the pod's own metadata")
        return value

    def count(self, name: str, default: int) -> int:
        text = self._environ.get(name, "") or str(default)
        if not text.isdecimal() or not 1 <= int(text) <= 1000:
            raise ConfigError(f"{name} is {text!r}: give a whole number from 1 to 1000")
        return int(text)

    def switch(self, name: str, *, default: bool) -> bool:
        text = self._environ.get(name, "") or str(default).lower()
        if text not in ("true", "false"):
            raise ConfigError(f"{name} is {text!r}: give true or false")
        return text == "true"

    def seconds(self, name: str, default: float, what: str = "a number of seconds above zero") -> float:
        text = self._environ.get(name, "")
        try:
            value = float(text) if text else default
        except ValueError:
            value = -1.0
        if not 0 < value < 1e6:
            raise ConfigError(f"{name} is {text!r}: give {what}")
        return value

    def port(self, name: str, default: int) -> int:
        text = self._environ.get(name, "") or str(default)
        if not text.isdecimal() or not 0 <= int(text) <= 65535:
            raise ConfigError(f"{name} is {text!r}: give a port from 0 to 65535")
        return int(text)

    def names(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        text = self.text(name, ",".join(default))
        listed = tuple(part.strip() for part in text.split(","))
        if not all(listed):
            raise ConfigError(f"{name} is {text!r}: give names with commas between them")
        return listed

    def sharing_models(self, name: str) -> tuple[str, ...]:
        """Read here to refuse bad ones at the start; the planner's process reads them again."""
        folder = self._environ.get(name, "")
        if not folder:
            return ()
        from synergy_extender.colocation.models import read_models  # noqa: PLC0415 - it loads numpy, for few

        try:
            return tuple(sorted(read_models(folder)))
        except ValueError as error:
            raise ConfigError(f"{name}: {error}") from None

    def level(self, name: str, default: str) -> str:
        value = self.text(name, default).upper()
        if value not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ConfigError(f"{name} is {value!r}: give DEBUG, INFO, WARNING or ERROR")
        return value
