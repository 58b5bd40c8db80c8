"""The OpenAPI document of the scheduler port: the four verbs, and schemas that fit what is really read and answered."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import jsonschema_rs
import msgspec
import pytest

from support.extender.cluster import worker_labels
from support.extender.servers import parts_alone
from synergy_extender.verbs import schemas, wire
from synergy_extender.verbs.place import Refusal, Refused
from synergy_extender.verbs.scheduling import filter_nodes, prioritize_nodes, refuse_preemption
from synergy_extender.web.scheduler_app import scheduler_app
from synergy_extender.web.verb_routes import VERBS

POD = {"metadata": {"name": "j-1-0", "namespace": "team", "uid": "u", "labels": worker_labels("j")}, "spec": {}}
NODE = {"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": {"capacity": {"cpu": "8"}}}
VICTIMS = {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 1}}
REQUESTS = {
    "filter": [
        {"Pod": POD, "Nodes": None, "NodeNames": ["n1"]},
        {"Pod": POD, "Nodes": {"metadata": {}, "items": [NODE]}, "NodeNames": None},
    ],
    "prioritize": [{"Pod": POD, "Nodes": None, "NodeNames": ["n1"]}],
    "bind": [{"PodName": "j-1-0", "PodNamespace": "team", "PodUID": "u", "Node": "n1"}],
    "preempt": [{"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": VICTIMS}],
}
DECODED = {
    "filter": wire.ExtenderArgs,
    "prioritize": wire.ExtenderArgs,
    "bind": wire.BindingArgs,
    "preempt": wire.PreemptionArgs,
}
STRUCTS: Mapping[type[msgspec.Struct], type[schemas.BaseModel]] = {
    wire.PodMetadata: schemas.PodMetadata,
    wire.ExtenderArgs: schemas.ExtenderArgs,
    wire.FilterResult: schemas.ExtenderFilterResult,
    wire.HostPriority: schemas.HostPriority,
    wire.BindingArgs: schemas.ExtenderBindingArgs,
    wire.BindingResult: schemas.ExtenderBindingResult,
    wire.PreemptionArgs: schemas.ExtenderPreemptionArgs,
    wire.PreemptionResult: schemas.ExtenderPreemptionResult,
    wire.MetaVictims: schemas.MetaVictims,
    wire.MetaPod: schemas.MetaPod,
}


async def document() -> dict[str, Any]:
    async with parts_alone() as parts:
        transport = httpx.ASGITransport(app=scheduler_app(parts.verbs, parts.metrics))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
            answer = await client.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def validator(whole: Mapping[str, Any], content: Mapping[str, Any]) -> jsonschema_rs.Validator:
    schema = {**content["application/json"]["schema"], "components": whole["components"]}
    return jsonschema_rs.validator_for(schema)


def answers(verb: str) -> list[object]:
    names, whole = (msgspec.json.decode(json.dumps(body), type=wire.ExtenderArgs) for body in REQUESTS["filter"])
    refusals = (Refusal(Refused.NOT_OURS), Refusal(Refused.NOT_ADMITTED))
    return {
        "filter": [filter_nodes(args, place) for args in (names, whole) for place in ("n1", "n9", *refusals)],
        "prioritize": [prioritize_nodes(names, "n1"), prioritize_nodes(names, refusals[0]), []],
        "bind": [wire.BindingResult(), wire.BindingResult(error="no room")],
        "preempt": [refuse_preemption(), wire.PreemptionResult({"n1": wire.MetaVictims([wire.MetaPod("v")])})],
    }[verb]


@pytest.mark.parametrize("verb", list(VERBS))
async def test_requests_and_answers_of_the_wire_types_fit_the_schemas_of_each_verb(verb: str) -> None:
    whole = await document()
    operation = whole["paths"][f"/{verb}"]["post"]
    assert operation["summary"]
    assert operation["description"]
    request = validator(whole, operation["requestBody"]["content"])
    for body in REQUESTS[verb]:
        msgspec.json.decode(json.dumps(body), type=DECODED[verb])
        request.validate(body)
    answer = validator(whole, operation["responses"]["200"]["content"])
    for sample in answers(verb):
        answer.validate(json.loads(msgspec.json.encode(sample)))


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("filter", {"NodeNames": ["n1"]}),
        ("prioritize", {"Pod": POD, "NodeNames": "n1"}),
        ("bind", {"PodName": "j-1-0", "PodNamespace": "team", "PodUID": "u"}),
        ("preempt", {"Pod": [], "NodeNameToMetaVictims": {}}),
    ],
)
async def test_what_the_decoder_refuses_does_not_fit_the_schema_either(verb: str, body: dict[str, Any]) -> None:
    whole = await document()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps(body), type=DECODED[verb])
    assert not validator(whole, whole["paths"][f"/{verb}"]["post"]["requestBody"]["content"]).is_valid(body)


@pytest.mark.parametrize("struct", list(STRUCTS), ids=lambda struct: struct.__name__)
def test_a_schema_has_the_fields_of_its_struct_and_demands_the_same(struct: type[msgspec.Struct]) -> None:
    decoded = msgspec.json.schema(struct)["$defs"][struct.__name__]
    shown = STRUCTS[struct].model_json_schema()
    assert shown["properties"].keys() == decoded["properties"].keys()
    assert shown.get("required", []) == decoded.get("required", [])


async def test_only_the_four_verbs_are_served_besides_the_document() -> None:
    whole = await document()
    assert list(whole["paths"]) == ["/filter", "/prioritize", "/bind", "/preempt"]
