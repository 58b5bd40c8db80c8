"""What became of each mutant: kept in a file, told as text."""

import json
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from support.mutants.changes import Mutant

EQUIVALENT = Path(__file__).parent / "equivalent.toml"


@dataclass(frozen=True, slots=True)
class Result:
    """One mutant's end: `killed`, `survived` or `invalid`, the test that killed it, and the tests it survived."""

    key: str
    outcome: str
    by: str
    tests: str


class Results:
    """A file to which each result is added as it comes, so that a run that was stopped goes on where it was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._by_key: dict[str, Result] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                result = Result(**json.loads(line))
                self._by_key[result.key] = result

    def of(self, mutant: Mutant, tests: str) -> Result | None:
        """The mutant's end, unless it survived tests that have changed since."""
        result = self._by_key.get(mutant.key)
        return result if result and (result.outcome != "survived" or result.tests == tests) else None

    def add(self, result: Result) -> None:
        """Keep a result."""
        self._by_key[result.key] = result
        self._file.parent.mkdir(exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def equivalent() -> dict[tuple[str, str, str], str]:
    """Mutants that no test can kill, by path, line before and line after: why not."""
    entries = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return {(entry["path"], entry["before"], entry["after"]): entry["reason"] for entry in entries}


def report(ends: Iterable[tuple[Mutant, Result]]) -> str:
    """The survivors with file, line and change, then the counts."""
    reasons = equivalent()
    killed, invalid, same, survived = 0, 0, [], []
    for mutant, result in ends:
        if result.outcome == "survived" and (mutant.path, mutant.before, mutant.after) in reasons:
            same.append(mutant)
        elif result.outcome == "survived":
            survived.append((mutant, result))
        else:
            killed += result.outcome == "killed"
            invalid += result.outcome == "invalid"
    lines = []
    for mutant, result in survived:
        unreached = "" if result.tests else "  (no test runs it)"
        lines += [f"survived {mutant.path}:{mutant.line}{unreached}", f"  - {mutant.before}", f"  + {mutant.after}"]
    for mutant in same:
        lines += [f"equivalent {mutant.path}:{mutant.line}", f"  - {mutant.before}", f"  + {mutant.after}"]
        lines += [f"  {reasons[mutant.path, mutant.before, mutant.after]}"]
    judged = killed + len(survived)
    share = f"{killed / judged:.1%}" if judged else "none"
    counts = f"killed {killed} of {judged} ({share}), survived {len(survived)}, equivalent {len(same)}"
    return "\n".join([*lines, f"{counts}, not importable {invalid}"])
