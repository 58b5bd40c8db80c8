"""The state of a cluster at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from synergy_core.model.snapshot.history import PastJob
from synergy_core.model.snapshot.job import Job
from synergy_core.model.snapshot.limits import STRICT, FieldError, Moment, unique
from synergy_core.model.snapshot.node import Node
from synergy_core.model.snapshot.node_group import NodeGroup
from synergy_core.model.snapshot.profile import Profile
from synergy_core.model.snapshot.quota import Quota
from synergy_core.model.snapshot.tenant import Tenant, check_tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a cluster at one moment. The order of nodes and jobs does not matter."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    now: Moment = 0.0
    round_s: Annotated[float, Field(gt=0)] = 300.0
    tenants: tuple[Tenant, ...] = ()
    """A job's tenant that is not named here has no parent, weight 1 and fairness, and neither guarantee nor limit."""
    quotas: tuple[Quota, ...] = ()
    """What jobs may hold together beside what the nodes have."""
    node_groups: tuple[NodeGroup, ...] = ()
    """Groups of nodes that can grow."""
    history: tuple[PastJob, ...] = ()
    """The jobs that have arrived so far, for forecasts."""
    model_profiles: Mapping[str, Mapping[str, Mapping[str, Profile]]] = field(default_factory=dict)
    """Sensitivity matrices by model, number of GPUs (as text) and GPU type: those of the jobs in `history`."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """How the cluster is planned (`config_format`): the defaults of commands that read the snapshot."""

    def __post_init__(self) -> None:
        unique("nodes", [node.name for node in self.nodes])
        unique("jobs", [job.name for job in self.jobs])
        check_tenants(self.tenants)
        unique("quotas", [quota.name for quota in self.quotas])
        unique("node_groups", [group.name for group in self.node_groups])
        _alike((*self.nodes, *self.node_groups), len(self.nodes))
        _known_quotas(self.jobs, {quota.name for quota in self.quotas})


def _known_quotas(jobs: tuple[Job, ...], known: set[str]) -> None:
    for index, job in enumerate(jobs):
        for place, draw in enumerate(job.quotas):
            if draw.quota not in known:
                path = f"jobs[{index}].quotas[{place}].quota"
                raise FieldError(path, f"{draw.quota!r} is not in quotas; describe it there")


def _alike(nodes: tuple[Node | NodeGroup, ...], single: int) -> None:
    """Raise FieldError where one names further resources that the first does not. The groups come after the single
    nodes."""

    def path(index: int) -> str:
        return f"nodes[{index}]" if index < single else f"node_groups[{index - single}]"

    for index, node in enumerate(nodes):
        for name in sorted(node.further.keys() ^ nodes[0].further.keys()):
            lacking = index if name not in node.further else 0
            problem = f"missing, node {nodes[index - lacking].name!r} has it; give it for every node"
            raise FieldError(f"{path(lacking)}.further.{name}", problem)
