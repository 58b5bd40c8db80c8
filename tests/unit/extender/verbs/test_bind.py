"""bind looks at the plan and the ledger once more, posts, and says in words why not."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from support.extender.cluster import allocation, cluster, foreign, job, node_object, share, worker
from synergy_api.names import ANNOTATION_BOUND
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.ledger import AssumedBindings, Ledger
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView
from synergy_extender.verbs.bind import Binder, BindRefused
from synergy_extender.verbs.place import Refusal, Refused, place_of
from synergy_extender.verbs.wire import BindingArgs
from synergy_kube import ApiError, Conflict

NODES = (node_object("n1"), node_object("n2"))


class Placements:
    """A cluster in memory; `fails` is raised by the API server on POST."""

    def __init__(self, state: ClusterState, assumed: AssumedBindings) -> None:
        self.state = state
        self.assumed = assumed
        self.posted: list[Mapping[str, Any]] = []
        self.fails: Exception | None = None
        self.really_bound = ""
        self.hindrance: str | None = None

    async def pod_now(self, args: BindingArgs) -> PodView | None:
        pod = self.state.pods.get(args.pod_namespace, args.pod_name)
        return pod if pod is not None and pod.uid == args.pod_uid else None

    async def place_now(self, pod: PodView) -> tuple[str | Refusal, JobView | None]:
        view = self.state.jobs.get(pod.member.job) if pod.member is not None else None
        return place_of(pod.name, pod.member, pod.planned_node, view), view

    def members(self, pod: PodView) -> list[PodView]:
        return self.state.pods.of_run(pod.member.job, pod.member.run) if pod.member is not None else []

    def ledger(self) -> Ledger:
        return Ledger(self.state.allocatable, self.state.pods, self.assumed)

    def in_the_way(self, _pod: PodView, _node: str, _allocation: Allocation) -> str | None:
        return self.hindrance

    async def post_binding(self, pod: PodView, body: Mapping[str, Any]) -> None:
        self.posted.append(body)
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails

    async def bound_node(self, pod: PodView) -> str:
        return self.really_bound


class Bench:
    """A binder over a cluster in memory."""

    def __init__(self, state: ClusterState) -> None:
        self.assumed = AssumedBindings()
        self.placements = Placements(state, self.assumed)
        self.binder = Binder(self.placements, self.assumed)

    async def bind(self, pod: PodView, node: str = "n1") -> None:
        await self.binder.bind(BindingArgs(pod_name=pod.name, pod_namespace=pod.namespace, pod_uid=pod.uid, node=node))


def gang(*workers: PodView, gpus: int = 4, pods: tuple[PodView, ...] = ()) -> Bench:
    held = allocation(share("n1", gpus=gpus), share("n2", gpus=gpus), run=1)
    return Bench(cluster(NODES, [job("j", gpus=2 * gpus, status={"allocation": held})], [*workers, *pods]))


FIRST = worker("j", rank=0, gpus=4, cpu="4", planned="n1", made_for="uid-j")
SECOND = worker("j", rank=1, gpus=4, cpu="4", planned="n2")


async def test_a_worker_is_bound_with_its_run_and_round_recorded_in_the_same_write() -> None:
    bench = gang(FIRST, SECOND)
    await bench.bind(FIRST)
    (body,) = bench.placements.posted
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert body["metadata"]["uid"] == FIRST.uid
    assert json.loads(body["metadata"]["annotations"][ANNOTATION_BOUND]) == {"run": 1, "round": 50_000}
    assert bench.assumed.node_of(FIRST.uid) == "n1"


async def test_a_pod_that_is_bound_there_already_is_no_error_and_no_second_post() -> None:
    bound = worker("j", node="n1", gpus=4, planned="n1")
    bench = gang(bound, SECOND)
    await bench.bind(bound)
    assert bench.placements.posted == []


async def test_a_gang_is_not_begun_when_another_member_has_no_room() -> None:
    bench = gang(FIRST, SECOND, pods=(foreign("x", node="n2", gpus=5),))
    with pytest.raises(BindRefused, match="node n2 has no room for the job: 4 GPUs asked for, 3 free") as refused:
        await bench.bind(FIRST)
    assert refused.value.by_ledger
    assert (bench.placements.posted, len(bench.assumed)) == ([], 0)


async def test_cpu_and_memory_are_looked_at_too() -> None:
    bench = gang(FIRST, SECOND, pods=(foreign("x", node="n1", cpu="21"),))
    with pytest.raises(BindRefused, match="4000 milli-CPU asked for, 3000 free"):
        await bench.bind(FIRST)


async def test_bindings_on_their_way_count_for_others() -> None:
    bench = gang(FIRST, SECOND)
    bench.assumed.add(foreign("x", gpus=5), "n1")
    with pytest.raises(BindRefused, match="4 GPUs asked for, 3 free"):
        await bench.bind(FIRST)


async def test_two_binds_at_once_cannot_take_the_same_room() -> None:
    jobs = [job(n, gpus=5, status={"allocation": allocation(share("n1", gpus=5))}) for n in ("a", "b")]
    pods = [worker(n, gpus=5, planned="n1") for n in ("a", "b")]
    bench = Bench(cluster(NODES, jobs, pods))
    outcomes = await asyncio.gather(*(bench.bind(pod) for pod in pods), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [BindRefused]
    assert len(bench.placements.posted) == 1


@pytest.mark.parametrize(
    ("pod", "node", "says"),
    [
        (worker("j", run=7, gpus=4, planned="n1"), "n1", Refused.FUTURE_RUN.value),
        (worker("j", gpus=4, planned="n1", made_for="uid-earlier"), "n1", Refused.OTHER_JOB.value),
        (worker("j", gpus=4, planned="n1"), "n2", "the plan gave this pod node n1, not n2"),
        (
            worker("j", gpus=5, planned="n1"),
            "n1",
            "on node n1 the pods of the run ask for more GPUs (5) than the plan gave (4)",
        ),
        (foreign("x", gpus=1), "n1", Refused.NOT_OURS.value),
    ],
)
async def test_a_stale_or_foreign_binding_is_refused(pod: PodView, node: str, says: str) -> None:
    bench = gang(pod)
    with pytest.raises(BindRefused) as refused:
        await bench.bind(pod, node)
    assert says in str(refused.value)
    assert bench.placements.posted == []


async def test_a_pod_whose_name_was_taken_by_another_is_refused() -> None:
    bench = gang(SECOND)
    with pytest.raises(BindRefused, match="gone, or another has taken its name"):
        await bench.bind(FIRST)


async def test_a_refusal_of_the_api_server_frees_the_room_again() -> None:
    bench = gang(FIRST, SECOND)
    bench.placements.fails = ApiError(403, "Forbidden", "no")
    with pytest.raises(BindRefused, match="the API server refused: 403 Forbidden: no"):
        await bench.bind(FIRST)
    assert len(bench.assumed) == 0


@pytest.mark.parametrize("fails", [TimeoutError(), aiohttp.ServerDisconnectedError(), ApiError(504, "Timeout", "late")])
async def test_after_no_answer_the_room_stays_counted_since_the_pod_may_be_bound(fails: Exception) -> None:
    bench = gang(FIRST, SECOND)
    bench.placements.fails = fails
    with pytest.raises(BindRefused, match="the API server"):
        await bench.bind(FIRST)
    assert bench.assumed.node_of(FIRST.uid) == "n1"
    bench.placements.fails = None
    await bench.bind(FIRST)  # and a second try is not refused because of the first
    assert len(bench.placements.posted) == 2


async def test_a_conflict_is_success_where_the_pod_is_bound_as_asked() -> None:
    bench = gang(FIRST, SECOND)
    bench.placements.fails = Conflict(409, "Conflict", "already assigned")
    bench.placements.really_bound = "n1"
    await bench.bind(FIRST)
    bench.placements.really_bound = "n2"
    bench.assumed.remove(FIRST.uid)
    with pytest.raises(BindRefused, match="already assigned"):
        await bench.bind(FIRST)
    assert len(bench.assumed) == 0
