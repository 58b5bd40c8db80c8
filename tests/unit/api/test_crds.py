"""The generated files are what the models say, and every field explains itself."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from synergy_api.base import ApiModel
from synergy_api.generation import generate
from synergy_api.generation.crd import KINDS, CustomResource, custom_resource_definition
from synergy_api.names import GROUP
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.profile import SensitivityMatrix
from synergy_api.parts.profiling import ProfileSpec
from synergy_api.parts.sizes import ResourceBounds
from synergy_api.resources.training_job import TrainingJobSpec
from synergy_kube import resources

ROOT = Path(__file__).parents[3]
MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [1], "stepsPerSecond": [[1.0], [2.0]]}


def _schema(kind: CustomResource) -> dict[str, Any]:
    schema: dict[str, Any] = custom_resource_definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _walk(path: str, node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, field in node.get("properties", {}).items():
        yield from _walk(f"{path}.{name}", field)
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from _walk(f"{path}[]", node[key])


def _kind(name: str) -> CustomResource:
    return next(kind for kind in KINDS if kind.name == name)


def test_nothing_generated_is_stale() -> None:
    assert generate.stale_files(ROOT) == [], "run make crds"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree in which everything is up to date."""
    values = tmp_path / generate.CHART / "values.schema.json"
    values.parent.mkdir(parents=True)
    values.write_text('{"definitions": {}}')
    assert str(values.relative_to(tmp_path)) in generate.write(tmp_path)
    assert generate.stale_files(tmp_path) == []
    return tmp_path


def test_a_change_a_missing_file_and_a_file_of_no_kind_are_each_found_and_put_right(tree: Path) -> None:
    changed, missing = tree / "docs/api.md", tree / f"crds/{GROUP}_gpupools.yaml"
    changed.write_text(changed.read_text() + "by hand\n")
    missing.unlink()
    (tree / "crds/kube-synergy.dev_gone.yaml").write_text("")
    stale = ["crds/kube-synergy.dev_gone.yaml", f"crds/{GROUP}_gpupools.yaml", "docs/api.md"]
    assert generate.stale_files(tree) == stale
    assert generate.write(tree) == stale
    assert generate.stale_files(tree) == []


def test_the_check_exits_1_and_names_what_is_stale(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--root", str(tree), "--check"]) == 0
    (tree / "docs/api.md").unlink()
    assert generate.main(["--root", str(tree), "--check"]) == 1
    assert capsys.readouterr().err == "stale: docs/api.md: run make crds\n"
    assert generate.main(["--root", str(tree)]) == 0
    assert generate.main(["--root", str(tree), "--check"]) == 0


def test_the_yaml_reads_back_as_the_definition() -> None:
    for kind in KINDS:
        assert yaml.safe_load(generate.crd_yaml(kind)) == custom_resource_definition(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_has_a_description(kind: CustomResource) -> None:
    bare = [
        path for path, node in _walk(kind.name, _schema(kind)) if "description" not in node and not path.endswith("[]")
    ]
    assert bare == [f"{kind.name}.metadata"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_description_uses_the_names_of_the_python_code(kind: CustomResource) -> None:
    texts = [node.get("description", "") for _, node in _walk("", _schema(kind))]
    assert [text for text in texts if re.search(r"[a-z]_[a-z]|\b(dict|list)\[", text)] == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_printer_column_shows_a_field_that_exists(kind: CustomResource) -> None:
    fields = {path for path, _ in _walk("", _schema(kind))} | {".metadata.creationTimestamp"}
    for column in kind.columns:
        there = set(_alternatives(column.path)) & fields
        for name in re.findall(r"\w+", column.path):
            assert any(name in path.split(".") for path in there), f"{column.name}: {name} names nothing"


def _alternatives(path: str) -> list[str]:
    """The plain paths of one with a choice of names in it: `.a['b','c'].d` is `.a.b.d` and `.a.c.d`."""
    choice = re.search(r"\['([^]]*)'\]", path)
    if choice is None:
        return [path]
    return [plain for name in choice[1].split("','") for plain in _alternatives(path.replace(choice[0], f".{name}", 1))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_a_rule_iterates_over_is_bounded(kind: CustomResource) -> None:
    unbounded = [
        path
        for path, node in _walk(kind.name, _schema(kind))
        if node.get("type") == "array" and "maxItems" not in node and ".matrices" in path
    ]
    assert unbounded == []


def test_the_client_speaks_of_the_same_resources() -> None:
    defined = {(kind.plural, kind.name, kind.namespaced) for kind in KINDS}
    spoken = {
        (value.plural, value.kind, value.namespaced)
        for value in vars(resources).values()
        if isinstance(value, resources.Resource) and value.group == GROUP
    }
    assert spoken == defined


def test_no_status_has_a_default() -> None:
    for kind in KINDS:
        for path, node in _walk("", _schema(kind)):
            assert not (path.startswith(".status") and "default" in node), path


def test_the_reference_names_every_kind_and_every_field() -> None:
    text = (ROOT / "docs/api.md").read_text()
    for kind in KINDS:
        assert f"\n## {kind.name}\n" in text
        for part in ("spec", "status"):
            for path, _ in _walk("", _schema(kind)["properties"].get(part, {})):
                if path and not path.endswith("[]"):
                    assert f"`{path.removeprefix('.')}`" in text


@pytest.mark.parametrize(
    ("model", "wire", "words"),
    [
        (SensitivityMatrix, {**MATRIX, "cpuMillis": [2000, 1000]}, "cpuMillis\n.*must ascend"),
        (SensitivityMatrix, {**MATRIX, "memoryBytes": [1, 1]}, "memoryBytes\n.*must ascend"),
        (SensitivityMatrix, {**MATRIX, "stepsPerSecond": [[1.0]]}, "one row for each value of cpuMillis"),
        (SensitivityMatrix, {**MATRIX, "stepsPerSecond": [[1.0], [1.0, 2.0]]}, "each row of stepsPerSecond"),
        (SensitivityMatrix, {**MATRIX, "stepsPerSecond": [[1.0], [0.0]]}, "greater than 0.000001"),
        (SensitivityMatrix, {**MATRIX, "stepsPerSecond": [[1.0], [float("nan")]]}, "stepsPerSecond"),
        (ProfileSpec, {"mode": "Provided", "matrices": [MATRIX, MATRIX]}, "more than one matrix for gpuType V100"),
        (ResourceBounds, {"cpu": "0"}, "cpu\n.*'0' must be above zero"),
        (ResourceBounds, {"memory": "lots"}, "memory\n.*'lots' is not a Kubernetes quantity"),
        (TrainingJobSpec, {"gpus": 0, "steps": 1, "template": {}}, "gpus\n.*greater than or equal to 1"),
    ],
)
def test_the_models_refuse_what_the_api_server_refuses(model: type[ApiModel], wire: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        model.model_validate(wire)


def test_an_allocation_counts_its_nodes_on_the_wire_and_reads_back_equal() -> None:
    shares = [NodeShare(node=name, gpus=1, cpu_millis=1, memory_bytes=1) for name in ("a", "b")]
    allocation = Allocation(run=1, state="Granted", workers=shares)
    assert allocation.to_wire()["nodes"] == 2
    assert Allocation.model_validate(allocation.to_wire()) == allocation
    assert allocation.model_copy(update={"workers": shares[:1]}).to_wire()["nodes"] == 1
