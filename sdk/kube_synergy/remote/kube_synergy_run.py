"""Runs a submitted function in a worker and prints what it returns, or how it failed, in lines that the client reads.

A pod has no right to write objects of the cluster, and only a pod can read a volume. The log is there for everybody
who may see the job, as long as its last pods are.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MARK = "::kube-synergy-result::"
MOST_BYTES = 512 * 1024
"""Of a returned value as JSON. Larger ones belong into the checkpoint volume."""
_LINE = 12_000
"""Characters of a line: container runtimes cut lines at 16 KiB."""
_MOST_TRACEBACK = 20_000


def run(function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
    """Call the function. Its value counts on rank 0 only; an exception leaves the process as it would without us."""
    try:
        value = function(*args, **(kwargs or {}))
    except Exception:
        _tell({"traceback": traceback.format_exc()[-_MOST_TRACEBACK:]})
        raise
    if os.environ.get("RANK", "0") == "0":
        _tell(_record(value))


def _record(value: Any) -> dict[str, Any]:
    try:
        text = json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        return {"unusable": f"what the function returned is not JSON: {type(value).__name__} ({error})"}
    if len(text) > MOST_BYTES:
        return {"unusable": f"what the function returned has {len(text)} bytes; at most {MOST_BYTES} come back"}
    return {"value": json.loads(text)}


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy and PyTorch as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"it has a {type(value).__name__}")


def _tell(record: Mapping[str, Any]) -> None:
    text = json.dumps(record)
    parts = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
    lines = [f"{MARK} {number}/{len(parts)} {part}" for number, part in enumerate(parts, 1)]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
    sys.stdout.flush()
