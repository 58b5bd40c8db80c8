"""Structural OpenAPI v3 schemas of apiextensions.k8s.io/v1 from pydantic models.

pydantic writes JSON Schema 2020-12; the API server takes a subset of OpenAPI v3.0: no `$ref`, no `anyOf` with null, a
`type` at every level, boolean `exclusiveMinimum`. Whatever cannot be said in that subset is an error here.
"""

from typing import Any, Final, Literal

from pydantic import BaseModel

Schema = dict[str, Any]

_KEY_ORDER: Final = (
    "description",
    "type",
    "format",
    "anyOf",
    "enum",
    "default",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
)
_DROPPED: Final = frozenset({"title", "$defs"})
_INT32_MAX: Final = 2**31 - 1


class SchemaError(ValueError):
    """A model says something that a structural schema cannot; the message names the field."""


Defaults = Literal["none", "values", "all"]
"""Which defaults the API server stores in an object that leaves the field out: none, those of numbers, words and truth
values, or also those of whole objects. No empty default is ever stored: readers know it."""


def structural_schema(model: type[BaseModel], *, defaults: Defaults = "all") -> Schema:
    """Structural schema of a model.

    A status takes `defaults="none"`: the API server must not write what no owner wrote. Raises SchemaError where the
    model cannot be expressed.
    """
    document = model.model_json_schema(by_alias=True)
    return _Converter(document.get("$defs", {}), defaults).convert(document, model.__name__)


class _Converter:
    """One walk over a JSON schema document; `path` is where it is, for error messages."""

    def __init__(self, definitions: dict[str, Schema], defaults: Defaults) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def convert(self, node: Schema, path: str) -> Schema:
        out = self._inline(node)
        for key in _DROPPED:
            out.pop(key, None)
        if not self._is_stored(out):
            out.pop("default", None)
        if "description" in out:
            out["description"] = _first_paragraph(out["description"])
        if out.get("x-kubernetes-int-or-string"):
            out.pop("type", None)
            out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        else:
            self._typed(out, path)
        return _ordered(out, path)

    def _inline(self, node: Schema) -> Schema:
        """The node with its reference, its one-element allOf or its optional branch merged in; the node's keys win."""
        out = dict(node)
        if "$ref" in out:
            name = out.pop("$ref").removeprefix("#/$defs/")
            return {**self._inline(self._definitions[name]), **out}
        if out.get("x-kubernetes-int-or-string"):
            return out
        branches = [branch for branch in out.get("anyOf", []) if branch.get("type") != "null"]
        if len(branches) == 1:
            del out["anyOf"]
            return {**self._inline(branches[0]), **out}
        return out

    def _typed(self, out: Schema, path: str) -> None:
        if "const" in out:
            out["enum"] = [out.pop("const")]
        kind = out.get("type")
        if kind == "object":
            self._object(out, path)
        elif kind == "array":
            if "items" not in out:
                raise SchemaError(f"{path}: a list needs the type of its items")
            out["items"] = self.convert(out["items"], f"{path}[]")
            out.setdefault("x-kubernetes-list-type", "atomic")
        elif kind in ("integer", "number"):
            _number(out, kind)
        elif kind not in ("string", "boolean"):
            raise SchemaError(f"{path}: a structural schema needs one type, not {kind or out.get('anyOf')!r}")

    def _object(self, out: Schema, path: str) -> None:
        values = out.pop("additionalProperties", False)
        if isinstance(values, dict):
            out["additionalProperties"] = self.convert(values, f"{path}.*")
        elif "properties" not in out and not out.get("x-kubernetes-preserve-unknown-fields"):
            raise SchemaError(f"{path}: an object needs properties, the type of its values, or to keep unknown fields")
        if "properties" in out:
            out["properties"] = {
                name: self.convert(field, f"{path}.{name}") for name, field in out["properties"].items()
            }
            if "default" in out:
                out["default"] = _object_default(out, path)
                if not out["default"]:
                    del out["default"]

    def _is_stored(self, out: Schema) -> bool:
        default = out.get("default")
        if default is None or default in ("", [], {}) or self._defaults == "none":
            return False
        return self._defaults == "all" or not isinstance(default, dict)


def _object_default(out: Schema, path: str) -> dict[str, Any]:
    """The default in full: the API server checks CEL rules on it before it fills in the inner defaults."""
    inner = {name: field["default"] for name, field in out["properties"].items() if "default" in field}
    given = _without_empty(out["default"])
    if given != inner:
        raise SchemaError(f"{path}: its default must be that of its fields, {inner}, not {given}")
    return inner


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    short = {key: _without_empty(inner) if isinstance(inner, dict) else inner for key, inner in value.items()}
    return {key: inner for key, inner in short.items() if inner is not None and inner not in ("", [], {})}


def _number(out: Schema, kind: str) -> None:
    if "exclusiveMinimum" in out:
        out["minimum"] = out["exclusiveMinimum"]
        out["exclusiveMinimum"] = True
    if kind == "number":
        out["format"] = "double"
        return
    small = out.get("minimum", 0) >= -_INT32_MAX - 1 and out.get("maximum", _INT32_MAX + 1) <= _INT32_MAX
    out["format"] = "int32" if small else "int64"


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _ordered(out: Schema, path: str) -> Schema:
    unknown = sorted(set(out) - set(_KEY_ORDER))
    if unknown:
        raise SchemaError(f"{path}: {', '.join(unknown)} cannot stand in a structural schema")
    return {key: out[key] for key in _KEY_ORDER if key in out}
