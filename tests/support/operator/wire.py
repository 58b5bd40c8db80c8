"""That the API server takes what the operator writes."""

from collections.abc import Iterator
from typing import Any

import msgspec

_BITS = 63


def check_wire(item: dict[str, Any]) -> None:
    """It can be encoded as JSON and loses nothing: NaN and infinity would become null. Its integers have 64 bits."""
    assert msgspec.json.decode(msgspec.json.encode(item)) == item
    large = [number for number in _integers(item) if number.bit_length() > _BITS]
    assert not large, large


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _integers(one)
    elif isinstance(value, int):
        yield value
