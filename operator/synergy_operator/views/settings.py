"""Settings that the operator writes into worker pods."""

from dataclasses import dataclass
from typing import Final

FENCE_SECONDS: Final = 600


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker pod gets in addition to its template.

    `ca_cert` is PEM. An empty `priority_class` means the cluster's default. `fence_seconds` is how long a worker may
    continue to train without an answer from the extender.
    """

    profiler_image: str
    extender_url: str
    ca_cert: str
    priority_class: str = ""
    fence_seconds: int = FENCE_SECONDS
