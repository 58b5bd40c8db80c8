"""`python -m support.mutants PACKAGE`: flip each operator of a package, and see which tests notice."""

import argparse
import os
import random
import time
from collections.abc import Iterator
from math import inf

from support.mutants.changes import Mutant, mutants
from support.mutants.packages import ROOT, Component, own_tests, package_of
from support.mutants.reach import Reach, measured
from support.mutants.results import Result, Results, report
from support.mutants.trial import Outcome, Trial, preload, start

STORE = ROOT / ".mutants"
SPARE_S = 20.0
"""CPU time that a run may take beyond the tests themselves, for imports."""
SLOWER = 5.0
"""How many times as long as before a mutant's tests may take."""


def main() -> None:
    """Judge the mutants and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "package", help="a folder or file of a component (extender/decisions) or the core (policies/rounds)"
    )
    parser.add_argument("--draw", type=int, help="judge this many mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--near", action="store_true", help="only by the unit tests in the folder of the package")
    parser.add_argument("--within", type=float, default=inf, help="seconds: leave out the slowest tests of a mutant")
    options = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "CI": "1"}
    preload()
    package = package_of(options.package)
    chosen = [mutant for file in package.files() for mutant in mutants(file)]
    tests = package.own_tests if options.near else package.component.tests
    reach = measured(package.component, STORE / f"reach-{package.component.name}.json", tests)
    if options.draw is not None and options.draw < len(chosen):
        chosen = random.Random(options.seed).sample(chosen, options.draw)
        chosen.sort(key=lambda mutant: (mutant.path, mutant.line, mutant.column))
    results = Results(STORE / f"{package.name}.jsonl")
    work = [(mutant, _groups(package.component, mutant, reach, options.within)) for mutant in chosen]
    print(report(_judged(work, reach, results, options.processes)))


def _judged(
    work: list[tuple[Mutant, list[list[str]]]], reach: Reach, results: Results, processes: int
) -> Iterator[tuple[Mutant, Result]]:
    """Each mutant, given with the groups of tests that it meets, with its end; several are judged at a time."""
    waiting = list(reversed(work))
    under_way: list[_Trials] = []
    done = 0
    while waiting or under_way:
        while waiting and len(under_way) < processes:
            mutant, groups = waiting.pop()
            digest = reach.digest([test for group in groups for test in group]) if any(groups) else ""
            if (known := results.of(mutant, digest)) is not None:
                done += 1
                yield mutant, known
                continue
            under_way.append(_Trials(mutant, groups, reach, digest))
        time.sleep(0.02)
        for trials in list(under_way):
            if (result := trials.result()) is not None:
                under_way.remove(trials)
                results.add(result)
                done += 1
                print(f"{done}/{len(work)} {result.outcome} {result.key}", flush=True)
                yield trials.mutant, result


def _groups(component: Component, mutant: Mutant, reach: Reach, within_s: float) -> list[list[str]]:
    """The tests that can notice the mutant: those in its package's folder, then all others.

    The quickest come first, and of both groups as many as take `within_s` in all.
    """
    prefix = f"{own_tests(component, ROOT / mutant.path).relative_to(ROOT)}/"
    tests = reach.tests(mutant)
    near = [test for test in tests if test.startswith(prefix)]
    far = [test for test in tests if not test.startswith(prefix)]
    left_s = within_s
    groups: list[list[str]] = [[], []]
    for group, candidates in zip(groups, (near, far), strict=True):
        for test in candidates:
            left_s -= reach.seconds[test]
            if left_s >= 0:
                group.append(test)
    return groups


class _Trials:
    """A mutant's runs, one after the other, until one of them kills it."""

    def __init__(self, mutant: Mutant, groups: list[list[str]], reach: Reach, digest: str) -> None:
        self.mutant = mutant
        self._groups = [group for group in groups if group]
        self._reach = reach
        self._digest = digest
        self._trial: Trial | None = None

    def result(self) -> Result | None:
        """The mutant's end, once it is known. Starts the next run where one is needed."""
        if self._trial is None:
            if not self._groups:
                return Result(self.mutant.key, "survived", "", self._digest)
            tests = self._groups.pop(0)
            limit_s = SPARE_S + SLOWER * sum(self._reach.seconds[test] for test in tests)
            self._trial = start(tests, limit_s, self.mutant)
            return None
        if (end := self._trial.outcome()) is None:
            return None
        outcome, failed = end
        self._trial = None
        if outcome == Outcome.PASSED:
            return self.result()
        if outcome == Outcome.INVALID:
            return Result(self.mutant.key, "invalid", "", self._digest)
        return Result(self.mutant.key, "killed", failed or outcome.name.lower(), self._digest)


if __name__ == "__main__":
    main()
