"""What the API server counts of its requests."""

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import click
from prometheus_client.parser import text_string_to_metric_families

from synergy_devcluster import Cluster

_WRITES: Final = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_NOT_THEIRS: Final = ("leases", "nodes")
"""What is written whether jobs start or not."""


def written(cluster: Cluster) -> Mapping[str, float]:
    """The writes so far by verb, resource and subresource. Raises ClickException if the API server does not tell."""
    kubectl = [str(cluster.program("kubectl")), f"--kubeconfig={cluster.kubeconfig}"]
    done = subprocess.run([*kubectl, "get", "--raw", "/metrics"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise click.ClickException(f"the API server does not tell its metrics: {done.stderr.strip()}")
    return writes_of(done.stdout)


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
