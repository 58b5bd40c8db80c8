"""The controller's settings, and the folder of kubeconfigs."""

from pathlib import Path

import pytest

from synergy_clusters.config import read_settings
from synergy_clusters.worker_clusters.cluster_set import ClusterSet
from synergy_service.settings import ConfigError


def test_settings_have_defaults_but_for_the_folder() -> None:
    settings = read_settings({"SYNERGY_CLUSTERS_FOLDER": "/etc/clusters"})
    assert (settings.kubeconfigs, settings.away_s, settings.reconsider_s) == (Path("/etc/clusters"), 60.0, 600.0)
    with pytest.raises(ConfigError, match="SYNERGY_CLUSTERS_FOLDER"):
        read_settings({})
    with pytest.raises(ConfigError, match="SYNERGY_CLUSTERS_AWAY_SECONDS"):
        read_settings({"SYNERGY_CLUSTERS_FOLDER": "/etc/clusters", "SYNERGY_CLUSTERS_AWAY_SECONDS": "-1"})


def test_a_mounted_secret_is_a_set_of_clusters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hidden = tmp_path / "..2026"
    hidden.mkdir()
    (hidden / "east").write_text("one")
    (tmp_path / "..data").symlink_to(hidden)
    (tmp_path / "east").symlink_to(tmp_path / "..data" / "east")
    (tmp_path / "West.yaml").write_text("no name")
    clusters = ClusterSet(tmp_path)
    first = clusters.read()
    assert first.keys() == {"east"}
    assert clusters.read() == first
    (hidden / "east").write_text("another token")
    assert clusters.read()["east"].digest != first["east"].digest
    assert caplog.text.count("West.yaml") == 1, "said once"


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"):
        ClusterSet(tmp_path / "none").read()
