"""What a process has its GPUs send, from NCCL's own log (`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=COLL`).

Inside a node NCCL sends over NVLink, PCIe or shared memory, past the kernel's counters. Each line tells one call.
"""

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CALL = re.compile(
    r"NCCL INFO (?P<call>AllReduce|AllGather|ReduceScatter|Broadcast|Reduce): opCount .*?"
    r"\bcount (?P<count>\d+) datatype (?P<type>\d+)\b"
)
_ELEMENT_BYTES = {
    0: 1,
    1: 1,
    2: 4,
    3: 4,
    4: 8,
    5: 8,
    6: 2,
    7: 4,
    8: 8,
    9: 2,
    10: 1,
    11: 1,
}  # fmt: skip - ncclDataType_t
_PREFIX = "nccl."


def log_environment(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """Variables that let NCCL write its calls into the folder; none where the user has set its log already."""
    if any(name in environ for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE")):
        return {}
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "COLL",
        "NCCL_DEBUG_FILE": os.path.join(folder, f"{_PREFIX}%p"),
    }


def log_sizes(folder: str) -> dict[str, int]:
    """The length of each process' log."""
    return {path: os.path.getsize(path) for path in sorted(glob.glob(os.path.join(folder, f"{_PREFIX}*")))}


def messages_since(folder: str, before: Mapping[str, int]) -> dict[str, list[tuple[str, int]]]:
    """By process, the calls and the bytes of their buffers, after the first `before` bytes of its log."""
    found = {}
    for path in log_sizes(folder):
        with open(path, encoding="utf-8", errors="replace") as file:
            file.seek(before.get(path, 0))
            found[path] = list(read_calls(file.read()))
    return {path: calls for path, calls in found.items() if calls}


def read_calls(text: str) -> Iterator[tuple[str, int]]:
    """Name and bytes of each call; those of unknown types are left out."""
    for match in _CALL.finditer(text):
        size = _ELEMENT_BYTES.get(int(match["type"]))
        if size is not None:
            yield match["call"], int(match["count"]) * size


def sent_bytes(call: str, size: int, workers: int) -> float:
    """What each of so many workers sends on average, in a ring. The buffer that NCCL's log names is the whole tensor of
    an AllReduce, Reduce or Broadcast, and one worker's part of it for the others."""
    others = workers - 1
    if call == "AllReduce":
        return 2.0 * others / workers * size
    if call in ("AllGather", "ReduceScatter"):
        return float(others * size)
    return others / workers * size
