"""The jobs of a day: many around noon, few at night; each team has its own hours."""

import math
import random

from support.shared_day.size import TYPES, Size
from synergy_core.model.snapshot import Profile
from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile
from synergy_simulator.inputs.traces import TraceJob

_MODELS = {
    "images": {"day-v100": 12.0, "day-p100": 9.0, "day-k80": 6.0},
    "language": {"day-v100": 20.0, "day-p100": 14.0, "day-k80": 8.0},
    "tables": {"day-v100": 30.0, "day-p100": 28.0, "day-k80": 20.0},
}
"""Steps per second of a job, whose batch grows with its GPUs. The slowest type has at least two fifths of the speed of
the fastest: a day has to end soon after its last job has come."""
_LONGEST = 3.0


def _profile(model: str, gpu_type: str, _: int) -> Profile:
    return _PROFILES[model, gpu_type]


_PROFILES = {(model, one): flat_profile(speed) for model, of in _MODELS.items() for one, speed in of.items()}
SPEEDS = ProfileTable(tuple(_MODELS), _profile)


def trace(size: Size, begin: float) -> list[TraceJob]:
    """The jobs by arrival, the first from `begin` on, Unix time."""
    chance = random.Random(f"shared-day-{size.seed}")
    teams, models = size.teams, sorted(_MODELS)
    most = {team: size.most(team) for team in teams}
    jobs = []
    for index in range(size.jobs):
        team, model = chance.choice(teams), chance.choice(models)
        seconds = size.shortest_s * _LONGEST ** chance.uniform(0.0, 1.0)
        jobs.append(
            TraceJob(
                name=f"job-{index:04}",
                arrival_s=begin + size.day_s * _hour(chance, teams.index(team) / len(teams)),
                gpus=min(most[team], chance.choices(list(size.gpu_mix), list(size.gpu_mix.values()))[0]),
                model=model,
                steps=max(1, round(_MODELS[model][TYPES[0]] * seconds)),
                tenant=team,
                place=InputLocation("a day", index + 1),
            )
        )
    return sorted(jobs, key=lambda job: (job.arrival_s, job.name))


def speeds(job: TraceJob) -> dict[str, float]:
    """Steps per second by GPU type."""
    return _MODELS[job.model or ""]


def _hour(chance: random.Random, shift: float) -> float:
    """When in the day a job comes, 0 to 1: by a density of 1 - cos of the hour, moved for each team by up to a sixth of
    the day."""
    while True:
        hour = chance.random()
        if chance.random() < (1.0 - 0.8 * math.cos(2 * math.pi * (hour - shift / 6))) / 1.8:
            return hour
