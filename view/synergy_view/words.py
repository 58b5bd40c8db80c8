"""Times and amounts in few words, and texts for a terminal."""

import re
from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_GIB: Final = 1 << 30
_OBEYED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line breaks, and what turns the direction of writing."""


def duration(seconds: float) -> str:
    """As kubectl writes ages, two units where the first is below ten: 45s, 2m5s, 12m, 3h20m, 4d."""
    left = max(0, round(seconds))
    if left < 120:
        return f"{left}s"
    place = next(index for index, (size, _) in enumerate(_UNITS) if left >= size)
    (size, unit), (smaller, smaller_unit) = _UNITS[place], _UNITS[place + 1]
    whole, rest = divmod(left, size)
    return f"{whole}{unit}{rest // smaller}{smaller_unit}" if whole < 10 and rest >= smaller else f"{whole}{unit}"


def ahead(seconds: float) -> str:
    """A time in the future: in 12m; one that has come by now: now."""
    return f"in {duration(seconds)}" if seconds >= 1 else "now"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 job, 3 jobs."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def cpus(millis: int) -> str:
    """CPUs of milli-CPU, without needless digits: 1.5, 24."""
    return f"{millis / 1000:.3g}" if millis < 100_000 else f"{millis / 1000:.0f}"


def gib(memory_bytes: int) -> str:
    """Bytes in GiB: 1.5Gi, 64Gi."""
    amount = memory_bytes / _GIB
    return f"{amount:.3g}Gi" if amount < 100 else f"{amount:.0f}Gi"


def listed(names: list[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def printable(text: str) -> str:
    """The text as one line that a terminal shows as it is: what the terminal would obey becomes an escape such as
    `\\x1b` or `\\n`.

    Users decide what is in messages of their jobs, and administrators read them in a terminal.
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
