"""Jobs that a linear programme cannot tell apart, merged: the same optimum from a far smaller programme.

A partition of jobs (and with them of activities) into classes is *equitable* when all jobs of a class have the same
numbers in the programme, and take part in equally many activities of each class of activities. Then:

* From a solution X of the programme, average the time over the activities of each class. Every constraint and the
  objective keep their values averaged over a class of jobs, because each job of the class takes part in as many
  activities of each class as the others do. So the average is feasible, and as good, the programme being linear.
* So there is an optimum that is constant on classes. The merged programme has one column for each class of activities
  (its total time) and one row for each class of jobs; its solutions are exactly those constant ones. Time is dealt out
  again evenly: total / size of the class.

This is the reduction by colour refinement of Grohe, Kersting, Mladenov and Selman (ESA 2014). The coarsest equitable
partition is found by refinement: start from the jobs' own numbers, and split classes by what their jobs' pairs look
like until nothing splits. Signatures are 64-bit hashes; that the outcome is equitable is then checked without hashes,
and where it were not, nothing is merged.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.programme.activities import Activities

_Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The merged programme's jobs and activities."""

    job_class: Ints
    """J: class of each job."""
    members: Floats
    """G: jobs in each class."""
    representative: Ints
    """G: one job of each class."""
    activities: Activities
    """M; `first` and `second` are classes, equal for a pair within one class. `row` means nothing here."""
    activity_class: Ints
    """N: class of each activity."""
    sizes: Floats
    """M: activities in each class."""

    def spread(self, time: Floats) -> Floats:
        """Time of each activity (N), from that of each class (M)."""
        return np.asarray(time / self.sizes)[self.activity_class]


def merge(acts: Activities, keys: Floats) -> Merged:
    """Merge jobs with equal rows of `keys` (J x K: all that the programme knows of a job but its activities)."""
    if acts.alone == len(acts):
        return _merged_alone(acts, keys)
    job_class = _numbered(_hash_rows(keys))
    if job_class.max(initial=-1) + 1 == len(keys):
        return apart(acts, len(keys))
    first, second = acts.first, acts.second
    paired = np.arange(len(acts)) >= acts.alone
    numbers = np.stack([acts.column.astype(float), acts.scale, acts.first_rate, acts.second_rate], axis=1)
    forth, back = _hash_rows(numbers), _hash_rows(numbers[:, [0, 1, 3, 2]])
    while True:
        signature = _mix(job_class.astype(np.uint64))
        np.add.at(signature, first, _mix(forth ^ np.where(paired, _mix(job_class[second].astype(np.uint64)), 0)))
        np.add.at(signature, second[paired], _mix(back[paired] ^ _mix(job_class[first[paired]].astype(np.uint64))))
        refined = _numbered(_mix(signature))
        same = refined.max(initial=-1) == job_class.max(initial=-1)
        job_class = refined
        if same:
            break
    merged = _merged(acts, job_class, forth, back, paired)
    if _is_equitable(acts, keys, merged):
        return merged
    return apart(acts, len(keys))


def apart(acts: Activities, jobs: int) -> Merged:
    """Nothing merged: each job and each activity is a class."""
    each = np.arange(jobs)
    return Merged(
        job_class=each,
        members=np.ones(jobs),
        representative=each,
        activities=acts,
        activity_class=np.arange(len(acts)),
        sizes=np.ones(len(acts)),
    )


def _merged_alone(acts: Activities, keys: Floats) -> Merged:
    """Without pairs nothing follows from other jobs' classes: jobs with equal numbers are a class, by their bits."""
    jobs, numbers = len(keys), keys.shape[1]
    rows = np.zeros((jobs, numbers + 1 + int(acts.column.max(initial=-1)) + 1))
    rows[:, :numbers] = keys
    rows[acts.first, numbers] = acts.scale
    rows[acts.first, numbers + 1 + acts.column] = acts.first_rate
    rows += 0.0  # makes one zero of two
    bits, width = rows.tobytes(), rows.itemsize * rows.shape[1]
    known: dict[bytes, int] = {}
    classes = [known.setdefault(bits[at : at + width], len(known)) for at in range(0, jobs * width, width)]
    if len(known) == jobs:
        return apart(acts, jobs)
    job_class = np.array(classes, dtype=np.int64)
    representative = np.zeros(len(known), dtype=np.int64)
    representative[job_class[::-1]] = np.arange(jobs - 1, -1, -1)  # the last one that is written stays: the first job
    begins = np.searchsorted(acts.first, np.arange(jobs))
    of_class = np.isin(acts.first, representative)
    first_of_class: Ints = np.cumsum(of_class) - of_class
    activity_class: Ints = first_of_class[begins[representative]][job_class[acts.first]]
    activity_class += np.arange(len(acts)) - begins[acts.first]
    first, members = job_class[acts.first[of_class]], np.bincount(job_class).astype(float)
    return Merged(
        job_class=job_class,
        members=members,
        representative=representative,
        activities=Activities(
            row=acts.row[of_class],
            column=acts.column[of_class],
            type_=acts.type_[of_class],
            scale=acts.scale[of_class],
            first=first,
            second=first,
            first_rate=acts.first_rate[of_class],
            second_rate=acts.second_rate[of_class],
            alone=len(first),
        ),
        activity_class=activity_class,
        sizes=members[first],
    )


