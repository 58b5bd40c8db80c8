"""The project's own images: the list, what their Dockerfiles copy, and what is refused."""

import ast
import re
from pathlib import Path

import pytest

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.images.dockerfile import input_files, parse
from synergy_devcluster.images.project import (
    EXAMPLES_TORCH,
    GPU_PLUGIN,
    PROJECT_IMAGES,
    SCHEDULER,
    SIMULATOR,
    SOURCE,
    ProjectImage,
    build_images,
)
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs.versions import pinned

PYTHON_ROOMS = ("operator", "extender", "dashboard")
BESIDE = {"extender": ("synergy_clusters",)}
"""Programs that an image has beside its room's."""
PACKAGE_FOLDERS = {path.name: path for path in SOURCE.glob("*/synergy_*") if path.is_dir()}


def _text(image: ProjectImage) -> str:
    return (SOURCE / image.dockerfile).read_text()


def _image(room: str) -> ProjectImage:
    return next(image for image in PROJECT_IMAGES if image.room == room)


def _last_stage(text: str) -> str:
    return text[text.rindex("\nFROM") :]


def _imported(package: str) -> set[str]:
    """The project's packages that one package needs, by what its files import, and what those import in turn."""
    needed, waiting = set[str](), [package]
    while waiting:
        if (name := waiting.pop()) in needed:
            continue
        needed.add(name)
        for file in PACKAGE_FOLDERS[name].rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                roots = {name.partition(".")[0] for name in names}
                waiting += roots & PACKAGE_FOLDERS.keys()
    return needed


@pytest.mark.parametrize("room", PYTHON_ROOMS)
def test_an_image_has_every_package_of_the_project_that_it_imports_and_no_other(room: str) -> None:
    sources = parse(_text(_image(room)), {}).sources
    copied = {Path(source).name for source in sources if Path(source).name in PACKAGE_FOLDERS}
    assert copied == set().union(*(_imported(program) for program in (f"synergy_{room}", *BESIDE.get(room, ()))))


def test_the_simulators_image_has_what_simulations_import() -> None:
    """Of the command line it has more than these commands, whose other packages it lacks."""
    copied = {Path(source).name for source in parse(_text(SIMULATOR), {}).sources} & PACKAGE_FOLDERS.keys()
    assert copied == _imported("synergy_simulator") | {"synergy_cli"}


@pytest.mark.parametrize(
    "image", [*PROJECT_IMAGES, GPU_PLUGIN, EXAMPLES_TORCH, SIMULATOR], ids=lambda image: image.room
)
def test_whatever_a_dockerfile_copies_is_in_the_source_tree(image: ProjectImage) -> None:
    for source in parse(_text(image), {}).sources:
        assert input_files(SOURCE, (source,)), source


@pytest.mark.parametrize("image", [*PROJECT_IMAGES, SIMULATOR], ids=lambda image: image.room)
def test_no_image_runs_as_root(image: ProjectImage) -> None:
    assert re.findall(r"(?m)^USER (.*)$", _last_stage(_text(image))) == ["65532:65532"]


@pytest.mark.parametrize(
    "image", [image for image in PROJECT_IMAGES if image != SCHEDULER], ids=lambda image: image.room
)
def test_the_base_is_an_argument_and_by_default_dockers_python(image: ProjectImage) -> None:
    assert set(parse(_text(image), {}).bases) == {"python:3.11-slim-bookworm"}
    assert set(parse(_text(image), {"BASE": "localhost/base:1"}).bases) == {"localhost/base:1"}


def test_locked_requirements_are_installed_as_locked() -> None:
    """By their hashes, and without what pip would add: it looks for the newest `coverage[toml]` beside a pinned one."""
    for image in (*map(_image, PYTHON_ROOMS), SIMULATOR):
        installs = re.findall(r"\binstall .*", _text(image))
        assert installs
        locked = [install for install in installs if " -r " in install]
        assert locked
        assert all("--require-hashes" in install for install in locked)
        assert all("--no-deps" in install for install in installs)


def test_the_scheduler_is_built_at_the_pinned_version_with_the_pinned_go() -> None:
    text = _text(SCHEDULER)
    assert f"\nARG KUBERNETES_VERSION={pinned().kubernetes}\n" in text
    assert f"ARG GO=golang:{pinned().go_minimum}-" in text


def test_both_ways_to_the_schedulers_image_end_in_the_same_image() -> None:
    built = (SOURCE / f"{SCHEDULER.dockerfile}.built").read_text()
    expected = _last_stage(_text(SCHEDULER)).replace("--from=build /kube-scheduler", "kube-scheduler")
    assert _last_stage(built) == expected


def test_docker_builds_the_same_list_but_the_scheduler_which_is_kubernetes_own() -> None:
    recipe = (SOURCE / "Makefile").read_text().split("\nimages-docker:")[1].split("\n\n")[0]
    files = {f"{room}/Dockerfile" for room in re.findall(r"for room in (.*);", recipe)[0].split()}
    assert files == {str(image.dockerfile) for image in PROJECT_IMAGES if image != SCHEDULER}


def test_every_image_that_the_example_manifests_name_is_one_of_them() -> None:
    """Those of `moving` stand for what people bring from elsewhere."""
    folder = SOURCE / "examples"
    manifests = sorted(file for file in folder.rglob("*.yaml") if folder / "moving" not in file.parents)
    named = {name for file in manifests for name in re.findall(r"(?m)^\s*-? ?image: (\S+)", file.read_text())}
    assert named
    assert named <= {image.tag for image in (*PROJECT_IMAGES, GPU_PLUGIN, EXAMPLES_TORCH, SIMULATOR)}


def test_an_unknown_room_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match="image 'kitchen': write one of operator, extender, dashboard, profiler, scheduler"
    ):
        build_images(only=("kitchen",), paths=Paths(tmp_path, tmp_path, "/unused", tmp_path))


def test_a_folder_that_is_no_source_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="is not the project's source tree: operator/Dockerfile is not in it"):
        build_images(tmp_path, paths=Paths(tmp_path, tmp_path, "/unused", tmp_path))
