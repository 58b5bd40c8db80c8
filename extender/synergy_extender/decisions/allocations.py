"""Allocations in the states of the run protocol: granted, retuned, revoked, released."""

from collections.abc import Iterable, Sequence
from typing import Literal

from synergy_api.amounts import Amounts
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.sharing import SharedGPU
from synergy_api.parts.sizes import SizeLimits
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.dimensions import amounts_of_place
from synergy_extender.cluster.ledger import amounts_of_share
from synergy_extender.colocation.devices import Capacities, devices_of, is_usual, shares_of
from synergy_extender.colocation.partners import delta_form, shared_gpu
from synergy_extender.rounds import Moment, Rounds

Purpose = Literal["Train", "Profile"]


def grant(
    run: int,
    purpose: Purpose,
    place: core.Allocation,
    moment: Moment,
    *,
    capacities: Capacities,
    before: Allocation | None,
) -> Allocation:
    """A new place, not yet admitted. `before` is the job's last one."""
    workers = shares_of(place, capacities)
    return Allocation(
        run=run,
        purpose=purpose,
        state="Granted",
        admitted=False,
        round=moment.round_index,
        lease_until=format_time(moment.rounds.end(moment.round_index)),
        gpu_type=place.gpu_type,
        workers=workers,
        steps_per_second=place.steps_per_s,
        proportional_steps_per_second=place.proportional_steps_per_s,
        estimated=True if place.estimated else None,
        spread=True if place.spread else None,
        shared_gpu=shared_gpu(place, before, on_shared_node=any(share.devices for share in workers)),
    )


def retune(allocation: Allocation, place: core.Allocation, capacities: Capacities) -> Allocation:
    """The same nodes and GPUs with the CPU and memory of `place`: less counts at once, more once the room is there."""
    speeds = {
        "steps_per_second": place.steps_per_s,
        "proportional_steps_per_second": place.proportional_steps_per_s,
        "estimated": True if place.estimated else None,
        "spread": True if place.spread else None,
        "shared_gpu": _with_partners(allocation, place),
    }
    return _aiming_at(shares_of(place, capacities), allocation).model_copy(update=speeds)


def says(allocation: Allocation, place: core.Allocation, capacities: Capacities) -> bool:
    """Whether a run on usual GPUs that it shares with nobody has exactly what `place` gives it there, and expects the
    same speeds: `retune` would change nothing."""
    if allocation.planned or allocation.shared_gpu is not None or len(allocation.workers) != len(place.workers):
        return False
    expected = (allocation.steps_per_second, allocation.proportional_steps_per_second)
    if expected != (place.steps_per_s, place.proportional_steps_per_s):
        return False
    if (allocation.estimated, allocation.spread) != (place.estimated or None, place.spread or None):
        return False
    shares = sorted(place.workers, key=lambda share: share.node)
    return all(
        share.node == given.node
        and amounts_of_place(share) == Amounts.of(given)
        and given.devices is None
        and given.resource is None
        and not given.device_ids
        and is_usual(share.node, capacities)
        for share, given in zip(shares, allocation.workers, strict=True)
    )


def within(allocation: Allocation, limits: SizeLimits) -> Allocation:
    """The same nodes and GPUs, with no more and no less CPU and memory than its pods can have; the expected speeds stay
    until the next plan."""
    goal = allocation.planned or allocation.workers
    gpus = sum(share.gpus for share in goal)
    target = [_clamped(share, limits, gpus) for share in goal]
    return allocation if target == goal else _aiming_at(target, allocation)


def _aiming_at(target: list[NodeShare], allocation: Allocation) -> Allocation:
    given = {share.node: share for share in allocation.workers}
    target = [_on_its_devices(share, given.get(share.node)) for share in target]
    workers = target
    if allocation.admitted:
        workers = [_smaller(share, given[share.node]) for share in target]
    return allocation.model_copy(update={"workers": workers, "planned": [] if workers == target else target})


def _on_its_devices(share: NodeShare, given: NodeShare | None) -> NodeShare:
    """A run keeps the devices that its claims name."""
    if given is None or not given.device_ids:
        return share
    return share.model_copy(update={"device_ids": given.device_ids, "capacity": given.capacity})


def _clamped(share: NodeShare, limits: SizeLimits, gpus: int) -> NodeShare:
    return share.model_copy(update=limits.clamp(Amounts.of(share), gpus).fields)


def revoke(allocation: Allocation, until: float, reason: str) -> Allocation:
    """Revoked: it must leave by `until`."""
    return allocation.model_copy(
        update={"state": "Revoked", "lease_until": format_time(until), "planned": [], "reason": str(reason)}
    )


def brought_back(allocation: Allocation, now: float, rounds: Rounds) -> Allocation:
    """A revoked run whose lease ends later than any plan would have let it was revoked by a clock that was ahead: it
    leaves within a lead from now."""
    if allocation.state != "Revoked" or allocation.lease_until is None:
        return allocation
    if parse_time(allocation.lease_until) <= now + rounds.seconds + rounds.lead_s:
        return allocation
    return allocation.model_copy(update={"lease_until": format_time(now + rounds.lead_s)})


def release(allocation: Allocation) -> Allocation:
    """Holds nothing any more."""
    return allocation.model_copy(
        update={"state": "Released", "admitted": False, "lease_until": None, "workers": [], "planned": []}
    )


def grown(allocation: Allocation) -> Allocation:
    """With the planned growth in force."""
    return allocation.model_copy(update={"workers": allocation.planned, "planned": []})


def growth(allocation: Allocation) -> Iterable[tuple[str, Amounts]]:
    """What each node has to have free for the planned growth, beyond what `workers` gives."""
    given = {share.node: amounts_of_share(share) for share in allocation.workers}
    return [(s.node, amounts_of_share(s).minus(given[s.node])) for s in allocation.planned]


def same_place(allocation: Allocation, place: core.Allocation, capacities: Capacities) -> bool:
    """Whether `place` means the same GPUs, or as much of one: only CPU and memory can change without a new run."""
    held = {share.node: (share.gpus, share.devices) for share in allocation.workers}
    return allocation.gpu_type == place.gpu_type and held == devices_of(place, capacities)


def _with_partners(allocation: Allocation, place: core.Allocation) -> SharedGPU | None:
    shared = allocation.shared_gpu
    return (
        None
        if shared is None
        else shared.model_copy(update={"asked": list(place.partners), "delta": delta_form(place)})
    )


def is_whole(place: core.Allocation) -> bool:
    """Whether every node gives some of everything: a pod without CPU or memory cannot run."""
    return all(min(amounts_of_place(share)) > 0 for share in place.workers)


def nodes_of(shares: Sequence[NodeShare]) -> list[str]:
    """The nodes' names."""
    return [share.node for share in shares]


def _smaller(one: NodeShare, other: NodeShare) -> NodeShare:
    return one.model_copy(update=Amounts.of(one).at_most(Amounts.of(other)).fields)
