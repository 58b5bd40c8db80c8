"""The throughputs that can be had where not all can: deadlines on a cluster that is too small for them.

Each job m asks for a throughput a_m. Add a worker type of which there is enough for all jobs, and on which each is as
fast as it asks. Then all throughputs can be had, and time on that type is what a job falls short by:

    minimise  sum_m urgency_m z_m    subject to  throughput(m, X) + a_m z_m >= a_m,  and the constraints on X

z_m also takes of the job's time, which costs no job anything: a job that is never faster than a_m needs 1 - z_m of its
time for the rest. A vertex has few fractions, so most jobs have all they ask for or nothing.
"""

from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policy import setting
from synergy_core.policies.allocation.problem import Problem

_NONE = 1e-7


def reached(problem: Problem, asked: Floats, urgency: Floats, budget: Budget) -> Floats:
    """J: the part of `asked` (J, steps per second; 0: nothing) that each job can have together with all others.

    `asked` is at most a job's throughput on its fastest type, `urgency` (J) above 0. Pairs are not used.
    Of jobs that are alike the first come first. Raises OutOfTimeError.
    """
    jobs, types = len(problem.jobs), len(problem.types)
    beyond = replace(
        problem,
        types=(*problem.types, ""),
        workers=np.append(problem.workers, problem.scale.sum()),
        columns=(*problem.types, "", *problem.columns[types:]),
        column_type=np.insert(problem.column_type, types, types),
        throughputs=np.insert(problem.throughputs, types, asked, axis=1),
        cost=np.append(problem.cost, 0.0),
        bounds=(),
        pairs=np.empty((0, 2), dtype=np.int64),
        pair_throughputs=np.empty((0, len(problem.columns) + 1, 2)),
    )
    asking = asked > 0
    here = setting(beyond, budget, asked, urgency, np.where(asking, np.arange(jobs), -1.0))
    acts = here.programme.acts
    short = np.where(asking, urgency * (1.0 - 1e-3 * np.arange(jobs) / max(1, jobs)), 0.0)
    gain = np.where(acts.type_ == types, -here.of_classes(short)[acts.first], 0.0)
    point = here.programme.solve(base=here.of_classes(asked), gain=gain)
    missing = here.x(point.time)[:jobs, types]
    return np.asarray(np.where(missing > _NONE, 1.0 - missing, 1.0))
