"""What dcgm-exporter serves: DCGM's fields in Prometheus' text format, a line for each GPU and field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synergy_profiler.counters.load import Load, part

if TYPE_CHECKING:
    from collections.abc import Iterator

SM_ACTIVE = "DCGM_FI_PROF_SM_ACTIVE"
SM_OCCUPANCY = "DCGM_FI_PROF_SM_OCCUPANCY"
DRAM_ACTIVE = "DCGM_FI_PROF_DRAM_ACTIVE"

_LABELS = r'\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}'
_SERIES = re.compile(r"^(?P<name>[A-Za-z_:][\w:]*)" + _LABELS + r"\s+(?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Series:
    """One line: a field of one GPU."""

    name: str
    uuid: str
    value: float


def read_exposition(text: str) -> Iterator[Series]:
    """The series of whole GPUs. Comments, MIG instances and lines without a number are left out."""
    for line in text.splitlines():
        match = _SERIES.match(line)
        if match is None:
            continue
        labels = dict(_LABEL.findall(match["labels"]))
        if not labels.get("UUID") or labels.get("GPU_I_ID"):
            continue
        try:
            yield Series(match["name"], labels["UUID"], float(match["value"]))
        except ValueError:
            continue


def loads(text: str) -> dict[str, Load]:
    """By UUID, the load of each GPU whose SM and DRAM activity are told; of a field told twice the last."""
    found: dict[str, dict[str, float]] = {}
    for one in read_exposition(text):
        value = part(one.value)
        if value is not None:
            found.setdefault(one.uuid, {})[one.name] = value
    return {
        uuid: Load(fields[SM_ACTIVE], fields[DRAM_ACTIVE], fields.get(SM_OCCUPANCY))
        for uuid, fields in found.items()
        if SM_ACTIVE in fields and DRAM_ACTIVE in fields
    }
