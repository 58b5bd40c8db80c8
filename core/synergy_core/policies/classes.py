"""Priority classes above the policy: a tenant's jobs take the tenant's positions in the queue by class.

The policy decides which positions each tenant has. The tenant's jobs take these by class, and by the policy within a
class. So no other tenant's job changes its position. Across tenants, all positions count as one tenant's.

* Profile runs stay at the head. Jobs that an allocation matrix pairs on one GPU keep their positions.
* A policy that divides time on GPU types gives its positions a type each. A job in the position of another takes that
  type first, if it may run on it and was given none itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Ranking


def has_classes(jobs: Iterable[Job]) -> bool:
    """Whether jobs differ in class at all."""
    return len({job.priority for job in jobs if job.purpose == "train"}) > 1


def by_class(ranking: Ranking, jobs: Sequence[Job], *, across: bool) -> Ranking:
    """The order with classes above it; the same object where all jobs have one class."""
    if not has_classes(jobs):
        return ranking
    by_name = {job.name: job for job in jobs}
    fixed = {name for _, names in ranking.together for name in names}
    fixed |= {job.name for job in jobs if job.purpose == "profile"}
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(ranking.names):
        if name not in fixed:
            positions.setdefault("" if across else by_name[name].tenant, []).append(position)
    names = list(ranking.names)
    for theirs in positions.values():
        in_order = sorted((ranking.names[at] for at in theirs), key=lambda name: -by_name[name].priority)
        for at, name in zip(theirs, in_order, strict=True):
            names[at] = name
    moved = [(new, old) for new, old in zip(names, ranking.names, strict=True) if new != old]
    if not moved and not across:
        return ranking
    return replace(ranking, names=tuple(names), types=_types(ranking.types, moved), strict=across)


def _types(types: Mapping[str, tuple[str, ...]], moved: Sequence[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """GPU types where jobs (new) are in the positions of others (old)."""
    changed: dict[str, tuple[str, ...]] = {}
    for new, old in moved:
        own, given = types.get(new, ()), types.get(old, ())
        if len(own) > 1 and len(given) == 1 and given[0] in own:
            changed[new] = tuple(dict.fromkeys([*given, *own]))
    return _Changed(types, changed) if changed else types


class _Changed(Mapping[str, tuple[str, ...]]):
    """A mapping with some values replaced; the others are looked up when they are asked for."""

    def __init__(self, before: Mapping[str, tuple[str, ...]], changed: Mapping[str, tuple[str, ...]]) -> None:
        self._before, self._changed = before, changed

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self._changed[name] if name in self._changed else self._before[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._before)

    def __len__(self) -> int:
        return len(self._before)
