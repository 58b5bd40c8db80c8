"""The integer programme for placing one job (Tiresias, appendix D): the least network load on the busiest node.

T_i = t_i + w_i (M - sum_j p_ji s_j) + sum_j p_ji s_j (W - w_i), linearised with z_ji = p_ji w_i.
"""

from collections.abc import Sequence

import cvxpy as cp
import numpy as np


def least_load(
    workers: int, servers_bytes: Sequence[int], free_gpus: Sequence[int], load_bytes: Sequence[int]
) -> float:
    """Bytes a step over the busiest node's link at the best placement of so many workers and of parameter servers that
    host so many bytes each."""
    nodes, servers = len(free_gpus), len(servers_bytes)
    sizes, model = np.array(servers_bytes, dtype=float), float(sum(servers_bytes))
    placed = cp.Variable(nodes, integer=True)
    hosts = cp.Variable((servers, nodes), boolean=True)
    both = cp.Variable((servers, nodes), nonneg=True)
    most = cp.Variable()
    limits = [placed >= 0, placed <= np.array(free_gpus), cp.sum(placed) == workers, cp.sum(hosts, axis=1) == 1]
    for server in range(servers):
        limits += [both[server] <= placed, both[server] <= cp.multiply(hosts[server], np.array(free_gpus))]
    for node in range(nodes):
        own = model * placed[node] + workers * (sizes @ hosts[:, node]) - 2.0 * (sizes @ both[:, node])
        limits.append(most >= load_bytes[node] + own)
    problem = cp.Problem(cp.Minimize(most), limits)
    problem.solve(solver=cp.HIGHS)
    return float(problem.value)


def load_of(
    seats: Sequence[int], hosts: Sequence[int], servers_bytes: Sequence[int], load_bytes: Sequence[int]
) -> float:
    """The same for a given placement: workers on each node, and the node of each parameter server."""
    model, workers = sum(servers_bytes), sum(seats)
    loads = []
    for node, here in enumerate(seats):
        hosted = sum(size for size, host in zip(servers_bytes, hosts, strict=True) if host == node)
        loads.append(load_bytes[node] + here * (model - hosted) + hosted * (workers - here))
    return float(max(loads))
