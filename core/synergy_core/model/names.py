"""What to say of a name that is not there: which one is meant, and which there are."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most like a misspelt one; None where none is like it."""
    by_lower = {known.lower(): known for known in names}
    found = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


def not_there(name: str, names: Iterable[str]) -> str:
    """A clause for a name that has to be one of some: what is meant, and what there is."""
    known = list(names)
    meant = nearest(name, known)
    suggestion = "" if meant is None else f"did you mean {meant!r}? "
    return f"{name!r} is not there; {suggestion}choose one of {', '.join(known)}"


def unknown_field(name: str, names: Iterable[str]) -> str:
    """A clause for a field that its document does not have."""
    meant = nearest(name, names)
    return f"unknown field; {'remove it or correct its name' if meant is None else f'did you mean {meant!r}?'}"
