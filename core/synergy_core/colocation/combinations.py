"""The pairs of a plan's jobs as rows of the allocation matrix (Gavel, section 3.1).

A pair's throughputs are the parts of their own throughputs that the two keep on one GPU, with CPU and memory counted
(`grouping`). Rows are made only of pairs that can help:

* the two together keep more than one job alone, by at least what sharing must gain;
* neither falls below what its user wants it to keep, or below its fair share.

A job's fair share of a type is that of the homogeneous case: the GPUs there are for each GPU that is wanted. It is less
on a type on which the job is faster than on average: there it may share and still be as fast as with its part of every
type.

Jobs that are alike in all of this form one class, and a pair of classes is computed once. Measurements of two jobs
replace the predictions for their kinds.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np

from synergy_core.colocation.grouping import WORTH, Grouping
from synergy_core.colocation.rules import Rules
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job

_MOST_KNOWN = 100_000
_Each = Mapping[str, tuple[float, float]]
"""By GPU type, what the first and the second of two jobs keep."""


class KnownPairs:
    """What jobs of two kinds keep: found once by a caller, as long as nodes and predictions are the same."""

    def __init__(self) -> None:
        self._basis: Hashable = None
        self._found: dict[tuple[Hashable, Hashable], tuple[tuple[Job, Job], _Each]] = {}

    def begin(self, basis: Hashable) -> None:
        """Begin a plan: all is forgotten where what it follows from has changed."""
        if basis != self._basis or len(self._found) > _MOST_KNOWN:
            self._basis, self._found = basis, {}

    def of(
        self, kinds: tuple[Hashable, Hashable], two: tuple[Job, Job], find: Callable[[tuple[Job, Job]], _Each]
    ) -> _Each:
        """Of two jobs of these kinds; the jobs are kept, so that no others come to have the ids in their kinds."""
        known = self._found.get(kinds)
        if known is None:
            known = self._found[kinds] = two, find(two)
        return known[1]


class Combinations:
    """For one plan."""

    def __init__(self, grouping: Grouping, known: KnownPairs) -> None:
        self._grouping = grouping
        self._rules = grouping.rules
        self._known = known
        known.begin((tuple(grouping.pools.values()), self._rules.basis))

    def gpus(self, jobs: Sequence[Job], gpu_type: str) -> int:
        """GPUs of a type that these jobs could share."""
        pool = self._grouping.pools[gpu_type]
        places = [pool.index[node.name] for node in self._rules.types(jobs).get(gpu_type, ())]
        return sum(pool.gpus[place] for place in places if pool.is_open[place])

    def rows(self, jobs: Sequence[Job], types: Sequence[str], alone: Floats, workers: Floats) -> tuple[Ints, Floats]:
        """Pairs (P x 2, indices of jobs) and their throughputs (P x W x 2); see `policies.queue.Pairs`."""
        able = [index for index, job in enumerate(jobs) if self._rules.anywhere and self._rules.may_share(job)]
        least = self._least(jobs, types)
        fair = self._fair(jobs, types, alone, workers, least)
        kinds, kind_of = _kinds(jobs, able, alone, self._rules)
        of_kinds = self._kept(kinds, types, fair)
        one, other = np.triu_indices(len(able), 1)
        a, b = kind_of[one], kind_of[other]
        some = np.asarray((of_kinds[:, a, b] > 0).any(axis=0))
        chosen = np.array(able, dtype=np.int64)
        pairs = np.stack([chosen[one[some]], chosen[other[some]]], axis=1)
        rates = np.stack([of_kinds[:, a[some], b[some]].T, of_kinds[:, b[some], a[some]].T], axis=2)
        pairs, rates = self._with_measured(jobs, types, pairs, rates, fair)
        # no job is faster beside another than alone, and two share only where both could run alone
        kept = (
            np.minimum(rates, least[pairs].transpose(0, 2, 1)) * np.asarray((alone[pairs] > 0).all(axis=1))[:, :, None]
        )
        return pairs, kept * (alone / least)[pairs].transpose(0, 2, 1)

    def _least(self, jobs: Sequence[Job], types: Sequence[str]) -> Floats:
        """J x W: what each keeps where it does not share (`Grouping.alone`)."""
        return np.array([[self._grouping.alone(job, gpu_type) for gpu_type in types] for job in jobs]).reshape(
            len(jobs), len(types)
        )

    def _fair(
        self, jobs: Sequence[Job], types: Sequence[str], alone: Floats, workers: Floats, least: Floats
    ) -> dict[str, dict[str, float]]:
        """By type and job, the part of its speed there that is its fair share."""
        equal = alone @ (workers / max(1.0, workers.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            of_gpus = np.array([self._grouping.fair(job) for job in jobs])
            part = of_gpus[:, None] * least * np.minimum(1.0, np.where(alone > 0, equal[:, None] / alone, 1.0))
        names = [job.name for job in jobs]
        return {
            gpu_type: dict(zip(names, part[:, column].tolist(), strict=True)) for column, gpu_type in enumerate(types)
        }

    def _kept(
        self,
        kinds: Mapping[Hashable, Sequence[Job]],
        types: Sequence[str],
        fair: Mapping[str, Mapping[str, float]],
    ) -> Floats:
        """W x K x K: what a job of one kind keeps beside one of another; 0 where it is not to be."""
        places = {gpu_type: column for column, gpu_type in enumerate(types)}
        kept = np.zeros((len(types), len(kinds), len(kinds)))
        for (a, (kind, jobs)), (b, (other, partners)) in combinations_with_replacement(enumerate(kinds.items()), 2):
            if a == b and len(jobs) < 2:
                continue
            two = (jobs[0], partners[1 if a == b else 0])
            for gpu_type, each in self._known.of((kind, other), two, self._each).items():
                column = places.get(gpu_type)
                if column is not None and self._helps(two, gpu_type, each, fair[gpu_type]):
                    kept[column, a, b], kept[column, b, a] = each
        return kept

    def _each(self, two: tuple[Job, Job]) -> _Each:
        found = {}
        for gpu_type in self._rules.types(two):
            group = self._grouping.together(two, gpu_type, self._rules.predicted(two, gpu_type))
            if group is not None and self._gains(two, gpu_type, group.each):
                found[gpu_type] = (group.each[0], group.each[1])
        return found

    def _helps(self, two: tuple[Job, Job], gpu_type: str, each: tuple[float, ...], fair: Mapping[str, float]) -> bool:
        bearable = all(self._grouping.bears(job, kept, fair[job.name]) for job, kept in zip(two, each, strict=True))
        return bearable and self._gains(two, gpu_type, each)

    def _gains(self, two: tuple[Job, Job], gpu_type: str, each: tuple[float, ...]) -> bool:
        return sum(each) > max(self._grouping.alone(job, gpu_type) for job in two) + WORTH

    def _with_measured(
        self,
        jobs: Sequence[Job],
        types: Sequence[str],
        pairs: Ints,
        rates: Floats,
        fair: Mapping[str, Mapping[str, float]],
    ) -> tuple[Ints, Floats]:
        """What was measured of two jobs in place of what is predicted; the pairs in order."""
        place = {job.name: index for index, job in enumerate(jobs)}
        known = sorted(
            {
                (*sorted((place[job.name], place[seen.partners[0]])), types.index(seen.gpu_type))
                for job in jobs
                for seen in job.shared
                if len(seen.partners) == 1 and seen.partners[0] in place and seen.gpu_type in types
            }
        )
        if known:
            rows = {(first, second): row for row, (first, second) in enumerate(pairs.tolist())}
            new = dict.fromkeys((first, second) for first, second, _ in known if (first, second) not in rows)
            rows |= {pair: len(pairs) + extra for extra, pair in enumerate(new)}
            pairs = np.concatenate([pairs, np.array(list(new), dtype=np.int64).reshape(-1, 2)])
            rates = np.concatenate([rates, np.zeros((len(new), len(types), 2))])
            for first, second, column in known:
                two, gpu_type = (jobs[first], jobs[second]), types[column]
                group = self._grouping.together(two, gpu_type)
                helps = group is not None and self._helps(two, gpu_type, group.each, fair[gpu_type])
                rates[rows[first, second], column] = group.each if group is not None and helps else 0.0
            some = rates.any(axis=(1, 2))
            pairs, rates = pairs[some], rates[some]
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return pairs[order], rates[order]


def _kinds(
    jobs: Sequence[Job], able: Sequence[int], alone: Floats, rules: Rules
) -> tuple[dict[Hashable, list[Job]], Ints]:
    """The jobs of each kind, and the number of the kind of each job that is able to share."""
    kinds: dict[Hashable, list[Job]] = {}
    numbers: dict[Hashable, int] = {}
    of: list[int] = []
    for index in able:
        job = jobs[index]
        kind = (
            id(job.profiles),
            tuple(sorted(job.measured)),
            tuple(sorted(job.usage.items())),
            job.tenant,
            job.sharing_across_tenants,
            job.min_throughput_fraction,
            job.gpu_types,
            rules.shared_types(job),
            job.nodes,
            (job.cpu_millis_min, job.cpu_millis_max, job.memory_bytes_min, job.memory_bytes_max),
            alone[index].tobytes(),
        )
        kinds.setdefault(kind, []).append(job)
        of.append(numbers.setdefault(kind, len(numbers)))
    return kinds, np.array(of, dtype=np.int64)
