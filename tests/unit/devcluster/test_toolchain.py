"""Where programs come from: a given folder, the cache, PATH, or a build from the locked modules."""

from pathlib import Path

import pytest

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import toolchain
from synergy_devcluster.programs.changed_sources import SourceChange
from synergy_devcluster.programs.toolchain import Module, Program

NO_PROGRAM = Program("ksdev-test-tool", "example.invalid/tool", "1.2.3")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Folders with an empty cache."""
    return Paths(tmp_path / "state", tmp_path / "run", "/unused", tmp_path / "cache")


@pytest.fixture
def only_one_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module list of one program that no Go module builds."""
    monkeypatch.setattr(toolchain, "modules", lambda: (Module("pause", "1.2.3", (NO_PROGRAM,)),))


def tool(folder: Path, version: str) -> Path:
    """Write a program that prints a version."""
    folder.mkdir(exist_ok=True)
    path = folder / NO_PROGRAM.name
    path.write_text(f"#!/bin/sh\necho tool v{version}\n")
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("only_one_tool")
def test_a_given_folder_comes_first(paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tool(tmp_path / "given", "1.2.3")
    monkeypatch.setenv("PATH", str(tool(tmp_path / "path", "1.2.3").parent), prepend=":")
    assert toolchain.locate(paths, bin_dir=given.parent) == {NO_PROGRAM.name: given}
    assert not toolchain.must_build(paths, given.parent)


@pytest.mark.usefixtures("only_one_tool")
def test_a_given_program_of_another_version_is_refused(paths: Paths, tmp_path: Path) -> None:
    given = tool(tmp_path / "given", "1.2.4")
    with pytest.raises(BadInputError, match=r"--bin-dir: .*ksdev-test-tool is 1.2.4, but 1.2.3 is needed"):
        toolchain.locate(paths, bin_dir=given.parent)


@pytest.mark.usefixtures("only_one_tool")
def test_a_program_on_path_counts_only_in_the_right_version(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tool(tmp_path / "path", "1.2.3")
    monkeypatch.setenv("PATH", str(found.parent), prepend=":")
    assert toolchain.locate(paths) == {NO_PROGRAM.name: found}
    tool(found.parent, "1.2.2")
    assert toolchain.must_build(paths)


def test_a_program_on_path_does_not_count_where_it_is_built_from_a_changed_source(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = SourceChange("example.invalid/tool", "tool.go", "is wrong", "is right", "it is wrong")
    module = Module("pause", "1.2.3", (NO_PROGRAM,), changes=(change,))
    monkeypatch.setattr(toolchain, "modules", lambda: (module,))
    found = tool(tmp_path / "path", "1.2.3")
    monkeypatch.setenv("PATH", str(found.parent), prepend=":")
    assert toolchain.must_build(paths)
    assert toolchain.locate(paths, bin_dir=found.parent) == {NO_PROGRAM.name: found}


def test_another_version_is_another_place_in_the_cache() -> None:
    versions = {Module("etcd", version, (NO_PROGRAM,)).fingerprint() for version in ("1", "2")}
    assert len(versions) == 2


def test_a_program_that_cannot_run_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("not a program")
    assert toolchain.program_version(tmp_path / "tool", NO_PROGRAM) is None
