"""Exit codes of a program that a Kubernetes Job runs."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from synergy_kube import KubeClient
from synergy_kube.resources import NODES
from synergy_service.once import run_once


@pytest.fixture(autouse=True)
def nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig of an API server that is not there."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("SYNERGY_KUBECONFIG", str(file))


def words(_environ: Mapping[str, str]) -> str:
    return "some words"


def refused(_environ: Mapping[str, str]) -> str:
    raise ValueError("SYNERGY_X is 'y': give z")


async def say(_kube: KubeClient, settings: str) -> list[str]:
    return [settings]


async def ask(kube: KubeClient, _settings: str) -> list[str]:
    await kube.list(NODES)
    return []


async def break_down(_kube: KubeClient, _settings: str) -> list[str]:
    raise KeyError("lost")


def test_each_line_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert run_once("task", words, say) == 0
    assert ("task", logging.INFO, "some words") in caplog.record_tuples


def test_bad_settings_end_it_with_2_and_name_the_variable(caplog: pytest.LogCaptureFixture) -> None:
    assert run_once("task", refused, say) == 2
    assert "SYNERGY_X is 'y'" in caplog.text


def test_no_cluster_to_ask_ends_it_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNERGY_KUBECONFIG", "/no/file")
    assert run_once("task", words, ask) == 2


def test_an_api_server_that_does_not_answer_ends_it_with_1(caplog: pytest.LogCaptureFixture) -> None:
    assert run_once("task", words, ask) == 1
    assert "the API server" in caplog.text


def test_a_final_error_ends_it_with_2_and_another_one_is_raised() -> None:
    assert run_once("task", words, break_down, (KeyError,)) == 2
    with pytest.raises(KeyError):
        run_once("task", words, break_down)
