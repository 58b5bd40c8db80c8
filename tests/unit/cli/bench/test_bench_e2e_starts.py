"""The pure parts of `kube-synergy bench e2e --stage starts`: requests counted, the report."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from synergy_cli.bench.e2e.requests import writes_of, written
from synergy_cli.bench.e2e.table_of_stages import starts_text
from synergy_devcluster import Cluster

MACHINE = {"cores": 2, "cpu": "x", "memory_gib": 24.0, "kubernetes": "1.36.3", "python": "3.11.7"}


def started(seconds: float, cpu: dict[str, float], writes: dict[str, float]) -> dict[str, Any]:
    return {"count": 100, "seconds": seconds, "cpu_ms": cpu, "writes": writes}


def test_the_text_of_starts_has_the_largest_part_of_the_product_first_and_leaves_out_what_comes_to_nothing() -> None:
    product = started(10.0, {"etcd": 6.0, "operator": 16.0, "coredns": 0.1}, {"POST pods": 1.0, "POST services": 0.01})
    found = {
        "product": [product, {**product, "cpu_ms": {"etcd": 8.0, "operator": 18.0}}],
        "writer": [started(5.0, {"etcd": 5.0}, {"POST pods": 1.0})],
        "bare_pods": [started(1.0, {"etcd": 1.0}, {"POST pods": 1.0})],
        "ratio_to_writer": 2.0,
        "ratio_to_bare_pods": 10.0,
    }
    lines = starts_text({"machine": MACHINE, "sizes": {"jobs": 100}, "starts": found}).splitlines()
    assert [line.split()[-2:] for line in lines if line.startswith("bare pods")] == [["1.0", "100.0"]]
    operator, etcd, total = (
        next(n for n, line in enumerate(lines) if line.startswith(w)) for w in ("op", "etcd", "all ")
    )
    assert operator < etcd < total
    assert lines[etcd].split() == ["etcd", "7.0", "5.0", "1.0"]
    assert lines[total].split() == ["all", "24.1", "5.0", "1.0"]
    assert not any("coredns" in line or "services" in line for line in lines)
    assert lines[-1].startswith("100 jobs: the product takes 2.00 of the time of a client that writes the same, 10.00")


def test_of_the_api_server_s_requests_the_writes_count_without_heartbeats() -> None:
    labels = [
        'verb="POST",resource="pods",subresource="",code="201"} 3',
        'verb="POST",resource="pods",subresource="",code="409"} 1',
        'verb="POST",resource="pods",subresource="binding",code="201"} 3',
        'verb="LIST",resource="pods",subresource="",code="200"} 9',
        'verb="PUT",resource="leases",subresource="",code="200"} 9',
        'verb="PATCH",resource="nodes",subresource="status",code="200"} 9',
    ]
    shown = "".join(f"apiserver_request_total{{{one}\n" for one in labels) + "another_total 4\n"
    assert writes_of(shown) == {"POST pods": 4.0, "POST pods/binding": 3.0}


def test_an_api_server_that_does_not_tell_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'error: forbidden' >&2\nexit 1\n")
    program.chmod(0o755)
    cluster = cast(Cluster, SimpleNamespace(program=lambda name: tmp_path / name, kubeconfig=tmp_path / "config"))
    with pytest.raises(click.ClickException, match="does not tell its metrics: error: forbidden"):
        written(cluster)
