"""Who was on which GPU, round by round, as SVG."""

import math
import zlib
from html import escape

from synergy_simulator.engine.outcome import Segment
from synergy_simulator.report.summary import Summary

_WIDTH, _LEFT, _LANE, _BOTTOM = 720, 90, 5, 34
_MOST_LANES = 256


def gantt(summary: Summary) -> str:
    """A lane per GPU, nodes one below the other; a vertical line where a round begins."""
    first, last = summary.window
    if last <= first:
        return ""
    shown = [(name, gpus) for name, gpus in summary.nodes]
    while sum(gpus for _, gpus in shown) > _MOST_LANES and len(shown) > 1:
        shown.pop()
    tops, lanes = {}, 0
    for name, gpus in shown:
        tops[name] = lanes
        lanes += gpus
    scale = (_WIDTH - _LEFT) / (last - first)
    height = lanes * _LANE
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height + _BOTTOM}" role="img" aria-label="Gantt of {escape(summary.label)}">'
    ]
    for name, gpus in shown:
        at = tops[name] * _LANE
        parts.append(f'<line class="grid" x1="0" y1="{at}" x2="{_WIDTH}" y2="{at}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + gpus * _LANE / 2 + 4}" text-anchor="end">{escape(name)}</text>')
    for segment, lane in _lanes([one for one in summary.segments if one.node in tops]):
        x, y = _LEFT + (segment.start - first) * scale, (tops[segment.node] + lane) * _LANE
        width, tall = (segment.end - segment.start) * scale, segment.gpus * _LANE
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.2f}" height="{tall}" fill="{_colour(segment.job)}">'
            f"<title>{escape(segment.job)} on {escape(segment.node)}, {segment.gpus} GPUs</title></rect>"
        )
    for index in range(math.floor((last - first) / summary.round_s) + 1):
        x = _LEFT + index * summary.round_s * scale
        parts.append(f'<line class="round" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height}"/>')
    hours = f"hours {first / 3600:.1f} to {last / 3600:.1f}, a line at each round's beginning"
    parts.append(f'<text x="{_WIDTH / 2}" y="{height + 20}" text-anchor="middle">{hours}</text></svg>')
    left_out = len(summary.nodes) - len(shown)
    note = f"<p>{left_out} more nodes are left out.</p>" if left_out else ""
    return "".join(parts) + note


def _lanes(segments: list[Segment]) -> list[tuple[Segment, int]]:
    """Each segment with the first lane of its node that is free for all its GPUs."""
    free_from: dict[str, list[float]] = {}
    placed = []
    for segment in sorted(segments, key=lambda one: (one.start, one.node, one.job)):
        lanes = free_from.setdefault(segment.node, [])
        lane = 0
        while any(until > segment.start + 1e-9 for until in lanes[lane : lane + segment.gpus]):
            lane += 1
        lanes.extend([0.0] * (lane + segment.gpus - len(lanes)))
        lanes[lane : lane + segment.gpus] = [segment.end] * segment.gpus
        placed.append((segment, lane))
    return placed


def _colour(job: str) -> str:
    """A colour that stays with the job in every report."""
    return f"hsl({zlib.crc32(job.encode()) % 360} 60% 60%)"
