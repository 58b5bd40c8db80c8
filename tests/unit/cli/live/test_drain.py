"""`kubectl synergy drain`: times that cannot be."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.main import main

KUBECONFIG = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("999999w", "999999w is after the year 9999"),
        ("9999-12-31T23:59:59-23:59", "'9999-12-31T23:59:59-23:59' is not an RFC 3339 time"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z is in the past"),
        ("soon", "'soon' is no time such as 12h, 7d or 4w"),
    ],
)
def test_a_time_that_cannot_be_is_refused_in_a_line(tmp_path: Path, by: str, problem: str) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    result = CliRunner().invoke(main, ["drain", "n1", "--by", by, "--kubeconfig", str(tmp_path / "config")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: --by: {problem}")
