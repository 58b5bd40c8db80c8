"""The integer programme for placing one job (Tiresias, appendix D): the least network load on the busiest node.

With w_i workers on node i, p_ji = 1 where parameter server j of s_j bytes is on it, W workers and M bytes in all, the
job adds to the t_i bytes that go over node i's link in a step already

    T_i = t_i + w_i (M - sum_j p_ji s_j) + sum_j p_ji s_j (W - w_i),

linearised with z_ji = p_ji w_i. A baseline for small clusters: plans place by skew (`throughput.skew`), since this is
slow and blind to what a model loses by the network (section 3.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from synergy_core.mechanisms.optimum.solver import modelling
from synergy_core.model.snapshot import FieldError


@dataclass(frozen=True, slots=True)
class LeastLoad:
    """The best placement: workers on each node, the node of each parameter server, and the bytes that go over the
    busiest node's link in a step."""

    workers: tuple[int, ...]
    hosts: tuple[int, ...]
    load_bytes: float


def least_load(
    workers: int, servers_bytes: Sequence[int], free_gpus: Sequence[int], load_bytes: Sequence[int]
) -> LeastLoad | None:
    """The best placement of `workers` workers with a GPU each, and of parameter servers that host so many bytes each,
    on nodes with so many free GPUs and so many bytes a step on their links; None where the GPUs do not suffice.

    Raises FieldError without a solver, or where it finds no optimum.
    """
    if sum(free_gpus) < workers:
        return None
    cp, _ = modelling()
    nodes, servers, model = len(free_gpus), len(servers_bytes), sum(servers_bytes)
    placed = cp.Variable(nodes, integer=True)
    hosts = cp.Variable((servers, nodes), boolean=True)
    both = cp.Variable((servers, nodes), nonneg=True)
    most = cp.Variable()
    limits = [placed >= 0, placed <= list(free_gpus), cp.sum(placed) == workers, cp.sum(hosts, axis=1) == 1]
    for server in range(servers):
        limits += [both[server] <= placed, both[server] <= cp.multiply(hosts[server], list(free_gpus))]
    unit = max(1, model)  # the solver's tolerances are for numbers near 1
    sizes = [size / unit for size in servers_bytes]
    for node, there in enumerate(load_bytes):
        own = model / unit * placed[node] + workers * (sizes @ hosts[:, node]) - 2.0 * (sizes @ both[:, node])
        limits.append(most >= there / unit + own)
    problem = cp.Problem(cp.Minimize(most), limits)
    problem.solve(solver=cp.HIGHS)
    if problem.status != cp.OPTIMAL:
        raise FieldError("placement", f"the solver found no best placement: {problem.status}")
    assignments = tuple(round(float(count)) for count in placed.value)
    chosen = tuple(int(row.argmax()) for row in hosts.value)
    return LeastLoad(assignments, chosen, load_of(assignments, chosen, servers_bytes, load_bytes))


def load_of(
    workers: Sequence[int], hosts: Sequence[int], servers_bytes: Sequence[int], load_bytes: Sequence[int]
) -> float:
    """Bytes a step over the busiest node's link at a given placement: workers on each node, the node of each server."""
    model, together = sum(servers_bytes), sum(workers)
    loads = []
    for node, here in enumerate(workers):
        hosted = sum(size for size, host in zip(servers_bytes, hosts, strict=True) if host == node)
        loads.append(load_bytes[node] + here * (model - hosted) + hosted * (together - here))
    return float(max(loads))
