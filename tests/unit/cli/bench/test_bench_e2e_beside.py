"""`bench e2e --beside`: another version of the product, and both versions' figures in one table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.bench.e2e.table import beside_text
from synergy_cli.bench.e2e.version import Version
from synergy_cli.main import main


def checkout(folder: Path, *, without: str = "") -> Path:
    """A made-up version: what `bench e2e` starts of one, less a part."""
    for path in ("operator/synergy_operator", "extender/synergy_extender", "core/synergy_core"):
        if path != without:
            (folder / path).mkdir(parents=True)
            (folder / path / "__init__.py").touch()
    for path in ("crds/one.yaml", "helm/kube-synergy/Chart.yaml"):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).touch()
    return folder


def test_processes_import_the_packages_of_the_checkout(tmp_path: Path) -> None:
    version = Version(checkout(tmp_path))
    assert version.missing == []
    where = "import synergy_extender, synergy_api; print(synergy_extender.__file__, synergy_api.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", where],
        env={**os.environ, **version.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs, ours = told.stdout.split()
    assert theirs == str(tmp_path / "extender/synergy_extender/__init__.py")
    assert not ours.startswith(str(tmp_path)), "what the other version does not have is this one's"


def test_this_version_is_the_one_that_is_installed() -> None:
    assert (Version().environment, Version().missing) == ({}, [])


@pytest.mark.parametrize("missing", ["synergy_operator", "synergy_extender"])
def test_a_folder_that_is_no_checkout_is_refused_in_one_line(tmp_path: Path, missing: str) -> None:
    folder = checkout(tmp_path, without=f"{missing.removeprefix('synergy_')}/{missing}")
    result = CliRunner().invoke(main, ["bench", "e2e", "--beside", str(folder)])
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: Invalid value for --beside: {folder} has no {missing}: name a checkout of kube-synergy\n"
    )


def test_an_empty_folder_lacks_everything(tmp_path: Path) -> None:
    assert Version(tmp_path).missing == ["synergy_operator", "synergy_extender", "crds", "the chart"]


def test_both_versions_stand_in_one_table() -> None:
    def report(seconds: float, lost: float) -> dict[str, object]:
        return {"aims": [{"name": "hand_over_s", "value": seconds}, {"name": "lost", "value": lost}]}

    lines = beside_text({**report(6.0, 1.0), "beside": report(8.0, 0.0)}).splitlines()
    assert [line.split() for line in lines[-2:]] == [["hand_over_s", "8.00", "6.00", "0.75"], ["lost", "0.00", "1.00"]]
