"""Which job was on which GPU, round by round, as data."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synergy_simulator.engine.outcome import Segment
from synergy_simulator.report.chart import shortened
from synergy_simulator.report.csv_text import csv_text
from synergy_simulator.report.styles import COLOURS, Style
from synergy_simulator.report.summary import Summary

_MOST_LANES: Final = 256
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Box:
    """A stretch of time of a job on neighbouring lanes of a node."""

    segment: Segment
    lane: int
    """The first one, counted from the node's first."""
    lanes: int


@dataclass(frozen=True, slots=True)
class Gantt:
    """A lane per GPU, nodes one below the other; a vertical line where a round begins."""

    summary: Summary

    @property
    def heading(self) -> str:
        """The time and the simulation that it is about."""
        first, last = self.summary.window
        hours = f"hours {first / _HOUR:.1f} to {last / _HOUR:.1f}"
        return f"Which job ran where, around the longest queue ({hours}): {self.summary.label}"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """No series: a job has its colour by its name."""
        return []

    @property
    def shown(self) -> list[tuple[str, int]]:
        """Names and GPUs of the first nodes, at most 256 GPUs, at least one node."""
        nodes = list(self.summary.nodes)
        while sum(gpus for _, gpus in nodes) > _MOST_LANES and len(nodes) > 1:
            nodes.pop()
        return nodes

    @property
    def note(self) -> str:
        """What is not drawn."""
        left_out = len(self.summary.nodes) - len(self.shown)
        return f"{left_out} more nodes are left out." if left_out else ""

    def boxes(self) -> dict[str, list[Box]]:
        """What is drawn, by node."""
        found: dict[str, list[Box]] = {name: [] for name, _ in self.shown}
        for box in _boxes([one for one in self.summary.segments if one.node in found]):
            found[box.segment.node].append(box)
        return found

    def document(self, _styles: Mapping[str, Style]) -> dict[str, Any]:
        """What the page's script draws; a job has its colour by its name, in every report."""
        jobs = sorted({one.job for one in self.summary.segments})
        number = {job: index for index, job in enumerate(jobs)}
        first, last = self.summary.window
        rounds = math.floor((last - first) / self.summary.round_s) + 1
        nodes, drawn, top = [], [], 0
        for (name, gpus), boxes in zip(self.shown, self.boxes().values(), strict=True):
            lanes = max([gpus, *(box.lane + box.lanes for box in boxes)])  # more where jobs share a GPU
            nodes.append([name, lanes])
            drawn += [
                [number[box.segment.job], top + box.lane, box.lanes, _hours(box.segment.start), _hours(box.segment.end)]
                for box in boxes
            ]
            top += lanes
        return {
            "kind": "gantt",
            "x": "hours",
            "window": [_hours(first), _hours(last)],
            "rounds": [_hours(first + index * self.summary.round_s) for index in range(rounds)],
            "nodes": nodes,
            "jobs": jobs,
            "colours": [zlib.crc32(job.encode()) % COLOURS for job in jobs],
            "boxes": drawn,
        }

    def csv(self) -> str:
        """A row for each box."""
        boxes = [box for of_node in self.boxes().values() for box in of_node]
        rows = [
            (box.segment.job, box.segment.node, box.lane, box.lanes, box.segment.start, box.segment.end)
            for box in boxes
        ]
        return csv_text(("job", "node", "lane", "lanes", "start_s", "end_s"), rows)


def _hours(seconds: float) -> float:
    return shortened(seconds / _HOUR)


def _boxes(segments: Sequence[Segment]) -> list[Box]:
    """Each segment on the first free lanes of its node, a box for each that are neighbours."""
    free_from: dict[str, list[float]] = {}
    found = []
    for segment in sorted(segments, key=lambda one: (one.start, one.node, one.job)):
        lanes = free_from.setdefault(segment.node, [])
        free = [lane for lane, until in enumerate(lanes) if until <= segment.start + 1e-9][: segment.gpus]
        free += range(len(lanes), len(lanes) + segment.gpus - len(free))
        lanes.extend([0.0] * (free[-1] + 1 - len(lanes)))
        first = free[0]
        for lane, following in zip(free, [*free[1:], -1], strict=True):
            lanes[lane] = segment.end
            if following != lane + 1:
                found.append(Box(segment, first, lane + 1 - first))
                first = following
    return found
