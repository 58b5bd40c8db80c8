"""What a pool's nodes will offer that are not there yet. Pure; shared by operator and extender."""

from collections.abc import Iterable

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.names import RESOURCE_GPU
from synergy_api.resources.pool_autoscaling import PoolAutoscaling


def new_amounts(pool: Pool, how: PoolAutoscaling) -> Amounts:
    """What jobs can have of a new node. At least a unit of each: the planner reads no node without."""
    given = {one.resource: getattr(how.node, one.spec_field, None) or 0 for one in DIMENSIONS}
    reserved = {one.resource: getattr(pool.spec.system_reserved, one.spec_field, None) or 0 for one in DIMENSIONS}
    left = Amounts.parse(given).minus(Amounts.parse(reserved))
    return left.at_least(Amounts(0, *(1 for _ in DIMENSIONS)))._replace(gpus=how.node.gpus)


def possible_nodes(pools: Iterable[Pool], there: Iterable[NodeCapacity]) -> tuple[NodeCapacity, ...]:
    """The nodes that pools may still get, beside those that are there."""
    listed = list(there)
    found: list[NodeCapacity] = []
    for pool in pools:
        how = pool.spec.autoscaling
        if how is not None:
            more = how.max_nodes - sum(one.pool == pool.name for one in listed)
            amounts = new_amounts(pool, how)
            offered = pool.resource or RESOURCE_GPU
            found += [NodeCapacity("", pool.spec.gpu_type, amounts, pool=pool.name, resource=offered)] * max(0, more)
    return tuple(found)
