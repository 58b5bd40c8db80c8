"""`bench e2e --beside`: another version of the product, and both versions' figures in one table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.bench.e2e import product
from synergy_cli.bench.e2e.product import Product, Replica
from synergy_cli.bench.e2e.programs import Program
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


async def test_what_is_measured_is_the_other_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = Version(checkout(tmp_path / "other"))
    (tmp_path / "other/crds/one.yaml").write_text("metadata: {name: theirs}\n", encoding="utf-8")
    started: list[Program] = []
    applied: list[str] = []
    commands: list[list[str]] = []

    async def start(program: Program) -> None:
        started.append(program)

    async def at_once(*_: object) -> None:
        pass

    class Kube:
        async def apply(self, _: object, name: str, body: object, **__: object) -> None:
            applied.append(name)

        async def list(self, _: object) -> dict[str, object]:
            return {"items": []}

    class Cluster:
        kubeconfig = tmp_path

        def program(self, name: str) -> str:
            return name

    def helm(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        made = {"kind": "ConfigMap", "data": {"config.yaml": "{clientConnection: {}, extenders: []}"}}
        return subprocess.CompletedProcess(command, 0, json.dumps(made), "")

    monkeypatch.setattr(Program, "start", start)
    monkeypatch.setattr(Replica, "ready", at_once)
    monkeypatch.setattr(product.accounts, "account", at_once)
    monkeypatch.setattr(product, "_answers", at_once)
    monkeypatch.setattr(product.subprocess, "run", helm)
    monkeypatch.setattr(product, "free_port", lambda *_: 1)  # the address is a devcluster's
    made = Product(Cluster(), Kube(), "space", tmp_path, version)  # type: ignore[arg-type]
    await made.install({})
    await made.start_operator()
    await made.start_extender("extender-0")
    await made.start_scheduler("scheduler", None)
    assert applied == ["theirs", "default"]
    paths = [program._environment["PYTHONPATH"] for program in started[:2]]
    assert all(path.startswith(version.environment["PYTHONPATH"]) for path in paths)
    assert [command[3] for command in commands] == [str(tmp_path / "other/helm/kube-synergy")]


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
