"""Options of the policies with discretised queues, `2d-las` and `2d-gittins`."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import FieldError

_DEFAULT = ",".join(f"{threshold:g}" for threshold in PriorityQueues().thresholds_gpu_s)

_OPTIONS = {
    "thresholds_gpu_s": "--queue-thresholds",
    "promote_knob": "--promote-knob",
}


def queue_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How jobs are told apart; `queues_of` reads them."""
    for option in reversed(
        (
            click.option(
                "--queue-thresholds",
                default=_DEFAULT,
                show_default=True,
                metavar="A,B,..",
                help="2d-las and 2d-gittins: GPU-seconds at which a job falls to the next queue; `none`: no queues.",
            ),
            click.option(
                "--promote-knob",
                type=float,
                metavar="X",
                help="2d-las and 2d-gittins: who waited X times as long as it ran goes to the head of the first queue.",
            ),
            click.option(
                "--service-distribution",
                metavar="FILE",
                help="2d-gittins: whole service of finished jobs, GPU-seconds, one number a line.",
            ),
        )
    ):
        command = option(command)
    return command


def queues_of(*, queue_thresholds: str, promote_knob: float | None, service_distribution: str | None) -> PriorityQueues:
    """Check and gather them; raises BadInputError that names the option, or the file and line."""
    thresholds = () if queue_thresholds == "none" else tuple(map(_threshold, queue_thresholds.split(",")))
    if promote_knob is not None and not thresholds:
        raise BadInputError(
            "--promote-knob: without queues nobody is promoted; leave it out or give --queue-thresholds"
        )
    services = () if service_distribution is None else _services(service_distribution)
    try:
        return PriorityQueues(thresholds_gpu_s=thresholds, promote_knob=promote_knob, service_gpu_s=services)
    except FieldError as error:
        field, bracket, index = error.path.partition("[")
        raise BadInputError(f"{_OPTIONS[field]}{bracket}{index}: {error.problem}") from error


def _threshold(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        problem = f"must be GPU-seconds A,B,.. that ascend, or none; {text!r} is no number"
        raise BadInputError(f"--queue-thresholds: {problem}") from None


def _services(name: str) -> tuple[float, ...]:
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--service-distribution: cannot read {name}: {error}") from error
    services = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            service = float(line)
        except ValueError:
            raise BadInputError(f"{name}:{number}: {line.strip()!r} is no number; give GPU-seconds") from None
        if not 0.0 < service < inf:
            raise BadInputError(f"{name}:{number}: must be above 0 and finite, is {service}")
        services.append(service)
    if not services:
        raise BadInputError(f"--service-distribution: {name} holds no number; give one a line")
    return tuple(services)
