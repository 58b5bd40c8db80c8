"""`bench start` where there is no cluster."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.main import main

NOBODY = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
users: [{name: u, user: {}}]
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "set KUBECONFIG"), ("a: [b", "set KUBECONFIG"), ("root:x:0", "set KUBECONFIG"), (NOBODY, "127.0.0.1:1")],
)
def test_without_a_cluster_it_says_so(
    text: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    result = CliRunner().invoke(main, ["bench", "start", "--gpu-type", "A100"])
    assert result.exit_code == 2
    assert says in result.output
