"""filter, prioritize and preempt, on bodies as kube-scheduler sends them."""

import json
from typing import Any

import msgspec
import pytest

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job, job_object, key, share, worker, worker_labels
from synergy_extender.cluster.views import JobView, RunMember
from synergy_extender.verbs.place import OTHER_NODE, Refusal, Refused, place_of
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.verbs.scheduling import filter_nodes, prioritize_nodes, refuse_preemption
from synergy_extender.verbs.wire import ExtenderArgs, PreemptionArgs

POD = {"metadata": {"name": "j-1-0", "namespace": "team", "uid": "u", "labels": worker_labels("j")}, "spec": {}}


def by_name(*nodes: str) -> ExtenderArgs:
    body = {"Pod": POD, "Nodes": None, "NodeNames": list(nodes)}
    return msgspec.json.decode(json.dumps(body), type=ExtenderArgs)


def whole(*nodes: str) -> ExtenderArgs:
    items = [{"metadata": {"name": name, "labels": {"x": "é"}}, "status": {"capacity": {"cpu": "1"}}} for name in nodes]
    body = {"Pod": POD, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    return msgspec.json.decode(json.dumps(body), type=ExtenderArgs)


def on_wire(answer: object) -> Any:
    return json.loads(msgspec.json.encode(answer))


def test_only_the_planned_node_passes() -> None:
    assert on_wire(filter_nodes(by_name("n1", "n2", "n3"), "n2")) == {
        "NodeNames": ["n2"],
        "Nodes": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_where_the_planned_node_is_not_offered_the_others_are_refused_with_one_text() -> None:
    answer = on_wire(filter_nodes(by_name("n1", "n3"), "n2"))
    assert (answer["NodeNames"], answer["FailedNodes"]) == ([], {})
    assert answer["FailedAndUnresolvableNodes"] == {"n1": OTHER_NODE, "n3": OTHER_NODE}


def test_whole_nodes_go_back_whole() -> None:
    answer = on_wire(filter_nodes(whole("n1", "n2"), "n2"))
    assert answer["NodeNames"] is None
    assert answer["Nodes"]["items"] == [
        {"metadata": {"name": "n2", "labels": {"x": "é"}}, "status": {"capacity": {"cpu": "1"}}}
    ]
    assert answer["FailedAndUnresolvableNodes"] == {}


def test_a_planned_node_that_was_not_offered_lets_no_node_pass_but_never_null() -> None:
    assert on_wire(filter_nodes(by_name("n1"), "n9"))["NodeNames"] == []
    assert on_wire(filter_nodes(whole("n1"), "n9"))["Nodes"] == {"items": []}


def test_no_nodes_at_all_are_answered_in_kind() -> None:
    assert on_wire(filter_nodes(by_name(), "n1"))["NodeNames"] == []


def test_a_refusal_for_good_is_unresolvable_on_every_node_with_the_same_text() -> None:
    answer = on_wire(filter_nodes(by_name("n1", "n2"), Refusal(Refused.NOT_OURS)))
    assert answer["NodeNames"] == []
    assert answer["Error"] == ""
    assert set(answer["FailedAndUnresolvableNodes"].values()) == {Refused.NOT_OURS.value}
    assert "default-scheduler" in Refused.NOT_OURS.value


def test_a_refusal_that_may_pass_soon_is_an_error_so_that_the_scheduler_tries_again() -> None:
    answer = on_wire(filter_nodes(by_name("n1"), Refusal(Refused.NOT_ADMITTED)))
    assert answer["Error"] == Refused.NOT_ADMITTED.value
    assert answer["FailedAndUnresolvableNodes"] == {}


def test_scores_are_integers_from_0_to_10() -> None:
    text = msgspec.json.encode(prioritize_nodes(by_name("n1", "n2"), "n2"))
    assert text == b'[{"Host":"n1","Score":0},{"Host":"n2","Score":10}]'
    assert {p.score for p in prioritize_nodes(whole("n1"), Refusal(Refused.NO_JOB))} == {0}


def test_preemption_leaves_no_candidate() -> None:
    body = {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}}
    args = msgspec.json.decode(json.dumps(body), type=PreemptionArgs)
    assert args.node_name_to_meta_victims is not None
    assert on_wire(refuse_preemption()) == {"NodeNameToMetaVictims": {}}


HELD = {"allocation": allocation(share("n1", gpus=1), share("n2", gpus=1), run=2)}
EARLIER = RunMember(key("j"), 2, 0, "worker", "uid-earlier")
"""A worker of an earlier job of the name."""


def placed(view: JobView | None, *, run: int = 2, rank: int = 0, planned: str = "n2", **more: Any) -> str | Refusal:
    pod = worker("j", run=run, rank=rank)
    return place_of(more.get("name", pod.name), more.get("member", pod.member), planned, view)


def test_a_pod_of_a_managed_object_has_a_name_of_its_controller() -> None:
    managed = {"apiVersion": "batch/v1", "kind": "Job", "name": "j"}
    assert placed(job("j", gpus=2, status=HELD, spec={"managed": managed}), name="j-x7k2p") == "n2"
    assert placed(job("j", gpus=2, status=HELD), name="j-x7k2p") == Refusal(Refused.NOT_OURS)


def test_a_worker_of_the_admitted_run_has_its_planned_node() -> None:
    assert placed(job("j", gpus=2, status=HELD)) == "n2"


@pytest.mark.parametrize(
    ("view", "more", "why"),
    [
        (job("j", status=HELD), {"member": None}, Refused.NOT_OURS),
        (job("j", status=HELD), {"name": "borrowed-labels"}, Refused.NOT_OURS),
        (None, {}, Refused.NO_JOB),
        (job("j", status=HELD), {"member": EARLIER}, Refused.OTHER_JOB),
        (job("j"), {}, Refused.NO_PLACE),
        (job("j", status=HELD), {"run": 1}, Refused.OLD_RUN),
        (job("j", status=HELD), {"run": 3}, Refused.FUTURE_RUN),
        (job("j", status={"allocation": allocation(share("n2"), run=2, state="Revoked")}), {}, Refused.LEAVING),
        (job("j", status={"allocation": allocation(run=2, state="Released")}), {}, Refused.OLD_RUN),
        (job("j", status=HELD, deletionTimestamp="2026-01-01T00:00:00Z"), {}, Refused.LEAVING),
        (job("j", status={"allocation": allocation(share("n2"), run=2, purpose="Profile")}), {}, Refused.WRONG_ROLE),
        (job("j", status={"allocation": allocation(share("n2"), run=2, admitted=False)}), {}, Refused.NOT_ADMITTED),
        (job("j", status=HELD), {"planned": "n3"}, Refused.NO_NODE),
        (job("j", status=HELD), {"planned": ""}, Refused.NO_NODE),
    ],
)
def test_everything_else_is_refused_with_its_reason(view: JobView | None, more: dict[str, Any], why: Refused) -> None:
    assert placed(view, **more) == Refusal(why)


async def test_a_pod_is_placed_though_the_watch_still_shows_the_job_that_had_the_name_before() -> None:
    server = WatchServer(job_object("j", uid="uid-earlier", status=HELD))
    new = job_object("j", status=HELD, resourceVersion="20")
    server.now["/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/j"] = new
    async with following(server) as (client, cache):
        pod = worker("j", run=2, planned="n2", made_for="uid-j")
        place, job_of = await ClusterPlacements(client, cache).place_now(pod)
    assert (place, job_of and job_of.uid) == ("n2", "uid-j")


def test_a_profile_pod_of_any_name_is_placed_where_its_series_was_granted() -> None:
    series = job("j", status={"allocation": allocation(share("n2"), run=2, purpose="Profile")})
    pod = worker("j", run=2)
    assert pod.member is not None
    profile = RunMember(pod.member.job, 2, 0, "profile")
    assert placed(series, member=profile, name="j-p3000-x7k2p") == "n2"


def test_no_text_holds_a_number_so_that_the_scheduler_can_group_them() -> None:
    assert not any(character.isdigit() for text in (*Refused, OTHER_NODE) for character in text)
