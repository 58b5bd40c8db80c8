"""What the API server counts of its requests."""

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from synergy_devcluster import Cluster

_WRITES: Final = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_NOT_THEIRS: Final = ("leases", "nodes")
"""What is written whether jobs start or not."""


def written(cluster: Cluster) -> Mapping[str, float]:
    """The writes so far by verb, resource and subresource. Raises CalledProcessError if the API server cannot be
    asked."""
    kubectl = [str(cluster.program("kubectl")), f"--kubeconfig={cluster.kubeconfig}"]
    shown = subprocess.run([*kubectl, "get", "--raw", "/metrics"], capture_output=True, text=True, check=True).stdout
    return writes_of(shown)


def writes_of(exposition: str) -> Mapping[str, float]:
    """The same of an exposition in Prometheus' text format."""
    lines = "".join(f"{line}\n" for line in exposition.splitlines() if line.startswith("apiserver_request_total{"))
    found: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(lines):
        for sample in family.samples:
            labels = sample.labels
            if labels["verb"] in _WRITES and labels["resource"] not in _NOT_THEIRS:
                kind = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                found[f"{labels['verb']} {kind}"] += sample.value
    return found
