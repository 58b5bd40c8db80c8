"""The report of a soak as a page in Markdown. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from soak.report import SHARES, good
from support.markdown import markdown_table

_MOST_TOLD = 20


def page(found: Mapping[str, Any]) -> str:
    """The report's figures, without its series."""
    size = found["soak"]
    sections = [
        f"# Soak: {size['gpus']} GPUs, {size['seconds'] / 60:.0f} minutes",
        "Nothing was lost or doubled." if good(found) else "**Something was lost, doubled or ended by itself.**",
        "\n".join(_about(found)),
        "## Seconds until a job starts",
        _starts(found["start_s"]),
        "## Processes",
        _processes(found["processes"]),
        "## Disturbances",
        _disturbances(found["disturbances"]),
        *_told("Lost", found["lost"]),
        *_told("Doubled", found["doubled"]),
        *_told("Half-bound", found["half_bound"]),
        *_told("Problems", found["problems"]),
    ]
    return "\n\n".join(sections) + "\n"


def _about(found: Mapping[str, Any]) -> list[str]:
    size, jobs, machine = found["soak"], found["jobs"], found["machine"]
    cluster = f"{size['nodes']} nodes, load {size['load']:.0%}, rounds of {size['round_s']} s, seed {size['seed']}"
    cores = f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gib']:.0f} GiB"
    came = f"{jobs['arrived']} jobs arrived, which train for {size['life_s']:.0f} s on average"
    share = f"{found['gpus_training']:.1%} of the GPUs trained"
    first = "all first jobs" if size["reached"] else "not all first jobs"
    return [
        f"- {cluster}",
        f"- {cores}, load of the machine before: {machine['load_before']:.1f}",
        f"- {came}: {jobs['runs']} runs, {jobs['pods_bound']} pods bound",
        f"- {jobs['lost']} lost, {jobs['doubled']} doubled, {jobs['half_bound']} gangs half-bound for longer than 30 s",
        f"- {first} had started after {size['steady_s']:.0f} s; from then on {share}",
    ]


def _starts(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [(name, f"{one['count']}", *(_shown(one.get(share), 2) for share in SHARES)) for name, one in found.items()]
    return markdown_table(("from, to", "count", *SHARES), rows)


def _processes(found: Mapping[str, Mapping[str, float | None]]) -> str:
    columns = {"last_mb": 0, "most_mb": 0, "growth_mb_per_hour": 0, "cores": 2}
    rows = [(name, *(_shown(one[key], digits) for key, digits in columns.items())) for name, one in found.items()]
    return markdown_table(("process", "MB at the end", "at most", "growth, MB an hour", "cores"), rows)


def _disturbances(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [(f"{one['at']:.0f}", _kind(one), f"{one['until'] - one['at']:.0f}") for one in found]
    return markdown_table(("after s", "kind", "for s"), rows)


def _kind(one: Mapping[str, Any]) -> str:
    return f"{one['kind']} ({one['nodes']})" if one["nodes"] else str(one["kind"])


def _told(what: str, found: Sequence[str]) -> list[str]:
    """The first of them: the JSON has all."""
    more = [f"{len(found) - _MOST_TOLD} more"] if len(found) > _MOST_TOLD else []
    return [f"## {what}", "\n".join(f"- {text}" for text in (*found[:_MOST_TOLD], *more))] if found else []


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
