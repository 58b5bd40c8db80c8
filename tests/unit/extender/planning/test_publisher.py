"""What the leader tells of nodes and of the policy that is missing: once, and again only after it was put right."""

from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import NOW, cluster, node_object
from support.extender.leads import Leads
from support.planner.reasons import check_event
from synergy_extender.cluster.state import ClusterState
from synergy_extender.metrics import Metrics
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.planning.publisher import Publisher

MISSING = ("PolicyMissing", "SchedulingPolicy", "default", "default")
UNKNOWN = ("NodeOfUnknownType", "Node", "n1", "default")


def one_node(*, labelled: bool) -> ClusterState:
    """A node with GPUs, whose type is known or not."""
    node = node_object("n1")
    if not labelled:
        node["metadata"]["labels"] = {}
    return cluster([node])


async def test_what_has_no_condition_to_stand_in_is_told_in_events_once() -> None:
    server, lead = WatchServer(), Leads(leading=False)
    async with following(server) as (client, cache):
        publisher = Publisher(client, cache, Metrics(), lead=lead)

        async def told(*, labelled: bool) -> list[tuple[str, str, str, str]]:
            server.posts.clear()
            await publisher.publish(one_node(labelled=labelled), PolicyInForce(missing=True), NOW)
            found = []
            for event in server.posts:
                check_event(event["type"], event["reason"])
                about = event["involvedObject"]
                assert "namespace" not in about, "an object of the cluster has none"
                found.append((event["reason"], about["kind"], about["name"], event["metadata"]["namespace"]))
            return found

        assert await told(labelled=False) == []
        lead.leading = True
        assert await told(labelled=False) == [UNKNOWN, MISSING]
        assert await told(labelled=False) == []
        assert await told(labelled=True) == []
        assert await told(labelled=False) == [UNKNOWN]
