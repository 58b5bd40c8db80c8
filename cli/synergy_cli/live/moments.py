"""Times on the command line of live commands."""

import re
import time
from datetime import UTC, datetime

from synergy_cli.errors import BadInputError
from synergy_view.words import ahead

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def seconds_of(option: str, text: str) -> float:
    """The seconds of a time such as 12h, 7d or 4w. Raises BadInputError naming the option."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if found is None:
        raise BadInputError(f"{option}: {text!r} is no time such as 12h, 7d or 4w")
    return float(int(found[1]) * _UNITS[found[2]])


def moment(at_s: float) -> str:
    """A time in seconds since the epoch, on the user's clock."""
    return datetime.fromtimestamp(at_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def start_text(at_s: float | None) -> str:
    """How far ahead a start lies, "-" if nobody knows."""
    return "-" if at_s is None else ahead(at_s - time.time())
