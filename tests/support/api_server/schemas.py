"""JSON schemas for kubeconform from what an API server says of its own types (`/openapi/v2`), its CRDs included."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEMPLATE = "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"
"""Names of the files, for `-schema-location FOLDER/TEMPLATE`."""
_REFERENCE = "#/definitions/"
_NUMBERS = {"type": ["string", "integer", "number"]}


def write_schemas(openapi: Mapping[str, Any], folder: Path) -> None:
    """One file for each kind, with the definitions that it needs."""
    strict = {name: _strict(definition) for name, definition in openapi["definitions"].items()}
    strict["io.k8s.apimachinery.pkg.api.resource.Quantity"] = _NUMBERS
    for name, definition in openapi["definitions"].items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            needed: dict[str, Any] = {}
            _collect(name, strict, needed)
            document = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": _REFERENCE + name}
            file = folder / f"{kind['group'] or kind['version']}_{kind['version']}_{kind['kind'].lower()}.json"
            file.write_text(json.dumps({**document, "definitions": needed}))


def _collect(name: str, definitions: Mapping[str, Any], needed: dict[str, Any]) -> None:
    if name in needed:
        return
    needed[name] = definitions[name]
    for other in _references(definitions[name]):
        _collect(other, definitions, needed)


def _references(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*(_references(item) for item in node))
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"].removeprefix(_REFERENCE)} if isinstance(node.get("$ref"), str) else set()
    return own.union(*(_references(value) for value in node.values()))


def _strict(node: Any) -> Any:
    """Fields that are not declared are wrong, as with `kubectl --validate=strict`."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("format") == "int-or-string":
        return {"type": ["string", "integer"]}
    made = {key: _strict(value) for key, value in copy.copy(node).items()}
    if made.get("exclusiveMinimum") is True:  # so says OpenAPI 2.0; JSON schema names the bound itself
        made["exclusiveMinimum"] = made.pop("minimum")
    if "properties" in made and not node.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made
