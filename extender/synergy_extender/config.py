"""The extender's settings, from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synergy_extender.leader import Timing
from synergy_service.settings import ConfigError, EnvironmentReader
from synergy_service.tracing import read_endpoint

SCHEDULER_NAMES = ("kube-synergy-scheduler", "system:kube-scheduler")
"""The names in the certificates that the chart makes, and of Kubernetes' own kube-scheduler."""
_MOST_SECONDS = 1e6


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
    planner_processes: int = 1
    """In how many processes a plan may be made (`planner.forked`)."""
    sharing_models: tuple[str, ...] = ()
    """GPU types of which the planner's process has a predictor that was fitted."""
    progress_writes_per_second: float = 20.0
    """Of the whole cluster; the replicas share them."""
    replicas: int = 1
    forecasts: bool = True
    """Whether the status of waiting jobs says when they will start."""
    autoscaling: bool = False
    """Whether nodes are asked for, and marked for autoscalers."""
    leader: Timing = field(default_factory=Timing)
    priority_class: str = ""
    """The priority class of workers whose template names none: quotas may depend on it."""
    log_level: str = "INFO"
    kubeconfig: str | None = None
    tracing_endpoint: str = ""
    """Where spans go; empty: nowhere."""


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `SYNERGY_*` variables. Raises ConfigError naming the variable."""
    read = EnvironmentReader(environ)
    try:
        timing = Timing(
            lease_s=read.positive("SYNERGY_LEASE_SECONDS", 6.0, most=_MOST_SECONDS),
            renew_s=read.positive("SYNERGY_RENEW_SECONDS", 5.0, most=_MOST_SECONDS),
            retry_s=read.positive("SYNERGY_RETRY_SECONDS", 1.0, most=_MOST_SECONDS),
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
        plan_timeout_s=read.positive("SYNERGY_PLAN_TIMEOUT_SECONDS", 60.0, most=_MOST_SECONDS),
        planner_processes=read.whole("SYNERGY_PLANNER_PROCESSES", 1, least=1, most=64),
        sharing_models=_sharing_models(read.text("SYNERGY_SHARING_MODELS", "")),
        progress_writes_per_second=read.positive(
            "SYNERGY_PROGRESS_WRITES_PER_SECOND", 20.0, most=_MOST_SECONDS, what="a number above zero"
        ),
        forecasts=read.switch("SYNERGY_FORECASTS", default=True),
        autoscaling=read.switch("SYNERGY_AUTOSCALING", default=False),
        replicas=read.whole("SYNERGY_REPLICAS", 1, least=1, most=1000),
        leader=timing,
        priority_class=read.text("SYNERGY_PRIORITY_CLASS", ""),
        log_level=read.log_level(),
        kubeconfig=read.text("SYNERGY_KUBECONFIG", "") or None,
        tracing_endpoint=read_endpoint(read),
    )


def _sharing_models(folder: str) -> tuple[str, ...]:
    """GPU types with a model in the folder. Read here to refuse bad models at the start; the planner's process reads
    them again."""
    if not folder:
        return ()
    from synergy_extender.colocation.models import read_models  # noqa: PLC0415 - it loads numpy, which few need here

    try:
        return tuple(sorted(read_models(folder)))
    except ValueError as error:
        raise ConfigError(f"SYNERGY_SHARING_MODELS: {error}") from None
