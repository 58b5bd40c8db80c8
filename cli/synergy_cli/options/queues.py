"""Reads the options of the policies with discretised queues, `2d-las` and `2d-gittins`."""

from math import inf
from pathlib import Path

from synergy_cli.errors import BadInputError


def thresholds_text(thresholds: tuple[float, ...]) -> str:
    """Thresholds as the command line takes them."""
    return ",".join(f"{threshold:g}" for threshold in thresholds) or "none"


def thresholds_of(text: str) -> tuple[float, ...]:
    """GPU-seconds at which a job falls to the next queue; raises BadInputError that names the option."""
    return () if text == "none" else tuple(map(_threshold, text.split(",")))


def _threshold(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        problem = f"must be GPU-seconds A,B,.. that ascend, or none; {text!r} is no number"
        raise BadInputError(f"--queue-thresholds: {problem}") from None


def services_of(name: str | None) -> tuple[float, ...]:
    """Whole service of finished jobs, GPU-seconds, from a file; raises BadInputError that names the file and line."""
    if name is None:
        return ()
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--service-distribution: cannot read {name}: {_why(error)}") from error
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


def _why(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
