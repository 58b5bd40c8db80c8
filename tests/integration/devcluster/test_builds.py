"""Real builds: programs by Go, images by buildah, each done once and again only when an input changes."""

import os
import time
from pathlib import Path

import pytest

from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images import base
from synergy_devcluster.images import build as images
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import toolchain
from synergy_devcluster.programs.toolchain import Module, Program

pytestmark = pytest.mark.integration
SCRATCH = "FROM scratch\nCOPY data /data\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Folders with an empty cache."""
    return Paths(tmp_path / "state", tmp_path / "run", "/unused", tmp_path / "cache")


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A build context with a Dockerfile that needs no base, and a file it does not copy."""
    folder = tmp_path / "context"
    (folder / "data" / "__pycache__").mkdir(parents=True)
    (folder / "Dockerfile").write_text(SCRATCH)
    (folder / "data" / "a").write_text("one")
    (folder / "notes").write_text("not copied")
    return folder


def test_a_module_is_built_once_and_then_found_in_the_cache(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module("pause", "1", (Program("pause", ".", None),))
    monkeypatch.setattr(toolchain, "modules", lambda: (module,))
    told: list[str] = []
    first = toolchain.locate(paths, told.append)
    built = first["pause"].stat().st_mtime_ns
    assert len(told) == 1
    assert toolchain.locate(paths, told.append) == first
    assert first["pause"].stat().st_mtime_ns == built
    assert len(told) == 1


def test_a_build_that_fails_says_why_in_one_line_and_leaves_nothing_to_use(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Module("pause", "1", (Program("ksdev-test-tool", "example.invalid/tool", "1"),))
    monkeypatch.setattr(toolchain, "modules", lambda: (module,))
    with pytest.raises(DevclusterError, match="go build of module 'pause' failed") as failed:
        toolchain.locate(paths)
    assert "\n" not in str(failed.value)
    assert toolchain.must_build(paths)


def test_an_image_is_built_once_and_again_only_when_an_input_changes(context: Path, paths: Paths) -> None:
    built: list[str] = []

    def build(**args: str) -> Path:
        return images.build_image(
            context / "Dockerfile", context, "localhost/test:1", args, paths=paths, report=built.append
        )

    first = build()
    (context / "notes").write_text("changed, but not copied")
    assert build() == first
    assert len(built) == 1
    (context / "data" / "a").write_text("two")
    second = build()
    assert second != first
    assert first.exists(), "another checkout may be about to load it"
    an_hour_ago = time.time() - 3601
    older = [first.with_name(f"{first.name[:-20]}{number:016x}.tar") for number in range(3)]
    for number, archive in enumerate([*older, first]):
        archive.touch()
        os.utime(archive, (an_hour_ago + number - 4, an_hour_ago + number - 4))
    assert build(X="1") != second
    assert len(built) == 3
    assert second.exists()
    assert first.exists()
    assert [archive.exists() for archive in older] == [False, False, True], "not asked for in an hour"


def test_the_store_does_not_grow_with_each_build(context: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_UNTAGGED_KEPT", 2)
    monkeypatch.setattr(base, "_REMOVED_AT_ONCE", 1)  # one that cannot be removed must not take its turn
    child = context / "Child"
    child.write_text("FROM localhost/parent:1\nCOPY notes /notes\n")
    store = images.Buildah(paths.images / "store")
    for number in range(6):
        (context / "data" / "a").write_text(f"version {number}")
        images.build_image(context / "Dockerfile", context, "localhost/parent:1", paths=paths)
        if number == 0:
            images.build_image(child, context, "localhost/child:1", paths=paths)
        if number == 1:
            store.run(["from", "--pull-never", "localhost/parent:1"])  # as an interrupted build leaves it
    left = store.run(["images", "--format={{.Name}}:{{.Tag}}"]).split()
    assert sorted(left) == [*3 * ["<none>:<none>"], "localhost/child:1", "localhost/parent:1"]
    assert images.build_image(child, context, "localhost/child:1", paths=paths).exists()


def test_an_image_starts_from_another_that_was_built_here(context: Path, paths: Paths) -> None:
    images.build_image(context / "Dockerfile", context, "localhost/parent:1", paths=paths)
    child = context / "Child"
    child.write_text("FROM localhost/parent:1\nCOPY notes /notes\n")
    first = images.build_image(child, context, "localhost/child:1", paths=paths)
    (context / "data" / "a").write_text("another parent")
    images.build_image(context / "Dockerfile", context, "localhost/parent:1", paths=paths)
    assert images.build_image(child, context, "localhost/child:1", paths=paths) != first


def test_a_base_that_is_not_here_is_never_pulled(context: Path, paths: Paths) -> None:
    (context / "Dockerfile").write_text("FROM python:3.12-slim\n")
    with pytest.raises(BadInputError, match=r"FROM python:3.12-slim: no such image here"):
        images.build_image(context / "Dockerfile", context, "localhost/x:1", paths=paths)
