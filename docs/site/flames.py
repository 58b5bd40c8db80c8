"""Draw where processes spend their time, as flame graphs: a box is a function, as wide as its share of the samples, on
the one that called it.

    python docs/site/flames.py [FOLDER [OUT]]
    python docs/site/flames.py --keep RAW FILE TITLE

Reads FOLDER/*.txt (default: docs/recorded/profiles), each with a title after `# ` and folded stacks (`caller;called
COUNT`), and writes OUT/profile-NAME.svg (default: docs/images). `--keep` makes such a file of what py-spy wrote with
`--format raw`.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from drawing import COLOURS, figure_in
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

DOCS: Final = Path(__file__).parents[1]
_RECORDS: Final = DOCS / "recorded" / "profiles"
_LEAST: Final = 0.004
"""The part of all samples below which a function is not kept by itself: its time stays with its caller."""
_MACHINERY: Final = (
    "asyncio/",
    "uvloop/",
    "threading.py",
    "concurrent/futures",
    "<frozen",
    "runpy.py",
    "multiprocessing/",
)
_PART_PER_LETTER: Final = 0.0085


@dataclass
class Frame:
    """A function where it was called from: samples in it or in what it called."""

    samples: int = 0
    called: "dict[str, Frame]" = field(default_factory=dict)

    def add(self, stack: Iterable[str], samples: int) -> None:
        """Count a stack, the outermost function first."""
        self.samples += samples
        frame = self
        for name in stack:
            frame = frame.called.setdefault(name, Frame())
            frame.samples += samples


def read(lines: Iterable[str]) -> Frame:
    """The frames of folded stacks. Raises ValueError for a line without a count."""
    root = Frame()
    for line in lines:
        stack, _, samples = line.rstrip().rpartition(" ")
        root.add(stack.split(";"), int(samples))
    return root


def folded(raw: Iterable[str]) -> list[str]:
    """Stacks of py-spy without what runs every Python program, and without what is too small to be seen."""
    root = Frame()
    for line in raw:
        stack, _, samples = line.rstrip().rpartition(" ")
        root.add([_name(frame) for frame in stack.split(";") if _counts(frame)], int(samples))
    kept: Counter[str] = Counter()
    for path, own in _kept(root, [], root.samples * _LEAST):
        kept[";".join(path)] += own
    return [f"{stack} {samples}" for stack, samples in sorted(kept.items()) if stack]


def _kept(frame: Frame, path: list[str], least: float) -> Iterator[tuple[list[str], int]]:
    own = frame.samples
    for name, called in frame.called.items():
        if called.samples >= least:
            own -= called.samples
            yield from _kept(called, [*path, name], least)
    if own:
        yield path, own


def _counts(frame: str) -> bool:
    return not frame.startswith(("process ", "thread ", "MainThread")) and not any(part in frame for part in _MACHINERY)


def _name(frame: str) -> str:
    """`function (package/module)` of py-spy's `function (path/package/module.py:line)`."""
    function, _, place = frame.partition(" (")
    file = place.rstrip(")").split(":")[0].split("site-packages/")[-1].removesuffix(".py")
    ours = file.find("synergy_")
    return f"{function} ({file[ours:] if ours >= 0 else '/'.join(file.split('/')[-2:])})"


def draw(root: Frame, title: str, out: Path) -> None:
    """Write the graph."""
    depth = _depth(root)
    with figure_in(out, width=10.0, height=0.6 + 0.19 * depth) as figure:
        axes = figure.subplots()
        axes.set_title(title, fontsize=9)
        _boxes(axes, root, left=0.0, level=0, total=root.samples)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, depth)
        axes.set_axis_off()


def _depth(frame: Frame) -> int:
    return max((1 + _depth(called) for called in frame.called.values()), default=0)


def _boxes(axes: Axes, frame: Frame, *, left: float, level: int, total: int) -> None:
    for name, called in sorted(frame.called.items(), key=lambda item: -item[1].samples):
        width = called.samples / total
        axes.add_patch(Rectangle((left, level), width, 0.94, facecolor=_colour(name), edgecolor="white", linewidth=0.4))
        letters = int(width / _PART_PER_LETTER)
        if letters >= 4:
            shown = name if len(name) <= letters else f"{name[: letters - 1]}…"
            axes.text(left + 0.002, level + 0.45, shown, fontsize=6, va="center", color="black", clip_on=True)
        _boxes(axes, called, left=left, level=level + 1, total=total)
        left += width


def _colour(name: str) -> str:
    """One for the project's own functions, another for those of libraries."""
    return f"{COLOURS[0] if 'synergy' in name else COLOURS[1]}66"


def main(arguments: list[str]) -> None:
    """By the command line."""
    if arguments[:1] == ["--keep"]:
        _, raw, kept, title = arguments
        lines = folded(Path(raw).read_text(encoding="utf-8").splitlines())
        Path(kept).write_text("\n".join((f"# {title}", *lines)) + "\n", encoding="utf-8")
        return
    folder = Path(arguments[0]) if arguments else _RECORDS
    out = Path(arguments[1]) if len(arguments) > 1 else DOCS / "images"
    for file in sorted(folder.glob("*.txt")):
        first, *lines = file.read_text(encoding="utf-8").splitlines()
        draw(read(lines), first.removeprefix("# "), out / f"profile-{file.stem}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
