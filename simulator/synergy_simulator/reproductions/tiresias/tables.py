"""Tiresias' tables 1 and 5: policies on a production trace."""

from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.tiresias.common import (
    GPU_HOUR,
    PRODUCTION_NOTE,
    case,
    learned,
    learned_note,
    production,
    relative,
    times,
)

TABLE_1 = {"sf": (1.52, 1.20, 3.45), "srtf": (1.03, 1.01, 1.55)}
"""Average, median and 95th percentile relative to SRSF."""
TABLE_5 = {
    "yarn-cs": (2.41, 30.85, 1.25),
    "best-effort": (1.50, 9.03, 1.08),
    "srtf": (1.00, 1.00, 0.84),
    "2d-gittins": (0.97, 1.00, 0.85),
}
"""The same relative to Tiresias-L."""
LEARNED = "2d-las, learned"
"""Its threshold is not a GPU-hour, as in the paper, but learned from jobs of an earlier trace."""
_HEADER = ("policy", "average", "median", "95th", "the paper's average", "median", "95th")


def table1(inputs: Inputs) -> Findings:
    """One dimension is not enough: fewest GPUs first and shortest first, beside the least GPUs times time first."""
    return _table(inputs, TABLE_1, "srsf", "Table 1: one dimension beside two")


def table5(inputs: Inputs) -> Findings:
    """What knows no durations, beside what knows them and what asks nothing."""
    return _table(inputs, TABLE_5, "2d-las", "Table 5: JCT relative to Tiresias-L in simulation")


def _papers(figures: tuple[float, float, float] | None) -> tuple[str, ...]:
    return ("", "", "") if figures is None else tuple(map(times, figures))


def _table(inputs: Inputs, paper: dict[str, tuple[float, float, float]], base: str, title: str) -> Findings:
    workload = production(inputs)
    names = [base, *paper]
    differs = [PRODUCTION_NOTE]
    cases = [case(name, workload, name, thresholds=(GPU_HOUR,)) for name in names]
    if base == "2d-las":
        thresholds = learned(inputs)
        cases.append(case(LEARNED, workload, base, thresholds=thresholds))
        names.append(LEARNED)
        differs += [
            learned_note(inputs, thresholds),
            "Gandiva is not there: its time slices are not one of the policies here.",
        ]
    summaries = dict(zip(names, inputs.run(cases), strict=True))
    ours = relative(summaries, base)
    rows = [(name, *map(times, ours[name]), *_papers(paper.get(name))) for name in names[1:]]
    figures = {
        f"{name}_{which}": value
        for name in names[1:]
        for which, value in zip(("average", "median", "p95"), ours[name], strict=True)
    }
    return Findings(title, _HEADER, rows, differs, (), figures)
