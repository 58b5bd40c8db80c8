"""Settings that the operator writes into worker pods."""

from dataclasses import dataclass
from typing import Final

FENCE_SECONDS: Final = 600
HOST_IP: Final = "{hostIP}"
"""In `dcgm_url` it stands for the address of the pod's node."""
DCGM_INTERVAL_SECONDS: Final = 30.0
"""How often dcgm-exporter collects unless it is told otherwise."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker pod gets in addition to its template.

    `ca_cert` is PEM. An empty `priority_class` means the cluster's default. `fence_seconds` is how long a worker may
    continue to train without an answer from the extender. An empty `dcgm_url` means that there is no dcgm-exporter.
    """

    profiler_image: str
    extender_url: str
    ca_cert: str
    priority_class: str = ""
    fence_seconds: int = FENCE_SECONDS
    dcgm_url: str = ""
    dcgm_interval_seconds: float = DCGM_INTERVAL_SECONDS
