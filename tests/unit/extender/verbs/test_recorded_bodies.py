"""The bodies that a real kube-scheduler v1.36.3 sent and understood are read and answered in the same shape."""

import json
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter

from support import papers
from synergy_extender.verbs.scheduling import filter_nodes, prioritize_nodes, refuse_preemption
from synergy_extender.verbs.wire import BindingArgs, BindingResult, ExtenderArgs, PreemptionArgs, offered_nodes
from synergy_extender.web.verb_routes import VERBS

RECORDED = papers.found("extender")
pytestmark = [
    pytest.mark.papers,
    pytest.mark.skipif(
        RECORDED is None, reason="the recordings are not beside the project (PAPERS_DATA names a folder)"
    ),
]


def recorded(name: str) -> bytes:
    assert RECORDED is not None
    return (RECORDED / name).read_bytes()


def shape(value: Any) -> Any:
    """Keys and kinds of values, at any depth; of a list its first entry."""
    if isinstance(value, dict):
        return {key: shape(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("kind", ["cache-true", "cache-false", "reject"])
def test_requests_are_read(kind: str, verb: str) -> None:
    args = msgspec.json.decode(recorded(f"{kind}/{verb}-1.request.json"), type=ExtenderArgs)
    raw = json.loads(recorded(f"{kind}/{verb}-1.request.json"))
    names = raw["NodeNames"] or [item["metadata"]["name"] for item in raw["Nodes"]["items"]]
    assert offered_nodes(args) == names
    assert (args.pod.metadata.name, args.pod.metadata.uid) == (
        raw["Pod"]["metadata"]["name"],
        raw["Pod"]["metadata"]["uid"],
    )


def test_filter_answers_names_with_names() -> None:
    args = msgspec.json.decode(recorded("cache-true/filter-1.request.json"), type=ExtenderArgs)
    answer = json.loads(msgspec.json.encode(filter_nodes(args, "fake-006")))
    theirs = json.loads(recorded("cache-true/filter-1.response.json"))
    assert answer["NodeNames"] == ["fake-006"]
    assert theirs.keys() - answer.keys() == set()
    assert shape(answer["NodeNames"]) == shape(theirs["NodeNames"])


def test_filter_answers_whole_nodes_with_the_whole_node_unchanged() -> None:
    body = recorded("cache-false/filter-1.request.json")
    args = msgspec.json.decode(body, type=ExtenderArgs)
    first = json.loads(body)["Nodes"]["items"][0]
    answer = json.loads(msgspec.json.encode(filter_nodes(args, first["metadata"]["name"])))
    assert answer["Nodes"]["items"] == [first]
    assert answer["NodeNames"] is None


def test_prioritize_answers_in_the_recorded_shape() -> None:
    args = msgspec.json.decode(recorded("cache-true/prioritize-1.request.json"), type=ExtenderArgs)
    answer = json.loads(msgspec.json.encode(prioritize_nodes(args, "fake-006")))
    assert shape(answer) == shape(json.loads(recorded("cache-true/prioritize-1.response.json")))


@pytest.mark.parametrize("kind", ["cache-true", "cache-false"])
def test_preempt_is_read_in_both_forms_and_answered_in_the_recorded_shape(kind: str) -> None:
    args = msgspec.json.decode(recorded(f"{kind}/preempt-1.request.json"), type=PreemptionArgs)
    assert args.node_name_to_victims or args.node_name_to_meta_victims
    answer = json.loads(msgspec.json.encode(refuse_preemption()))
    assert answer.keys() == json.loads(recorded(f"{kind}/preempt-1.response.json")).keys()


def test_bind_is_read_and_answered_in_the_recorded_shape() -> None:
    args = msgspec.json.decode(recorded("cache-true/bind-1.request.json"), type=BindingArgs)
    assert (args.pod_name, args.pod_namespace, args.node) == ("low-0", "default", "fake-006")
    assert json.loads(msgspec.json.encode(BindingResult())) == json.loads(recorded("cache-true/bind-1.response.json"))


@pytest.mark.parametrize("verb", list(VERBS))
def test_requests_and_answers_fit_the_models_of_the_openapi_document(verb: str) -> None:
    assert RECORDED is not None
    for kind, model in (("request", VERBS[verb].request), ("response", VERBS[verb].answer)):
        files = sorted(RECORDED.glob(f"*/{verb}-*.{kind}.json"))
        assert files
        for file in files:
            TypeAdapter(model).validate_json(file.read_bytes())
