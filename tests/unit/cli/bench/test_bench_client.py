"""`bench client`: what it decodes, how it compares, and what it says without a cluster."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.bench.client import decoding, writes
from synergy_cli.bench.client.command import report_of, text
from synergy_cli.main import main
from synergy_kube.answers import Page


def test_every_way_decodes_all_pods_of_the_same_lists() -> None:
    body = decoding.list_body(7, first=3)
    assert [item["metadata"]["name"] for item in Page(body)] == [f"train-{index}" for index in range(3, 10)]
    assert {len(decode(body)) for _, decode in decoding.WAYS.values()} == {7}


def test_each_way_is_measured_in_a_process_of_its_own() -> None:
    result = CliRunner().invoke(main, ["bench", "client", "--pods", "20", "--requests", "0", "--json"])
    report = json.loads(result.output)
    assert [one["way"] for one in report["decoding"]] == list(decoding.WAYS)
    assert all(one["seconds"] > 0 for one in report["decoding"])
    assert report["writes"] == []


def test_ratios_are_to_the_project_s_own_client() -> None:
    decoded = [decoding.Decoded("msgspec, pages", 0.2, 3.0), decoding.Decoded("kubernetes, pages", 5.0, 36.0)]
    written = [
        writes.Written("bind a pod", "KubeClient", 4.0, 1.0),
        writes.Written("bind a pod", "kubernetes", 5.0, 3.0),
    ]
    report = report_of(10, decoded, 1, written)
    assert [one["seconds_ratio"] for one in report["decoding"]] == [1.0, pytest.approx(25.0)]
    assert [one["peak_ratio"] for one in report["decoding"]] == [1.0, 12.0]
    assert [(one["ratio"], one["cpu_ratio"]) for one in report["writes"]] == [(1.0, 1.0), (1.25, 3.0)]
    assert "kubernetes, pages" in text(report)


def test_without_a_cluster_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    result = CliRunner().invoke(main, ["bench", "client", "--pods", "1"])
    assert result.exit_code == 2
    assert "set KUBECONFIG" in result.output
