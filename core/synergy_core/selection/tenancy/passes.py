"""The passes over the scheduling queue under guarantees.

1. Guarantees. A job runs if it fits into what is left of its tenant's guarantee, or of a tenant's above, level by level
   from below. It takes free GPUs, else those of running jobs that no pass has confirmed, of the
   tenant that borrows most per weight first. That holds under policies and mechanisms that preempt nobody, too.
2. Borrowing. What is left is given to the tenant that borrows least per weight, job by job in the policy's order;
   promoted jobs and profile runs come first. A job displaces jobs below it of its own tenant, or jobs of a tenant that
   borrows more than its own then would. Policies that divide time themselves, and mechanisms with an order of their
   own, keep their order here.
3. GPUs that are still free go to waiting jobs whose tenants allow it.

A gang that is larger than what is left of a guarantee borrows as a whole. Equal borrowers never displace each other, so
plans of the same demand come to rest (`docs/decisions/0062`).
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

from synergy_core.model.tenant_tree import Path
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.round import Round
from synergy_core.selection.tenancy.ledger import BORROWS, TenantLedger


class Walk(Protocol):
    """What a pass does with an entry of the queue."""

    tenants: TenantLedger
    displaced: int
    lost: int

    def claim(self, entry: QueueEntry) -> bool:
        """Let a job stay or enter by a guarantee."""
        ...

    def stays(self, entry: QueueEntry) -> bool:
        """Confirm the place of a running job."""
        ...

    def admit(self, entry: QueueEntry) -> bool:
        """Admit a newcomer, or note why it waits."""
        ...

    def is_over(self) -> bool:
        """Nothing is left that a job could get."""
        ...

    def confirm_the_rest(self) -> list[QueueEntry]:
        """Confirm all running jobs."""
        ...

    def enters_free(self, entry: QueueEntry) -> bool:
        """Give a waiting job GPUs that are free."""
        ...


def claims(walk: Walk, round_: Round, *, preempts: bool) -> list[QueueEntry]:
    """Serve the guarantees; the jobs that run by one, in the order in which they were served."""
    served: list[QueueEntry] = []
    for depth in reversed(range(round_.tenants.height if round_.tenants.guarantees else 0)):
        walk.tenants.stage = depth
        displaced = -1
        while displaced < walk.displaced:  # a displaced job may have a guarantee on another type
            displaced = walk.displaced
            found = _claimants(walk, round_, preempts=preempts)  # running jobs can be there twice
            served += [one for one in found if not walk.tenants.is_decided(one.name) and walk.claim(one)]
    walk.tenants.stage = BORROWS
    return served


def _claimants(walk: Walk, round_: Round, *, preempts: bool) -> Iterator[QueueEntry]:
    """Entries that could have room in a guarantee; running jobs first if the policy preempts no job."""
    in_order = _with_room(walk, round_, preempts=preempts)
    if (
        round_.fair and walk.tenants.stage + 1 < round_.tenants.height
    ):  # what siblings have not claimed is lent among them
        return fair_order(list(in_order), walk.tenants, round_)
    return in_order


def _with_room(walk: Walk, round_: Round, *, preempts: bool) -> Iterator[QueueEntry]:
    tenants, queue, behind = walk.tenants, round_.queue, set[int]()
    running_first = [] if preempts else [entry.rank for entry in queue.running]
    positions: Iterable[int] = [*running_first, *range(len(queue))]
    for rank in positions:
        job = queue.job(rank)
        guarantors = {tenants.guarantor(path) for path in tenants.tree.paths(job)}
        if tenants.is_decided(job.name) or None in guarantors or guarantors & behind:
            continue
        if all(index is not None and tenants.room(index) >= job.gpus for index in guarantors):
            yield queue.entry(rank)
        if not queue.passes and not tenants.is_decided(job.name):
            behind |= {index for index in guarantors if index is not None}


def borrow(walk: Walk, round_: Round) -> None:
    """Give what is left to jobs beyond guarantees."""
    met: set[str] = set()
    lost = -1
    while lost < walk.lost:  # what the last running jobs lose, jobs may get at which the walk had ended
        for entry in _borrowers(walk, round_, met):
            if walk.stays(entry):
                continue
            if walk.is_over() and not entry.is_profile_run:
                break
            met.add(entry.name)
            walk.admit(entry)
        lost = walk.lost
        walk.confirm_the_rest()


def _borrowers(walk: Walk, round_: Round, met: set[str]) -> Iterator[QueueEntry]:
    """The undecided entries, in the order of the borrowing pass."""
    queue, tenants = round_.queue, walk.tenants
    open_ = [r for r in range(len(queue)) if not (tenants.is_decided(queue.job(r).name) or queue.job(r).name in met)]
    if not round_.fair:
        yield from (queue.entry(rank) for rank in open_)
        return
    ahead = [rank for rank in open_ if queue.is_ahead(rank)]
    yield from map(queue.entry, ahead)
    first = set(ahead)
    yield from fair_order([queue.entry(rank) for rank in open_ if rank not in first], walk.tenants, round_)


def fair_order(entries: Iterable[QueueEntry], tenants: TenantLedger, round_: Round) -> Iterator[QueueEntry]:
    """Entries in the order of the queue, job by job of the tenant that borrows least of the job's GPU type."""
    lines: dict[tuple[Path, str], list[QueueEntry]] = {}
    for entry in entries:
        lines.setdefault((tenants.tree.paths(entry.job)[0], _type_of(entry, round_)), []).append(entry)
    height = tenants.tree.height

    def key(line: tuple[Path, str], place: int) -> tuple[tuple[float, ...], int, tuple[Path, str], int]:
        borrowed = tenants.borrowed(*line)
        return (*borrowed, *(0.0,) * (height - len(borrowed))), lines[line][place].rank, line, place

    heap = [key(line, 0) for line in lines]
    heapify(heap)
    while heap:
        known, _, line, place = heappop(heap)
        now = key(line, place)
        if now[0] > known:  # it has got more since
            heappush(heap, now)
            continue
        yield lines[line][place]
        if place + 1 < len(lines[line]):
            heappush(heap, key(line, place + 1))


def _type_of(entry: QueueEntry, round_: Round) -> str:
    """The GPU type on which a job runs, else its first choice."""
    if entry.held is not None:
        return entry.held.pool.gpu_type
    pools = fastest_first(entry, round_.pools)
    return pools[0].gpu_type if pools else ""


def give_the_rest(walk: Walk, round_: Round, waiting: Iterable[QueueEntry]) -> frozenset[str]:
    """Give free GPUs to jobs that wait; those that got some."""
    in_order = sorted(waiting, key=lambda entry: entry.rank)
    return frozenset(entry.name for entry in fair_order(in_order, walk.tenants, round_) if walk.enters_free(entry))
