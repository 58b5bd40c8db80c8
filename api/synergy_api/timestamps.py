"""RFC 3339 times in UTC, as every status field carries them, to and from seconds of Unix time."""

from datetime import UTC, datetime


def parse_time(text: str) -> float:
    """Seconds of Unix time of an RFC 3339 time; its T and Z may be small letters, and without a zone it is UTC.

    Raises ValueError naming the text if it is none, or before the year 1 or after the year 9999 in UTC.
    """
    try:
        moment = datetime.fromisoformat(text.upper())
        return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-01-31T12:00:00Z") from None


def format_time(seconds: float) -> str:
    """RFC 3339 in UTC; milliseconds are written only where there are any."""
    millis = round(seconds * 1000)
    moment = datetime.fromtimestamp(millis / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if millis % 1000 else "seconds").replace("+00:00", "Z")
