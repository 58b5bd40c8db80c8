"""What a run of the harness came to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """`faults` by kind; steps are those of all jobs; `promises_broken` in words; `notes` for whoever looks into it."""

    seed: int
    faults: Mapping[str, int]
    jobs: int
    finished: int
    steps_lost: int
    steps_doubled: int
    promises_broken: list[str]
    seconds: float
    notes: Mapping[str, object]

    @property
    def good(self) -> bool:
        """Nothing was lost, doubled or broken, and every job finished."""
        whole = self.steps_lost == 0 and self.steps_doubled == 0 and not self.promises_broken
        return whole and self.finished == self.jobs

    def write(self, file: Path) -> None:
        """As one JSON object."""
        file.write_text(self.text() + "\n", encoding="utf-8")

    def text(self) -> str:
        """The JSON."""
        return json.dumps(
            {
                "seed": self.seed,
                "faults": dict(sorted(self.faults.items())),
                "jobs": self.jobs,
                "finished": self.finished,
                "steps_lost": self.steps_lost,
                "steps_doubled": self.steps_doubled,
                "promises_broken": self.promises_broken,
                "seconds": round(self.seconds, 1),
                "notes": self.notes,
            },
            indent=1,
        )
