"""The termination message: what the operator reads of a worker that has ended."""

from __future__ import annotations

import json
import logging

log = logging.getLogger("synergy_job")


def write_termination_message(path: str, outcome: str, step: int, checkpoint_step: int) -> None:
    """Write `{"outcome", "step", "checkpoint_step"}`; a place that cannot be written is warned of, not an error."""
    message = json.dumps({"outcome": outcome, "step": step, "checkpoint_step": checkpoint_step})
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(message)
    except OSError as error:
        log.warning("cannot write the termination message to %s: %s", path, error)
