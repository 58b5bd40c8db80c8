"""The namespace that a user means."""

from pathlib import Path

import pytest

from synergy_kube import NoClusterError, credentials


def test_in_a_pod_it_is_the_pods_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(credentials, "NAMESPACE_FILE", tmp_path / "namespace")
    with pytest.raises(NoClusterError, match=r"the pod's namespace cannot be read: .*; name a namespace"):
        credentials.default_namespace()
    (tmp_path / "namespace").write_text("team\n")
    assert credentials.default_namespace() == "team"
    with pytest.raises(NoClusterError, match="there is no file"):
        credentials.default_namespace(str(tmp_path / "none"))
