"""Settings that end up in the pods."""

from dataclasses import dataclass
from typing import Final

FENCE_SECONDS: Final = 600


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker pod is given beside its template. `ca_cert` is PEM; `priority_class` empty means the cluster's
    default; `fence_seconds` is how long a worker may train on without an answer of the extender."""

    profiler_image: str
    extender_url: str
    ca_cert: str
    priority_class: str = ""
    fence_seconds: int = FENCE_SECONDS
