"""Image builds: what their inputs are, when a build is skipped, what is refused."""

import configparser
from pathlib import Path

import pytest

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.images import build as images
from synergy_devcluster.images.dockerfile import Dockerfile, input_files, parse
from synergy_devcluster.images.pip_settings import host_settings, pip_settings
from synergy_devcluster.paths import Paths

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


def test_bases_and_sources_are_read() -> None:
    text = """# a comment
ARG BASE=python:3.12-slim
ARG OTHER="alpine:3"
FROM --platform=linux/amd64 ${BASE} AS build
ARG BASE
COPY --chown=1:1 core api \\
    # in between
    pyproject.toml /src/
COPY ["with space", "/x"]
RUN make
FROM $OTHER
COPY --from=build /src /src
ADD https.txt .
"""
    assert parse(text, {"BASE": "localhost/base:1"}) == Dockerfile(
        bases=("localhost/base:1", "alpine:3"),
        sources=("core", "api", "pyproject.toml", "with space", "https.txt"),
    )
    assert parse(text, {}).bases == ("python:3.12-slim", "alpine:3")


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("FROM scratch\nCOPY . /x", (".",)),
        ("FROM scratch AS a\nFROM a\nRUN --mount=type=bind,target=/src make", (".",)),
        ("FROM scratch\nCOPY <<EOF /x\nhello\nEOF", ()),
    ],
)
def test_sources_of_rare_forms(text: str, sources: tuple[str, ...]) -> None:
    assert parse(text, {}) == Dockerfile((), sources)


def test_input_files_are_those_named_without_caches(context: Path) -> None:
    (context / "data" / "__pycache__" / "x.pyc").write_text("")
    assert input_files(context, ("data",)) == [context / "data" / "a"]
    assert input_files(context, ("/notes", "dat*")) == [context / "data" / "a", context / "notes"]
    assert context / "Dockerfile" in input_files(context, (".",))


@pytest.mark.parametrize("tag", ["docker.io/x:1", "localhost/x", "localhost/X:1", "localhost/../x:1"])
def test_a_tag_is_local(context: Path, paths: Paths, tag: str) -> None:
    with pytest.raises(BadInputError, match="write localhost/NAME:TAG"):
        images.build_image(context / "Dockerfile", context, tag, paths=paths)


def test_missing_inputs_are_named(context: Path, paths: Paths) -> None:
    with pytest.raises(BadInputError, match=r"dockerfile .*missing"):
        images.build_image(context / "missing", context, "localhost/x:1", paths=paths)
    with pytest.raises(BadInputError, match=r"context .*missing"):
        images.build_image(context / "Dockerfile", context / "missing", "localhost/x:1", paths=paths)
    with pytest.raises(BadInputError, match=r"archive .*missing"):
        images.load_archive(context / "missing", context / "socket")


def test_pip_in_a_build_sees_this_machines_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    file = tmp_path / "pip.conf"
    file.write_text("[global]\ntimeout = 7\nindex-url = http://mirror.invalid/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_TIMEOUT", "9")
    settings = host_settings()["global"]
    assert (settings["index-url"], settings["timeout"]) == ("http://mirror.invalid/simple", "9")
    with pip_settings() as mounts:
        places = {target: source for source, target in mounts}
        assert places[str(wheels)] == wheels
        read = configparser.RawConfigParser()
        read.read(places["/etc/pip.conf"])
        assert read["global"]["find-links"] == str(wheels)
    assert not places["/etc/pip.conf"].exists(), "the settings are gone after the build"
