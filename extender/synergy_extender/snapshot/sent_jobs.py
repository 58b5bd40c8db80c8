"""Jobs in messages to other processes. The nodes that a job may use are hundreds of names, the same for most jobs: a
message has each such list once, and who reads it has one object for all jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from synergy_core.model import snapshot as core

_NODE_LISTS: Final = 64
_PROFILES: Final = 4096
"""So many lists of nodes and so many jobs' matrices are remembered from one message to the next."""
_ALL_NODES: Final = -1


@dataclass(frozen=True)
class SentJobs:
    """Jobs, and apart from them the nodes that they may use."""

    jobs: tuple[core.Job, ...]
    """Without their nodes."""
    nodes: tuple[tuple[str, ...], ...]
    nodes_of: tuple[int, ...]
    """For each job the index of its nodes; -1: it may use all."""


def sent(jobs: Iterable[core.Job]) -> SentJobs:
    """The message of these jobs."""
    indices: dict[tuple[str, ...], int] = {}
    bare: list[core.Job] = []
    nodes_of: list[int] = []
    for job in jobs:
        nodes = job.nodes
        nodes_of.append(_ALL_NODES if nodes is None else indices.setdefault(nodes, len(indices)))
        bare.append(job if nodes is None else replace(job, nodes=None))
    return SentJobs(tuple(bare), tuple(indices), tuple(nodes_of))


def received(message: SentJobs) -> tuple[core.Job, ...]:
    """The jobs of the message. Of equal matrices, which jobs of one program have, all have the same object: the planner
    works out once what follows from an object."""
    lists = [_nodes(one) for one in message.nodes]
    return tuple(
        [
            _whole(job, None if index == _ALL_NODES else lists[index])
            for job, index in zip(message.jobs, message.nodes_of, strict=True)
        ]
    )


def _whole(job: core.Job, nodes: tuple[str, ...] | None) -> core.Job:
    if nodes is None and not job.profiles:
        return job
    return replace(job, nodes=nodes, profiles=_profiles(tuple(job.profiles.items())))


@lru_cache(maxsize=_NODE_LISTS)
def _nodes(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


@lru_cache(maxsize=_PROFILES)
def _profiles(profiles: tuple[tuple[str, core.Profile], ...]) -> Mapping[str, core.Profile]:
    return dict(profiles)
