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

Of very many jobs that could share, only some have rows in pairs (`_considered`): memory grows with the square of their
number. The others have their rows alone.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from synergy_core.colocation.grouping import WORTH, Grouping
from synergy_core.colocation.kinds.kind import kinds_of
from synergy_core.colocation.kinds.known_pairs import KnownKind, KnownPairs
from synergy_core.colocation.kinds.members import terms_of
from synergy_core.colocation.kinds.pairs_on_type import PairsOnType
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job

_MOST_CONSIDERED = 1500
"""Jobs. They have up to 1.1 million pairs, and a plan with these takes 0.8 GB."""


class Combinations:
    """For one plan."""

    def __init__(self, grouping: Grouping, known: KnownPairs) -> None:
        self._grouping = grouping
        self._rules = grouping.rules
        self._known = known
        known.begin(grouping.basis, self._rules.basis)

    def gpus(self, jobs: Sequence[Job], gpu_type: str) -> int:
        """GPUs of a type that these jobs could share."""
        pool = self._grouping.pools[gpu_type]
        places = [pool.index[node.name] for node in self._rules.types(jobs).get(gpu_type, ())]
        return sum(pool.gpus[place] for place in places if pool.is_open[place])

    def rows(self, jobs: Sequence[Job], types: Sequence[str], alone: Floats, workers: Floats) -> tuple[Ints, Floats]:
        """Pairs (P x 2, indices of jobs) and their throughputs (P x W x 2); see `policies.queue.Pairs`."""
        able = _considered(
            jobs,
            [index for index, job in enumerate(jobs) if self._rules.may_share(job) and self._rules.shared_types(job)],
        )
        least = self._least(jobs, types)
        fair = self._fair(jobs, types, alone, workers, least)
        kinds, kind_of = kinds_of(jobs, able, alone, self._rules)
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
        self, kinds: Mapping[Hashable, Job], types: Sequence[str], fair: Mapping[str, Mapping[str, float]]
    ) -> Floats:
        """W x K x K: what a job of one kind keeps beside one of another; 0 where it is not to be."""
        kept = np.zeros((len(types), len(kinds), len(kinds)))
        known = list(zip(kinds.values(), self._known.ask(kinds), strict=True))
        for column, gpu_type in enumerate(types):
            numbers = [number for number, (job, _) in enumerate(known) if gpu_type in self._rules.shared_types(job)]
            if numbers:
                sharing = [known[number] for number in numbers]
                each = self._known.kept([kind for _, kind in sharing], gpu_type, self._find(sharing, gpu_type))
                least = np.array([self._grouping.least(job, fair[gpu_type][job.name]) for job, _ in sharing])
                bearable = (each >= least[:, None]) & (least <= each.T)
                kept[column][np.ix_(numbers, numbers)] = np.where(bearable, each, 0.0)
        return kept

    def _find(self, kinds: Sequence[tuple[Job, KnownKind]], gpu_type: str) -> Callable[[Ints], Floats]:
        """What two jobs of these kinds keep on the type; see `KnownPairs.kept`."""

        def find(two: Ints) -> Floats:
            for job, kind in kinds:
                if gpu_type not in kind.terms:
                    kind.terms[gpu_type] = terms_of(self._grouping.member(job, gpu_type), gpu_type)
            terms = [kind.terms[gpu_type] for _, kind in kinds]
            return PairsOnType(self._grouping, gpu_type, [job for job, _ in kinds], terms).kept(two)

        return find

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
        """What was measured of two jobs in place of what is predicted; the pairs are in order, before and after."""
        place = {job.name: index for index, job in enumerate(jobs)}
        known = sorted(
            {
                (*sorted((place[job.name], place[seen.partners[0]])), types.index(seen.gpu_type))
                for job in jobs
                for seen in job.shared
                if len(seen.partners) == 1 and seen.partners[0] in place and seen.gpu_type in types
            }
        )
        if not known:
            return pairs, rates
        asked = np.array(known, dtype=np.int64)
        numbers, of_asked = (two[:, 0] * len(jobs) + two[:, 1] for two in (pairs, asked))
        every = np.union1d(numbers, of_asked)
        found = np.zeros((len(every), len(types), 2))
        found[np.searchsorted(every, numbers)] = rates
        for (first, second, column), row in zip(known, np.searchsorted(every, of_asked).tolist(), strict=True):
            two, gpu_type = (jobs[first], jobs[second]), types[column]
            group = self._grouping.together(two, gpu_type)
            helps = group is not None and self._helps(two, gpu_type, group.each, fair[gpu_type])
            found[row, column] = group.each if group is not None and helps else 0.0
        some = found.any(axis=(1, 2))
        return np.stack(np.divmod(every[some], len(jobs)), axis=1), found[some]


def _considered(jobs: Sequence[Job], able: Sequence[int]) -> Sequence[int]:
    """The jobs of which pairs are made, as indices in order: all that are able to share, or the first of very many.

    Jobs that share a GPU now come first, so that no pair ends for its place here, then others that run, then those that
    wait. In each of these groups tenants take turns, each with its oldest job."""
    if len(able) <= _MOST_CONSIDERED:
        return able
    turns: Counter[tuple[int, str]] = Counter()
    order: dict[int, tuple[int, int]] = {}
    for index in sorted(able, key=lambda index: (jobs[index].arrival_s, jobs[index].name)):
        running, tenant = jobs[index].running, jobs[index].tenant
        group = 2 if running is None else 0 if running.partners else 1
        order[index] = group, turns[group, tenant]
        turns[group, tenant] += 1
    return sorted(sorted(order, key=order.__getitem__)[:_MOST_CONSIDERED])
