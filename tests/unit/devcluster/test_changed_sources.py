"""Go modules that are built from a changed copy of their source."""

import os
from pathlib import Path

import pytest

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.programs.changed_sources import SourceChange, change_file, changed_module_file
from synergy_devcluster.programs.toolchain import modules

CHANGE = SourceChange("example.invalid/tool", "tool.go", "is wrong", "is right", "it is wrong")


def test_each_place_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "tool.go"
    file.write_text("this is wrong, and that is wrong")
    change_file(file, CHANGE)
    assert file.read_text() == "this is right, and that is right"


def test_a_source_that_was_mended_is_not_built_silently(tmp_path: Path) -> None:
    file = tmp_path / "tool.go"
    file.write_text("this is right")
    with pytest.raises(DevclusterError, match=r"tool.go of example.invalid/tool no longer has .*: read the new file"):
        change_file(file, CHANGE)


def test_a_module_without_changes_is_built_as_it_is(tmp_path: Path) -> None:
    assert changed_module_file(tmp_path, (), tmp_path, {}) == []


def test_a_module_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "go.mod").write_text("module example.invalid/all\n\ngo 1.24\n")
    (tmp_path / "go.sum").write_text("")
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    with pytest.raises(DevclusterError, match=r"go mod download -json example.invalid/tool failed: "):
        changed_module_file(tmp_path, (CHANGE,), tmp_path / "scratch", env)


def test_what_is_changed_decides_what_is_built_anew() -> None:
    (clients,) = (module for module in modules() if module.folder == "clients")
    assert {change.module for change in clients.changes} == {"sigs.k8s.io/kwok"}
    unchanged = type(clients)(clients.folder, clients.version, clients.programs, clients.link_variables)
    assert unchanged.fingerprint() != clients.fingerprint()
