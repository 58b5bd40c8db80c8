"""The quotas that jobs draw on when they share a GPU."""

from collections.abc import Iterable

from synergy_core.model.snapshot import QuotaDraw


def merged(draws: Iterable[QuotaDraw]) -> tuple[QuotaDraw, ...]:
    """What several jobs on one GPU draw together: their pods and objects add up, their share is one."""
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for draw in draws:
        sums = found.setdefault(draw.quota, ({}, {}))
        for total, more in zip(sums, (draw.once, draw.per_pod), strict=True):
            for resource, amount in more.items():
                total[resource] = total.get(resource, 0) + amount
    return tuple(QuotaDraw(quota=name, once=once, per_pod=per_pod) for name, (once, per_pod) in found.items())