def _merged(acts: Activities, job_class: Ints, forth: _Hashes, back: _Hashes, paired: Mask) -> Merged:
    one, other = job_class[acts.first], job_class[acts.second]
    turned = paired & ((one > other) | ((one == other) & (forth > back)))
    low, high = np.where(turned, other, one), np.where(turned, one, other)
    first_rate = np.where(turned, acts.second_rate, acts.first_rate)
    second_rate = np.where(turned, acts.first_rate, acts.second_rate)
    look = np.where(turned, back, forth)
    ends = _mix(low.astype(np.uint64)) + np.uint64(3) * _mix(high.astype(np.uint64)) + paired.astype(np.uint64)
    activity_class = _numbered(_mix(look ^ _mix(ends)))
    chosen = np.unique(activity_class, return_index=True)[1]
    return Merged(
        job_class=job_class,
        members=np.bincount(job_class).astype(float),
        representative=np.unique(job_class, return_index=True)[1],
        activities=Activities(
            row=acts.row[chosen],
            column=acts.column[chosen],
            type_=acts.type_[chosen],
            scale=acts.scale[chosen],
            first=low[chosen],
            second=high[chosen],
            first_rate=first_rate[chosen],
            second_rate=second_rate[chosen],
            alone=int((chosen < acts.alone).sum()),
        ),
        activity_class=activity_class,
        sizes=np.bincount(activity_class).astype(float),
    )


def _is_equitable(acts: Activities, keys: Floats, merged: Merged) -> bool:
    """Whether classes are what `merge` takes them for, without trust in any hash."""
    if not np.array_equal(keys, keys[merged.representative][merged.job_class]):
        return False
    of, look = merged.activity_class, merged.activities
    one, other = merged.job_class[acts.first], merged.job_class[acts.second]
    paired = np.arange(len(acts)) >= acts.alone
    same = (
        (look.column[of] == acts.column)
        & (look.scale[of] == acts.scale)
        & ((np.arange(len(look)) >= look.alone)[of] == paired)
    )
    straight = _equal(look, of, (one, other), (acts.first_rate, acts.second_rate))
    turned = paired & _equal(look, of, (other, one), (acts.second_rate, acts.first_rate))
    if not (same & (straight | turned)).all():
        return False
    return _is_even(acts, merged, straight, paired)


def _is_even(acts: Activities, merged: Merged, straight: Mask, paired: Mask) -> bool:
    """Whether the jobs of a class are in equally many activities of each class, counted for either end of a pair."""
    of, look = merged.activity_class, merged.activities
    alike = (look.first == look.second) & (look.first_rate == look.second_rate)
    ends = np.concatenate([2 * of, (2 * of + np.where(alike, 0, 1)[of])[paired]])
    jobs = np.concatenate(
        [np.where(straight, acts.first, acts.second), np.where(straight, acts.second, acts.first)[paired]]
    )
    kinds = 2 * len(look)
    met, times = np.unique(jobs * kinds + ends, return_counts=True)
    group = merged.job_class[met // kinds]
    which, inverse, there = np.unique(
        (met % kinds) * len(merged.members) + group, return_inverse=True, return_counts=True
    )
    usual = np.zeros(len(which), dtype=times.dtype)
    usual[inverse] = times
    return bool(
        np.array_equal(usual[inverse], times) and np.array_equal(there, merged.members[which % len(merged.members)])
    )


def _equal(look: Activities, of: Ints, ends: tuple[Ints, Ints], rates: tuple[Floats, Floats]) -> Mask:
    same: Mask = (
        (look.first[of] == ends[0])
        & (look.second[of] == ends[1])
        & (look.first_rate[of] == rates[0])
        & (look.second_rate[of] == rates[1])
    )
    return same


def _numbered(hashes: _Hashes) -> Ints:
    """Classes of equal hashes, numbered in the order in which they first occur."""
    _, start, which = np.unique(hashes, return_index=True, return_inverse=True)
    rank = np.empty(len(start), dtype=np.int64)
    rank[np.argsort(start)] = np.arange(len(start))
    return rank[which.ravel()]


def _hash_rows(rows: Floats) -> _Hashes:
    """A hash of each row of a matrix, by the bits of its numbers."""
    hashes = np.full(len(rows), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in range(rows.shape[1]):
        bits = np.ascontiguousarray(rows[:, column] + 0.0).view(np.uint64)  # + 0.0 makes one zero of two
        hashes = _mix(hashes + _mix(bits))
    return hashes


def _mix(values: _Hashes) -> _Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that spreads every bit."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
