"""Fields that a served schema does not declare, and what is left of an object without them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from synergy_api.generation.crd import KINDS, object_schema
from synergy_kube.undeclared import prune, undeclared

Schema = dict[str, Any]


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


TEXT: Schema = {"type": "string"}
NAMES = st.sampled_from("abcd")
SCHEMAS = st.recursive(
    st.just(TEXT),
    lambda inner: st.one_of(
        st.dictionaries(NAMES, inner, max_size=3).map(lambda fields: obj(**fields)),
        inner.map(lambda item: {"type": "array", "items": item}),
        inner.map(lambda value: {"type": "object", "additionalProperties": value}),
    ),
    max_leaves=12,
)


def full(schema: Schema) -> Any:
    """An object that has every field of the schema."""
    if schema["type"] == "string":
        return "x"
    if schema["type"] == "array":
        return [full(schema["items"]), full(schema["items"])]
    if "additionalProperties" in schema:
        return {"one": full(schema["additionalProperties"]), "two": full(schema["additionalProperties"])}
    return {name: full(field) for name, field in schema["properties"].items()}


def older(schema: Schema, gone: st.DataObject) -> Schema:
    """The schema with some of its fields left out, anywhere."""
    if "items" in schema:
        return {**schema, "items": older(schema["items"], gone)}
    if "additionalProperties" in schema:
        return {**schema, "additionalProperties": older(schema["additionalProperties"], gone)}
    if "properties" in schema:
        fields = schema["properties"].items()
        return obj(**{name: older(field, gone) for name, field in fields if gone.draw(st.booleans())})
    return schema


@given(SCHEMAS.map(lambda inner: obj(top=inner)), st.data())
def test_what_is_left_is_all_that_the_older_schema_declares_and_nothing_else(
    schema: Schema, gone: st.DataObject
) -> None:
    served = older(schema, gone)
    body = full(schema)
    assert prune(body, undeclared(schema, served)) == full(served)
    assert body == full(schema), "the body itself is left alone"


def test_the_highest_field_of_a_branch_stands_for_all_below_it() -> None:
    own = obj(status=obj(late=obj(by=TEXT), list={"type": "array", "items": obj(a=TEXT, b=TEXT)}))
    served = obj(status=obj(list={"type": "array", "items": obj(a=TEXT)}))
    assert undeclared(own, served) == {("status", "late"), ("status", "list", "[]", "b")}


def test_a_schema_that_keeps_or_takes_any_field_lacks_none() -> None:
    own = obj(status=obj(a=TEXT))
    assert undeclared(own, obj(status={"type": "object", "x-kubernetes-preserve-unknown-fields": True})) == set()
    assert undeclared(own, obj(status={"type": "object", "additionalProperties": TEXT})) == set()


def test_an_object_without_the_field_or_of_another_shape_stays_as_it_is() -> None:
    paths = frozenset({("status", "late"), ("list", "[]", "b"), ("map", "*", "b")})
    for body in ({}, {"status": None}, {"status": "x"}, {"list": {"b": 1}}, {"map": ["b"]}, {"list": [None, 1]}):
        assert prune(body, paths) == body


def test_the_models_declare_all_of_themselves() -> None:
    for kind in KINDS:
        assert undeclared(object_schema(kind), object_schema(kind)) == set()
