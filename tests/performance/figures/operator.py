"""The operator's reconcile of one job, beside reading and writing the job's JSON."""

import json

from performance.case import Case
from support.operator.world import World
from synergy_operator.job.reconcile import reconcile

_PROFILE = {"mode": "Skip"}


def new_job() -> Case:
    """A job that the operator has not seen: its view, and the first status."""
    return _of(World(profile=_PROFILE))


def running_job() -> Case:
    """A running job on which nothing is to be done."""
    world = World(profile=_PROFILE)
    world.settle()
    world.grant()
    world.run_all()
    assert world.status.phase == "Running"
    return _of(world)


def _of(world: World) -> Case:
    body = json.dumps(world.job)
    return Case(lambda: reconcile(world.observe(), world.now), lambda: json.dumps(json.loads(body)))
