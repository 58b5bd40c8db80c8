"""Line charts as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
_WIDTH, _HEIGHT = 720, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48


@dataclass(frozen=True, slots=True)
class Line:
    """A named line through points (x, y)."""

    label: str
    points: Sequence[tuple[float, float]]


def colour(index: int) -> str:
    """The colour of the index-th line."""
    return COLOURS[index % len(COLOURS)]


def line_chart(lines: Sequence[Line], *, title: str, x: str, y: str, log_x: bool = False, top: float = 0.0) -> str:
    """An SVG of the lines with axes. `top` is the least that the y axis reaches."""
    drawn = [line for line in lines if line.points]
    if not drawn:
        return f"<p>{escape(title)}: nothing to show</p>"
    axis = _Axis([at for line in drawn for at, _ in line.points], log=log_x)
    most = max(top, *(value for line in drawn for _, value in line.points)) or 1.0
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts += [f'<text class="title" x="{_LEFT}" y="12">{escape(title)}</text>']
    parts += _grid(axis, most, x, y)
    for index, line in enumerate(lines):
        path = " ".join(f"{axis.place(at):.1f},{_height(value, most):.1f}" for at, value in line.points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour(index)}" stroke-width="1.5">'
            f"<title>{escape(line.label)}</title></polyline>"
        )
    return "".join([*parts, "</svg>"])


class _Axis:
    """Where values lie on the x axis."""

    def __init__(self, values: Sequence[float], *, log: bool) -> None:
        self._log = log
        low, high = min(values), max(values)
        if log:
            low = max(low, 1e-3)
            high = max(high, low * 10)
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        elif high <= low:
            high = low + 1
        self._low, self._high = low, high

    def place(self, value: float) -> float:
        low, high = self._low, self._high
        if self._log:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, self._low))
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        if self._log:
            first, last = round(math.log10(self._low)), round(math.log10(self._high))
            return [10.0**power for power in range(first, last + 1)]
        return ticks(self._low, self._high)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two values, about six."""
    step = 10 ** math.floor(math.log10((high - low) / 5))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= 7:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _height(value: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - value / most * (_HEIGHT - _TOP - _BOTTOM)


def _grid(axis: _Axis, most: float, x: str, y: str) -> list[str]:
    parts = []
    for value in ticks(0.0, most):
        at = _height(value, most)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in axis.ticks():
        at, base = axis.place(value), _HEIGHT - _BOTTOM
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{base}"/>')
        parts.append(f'<text x="{at:.1f}" y="{base + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x)}</text>')
    middle = (_HEIGHT - _BOTTOM) / 2
    parts.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(y)}</text>')
    return parts
