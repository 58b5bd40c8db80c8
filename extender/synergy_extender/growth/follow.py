"""What to do about requests for nodes. Pure."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time
from synergy_core.model.answer import Growth
from synergy_extender.cluster.state import ClusterState
from synergy_extender.snapshot.node_groups import RequestState, growing, pool_of, request_states


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for nodes."""

    pool: str
    nodes: int
    failures: int
    """Requests of the pool that have failed one after the other before."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server has refused a request."""

    problem: str
    until: float


NOBODY: Final[Mapping[str, Refused]] = MappingProxyType({})
"""No pool's request was refused."""


def asks(growth: Sequence[Growth], state: ClusterState, now: float) -> list[Ask]:
    """The requests to make."""
    states = request_states(state, now)
    return [
        Ask(pool_of(one.group), one.nodes, states[pool_of(one.group)][-1].failures if states[pool_of(one.group)] else 0)
        for one in growth
        if pool_of(one.group) in states
    ]


def over(state: ClusterState, unneeded: Container[str], now: float) -> list[str]:
    """The names of requests to delete: their nodes are there, a newer one follows on their failure, or no job needs
    them any more and the autoscaler has not made their nodes.

    A failed request stays until twice its wait has passed, so that the next failure waits longer.
    """
    states, hows = request_states(state, now), {pool.name: how for pool, how in growing(state)}
    found = [one.name for one in state.requests if one.pool not in states]
    for pool, requests in states.items():
        for index, one in enumerate(requests):
            newer = index + 1 < len(requests)
            request = one.request
            spare = request.name in unneeded and not request.provisioned
            old = now - request.created >= hows[pool].wait_seconds
            if one.missing == 0 or (_forgotten(one, now) or newer if one.failed_at is not None else spare and old):
                found.append(request.name)
    return found


def _forgotten(one: RequestState, now: float) -> bool:
    return one.failed_at is not None and one.retry_at is not None and now >= 2 * one.retry_at - one.failed_at


def pool_finding(
    requests: Sequence[RequestState], refused: Refused | None, now: float, *, grows: bool
) -> tuple[Finding, bool]:
    """What the pool's condition says of its growth, and whether all is well."""
    if not grows:
        return say(Reason.AUTOSCALING_OFF), False
    waiting = [one for one in requests if one.open]
    if refused is not None and refused.until > now:
        until = format_time(float(int(refused.until)))
        return say(Reason.REQUEST_REFUSED, problem=refused.problem, until=until), False
    if waiting:
        nodes = sum(one.missing for one in waiting)
        return say(Reason.NODES_ASKED_FOR, nodes=nodes), True
    failed = [one for one in requests if one.retry_at is not None and one.retry_at > now]
    if failed:
        last = failed[-1]
        until = format_time(float(int(last.retry_at or now)))
        facts = {"nodes": last.missing, "problem": last.problem, "failures": last.failures, "until": until}
        return say(Reason.NODES_NOT_PROVIDED, **facts), False
    return say(Reason.NO_NODES_ASKED_FOR), True
