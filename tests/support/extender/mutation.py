"""Bodies near to those that are right: a seeded, replayable fuzzer of JSON requests."""

import copy
import json
import random
from typing import Any

_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 70, -0.5, 1e308, "", " ", "..", "a/../../b", "?x=y#z", "%2e%2e", "\x00",
    "\ud7ff\U0001f600", "x" * 5000, [], {}, [[]], [None], {"": None}, {"metadata": None}, [{"metadata": {"name": 7}}],
    "0", "1e3",
)  # fmt: skip


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """The seed changed in one to four places, mostly as JSON, sometimes as bytes."""
    try:
        value = json.loads(seed)
    except ValueError:
        return _bytes_changed(seed, chance)
    for _ in range(chance.randint(1, 4)):
        value = _changed(value, chance)
    body = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    return _bytes_changed(body, chance) if chance.random() < 0.2 else body


def _changed(value: Any, chance: random.Random) -> Any:
    """One place in the value, at a random depth, is replaced, removed, doubled or swapped for another of its kind."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        what = chance.random()
        if what < 0.1:
            value.pop(key)
        elif what < 0.2:
            value[chance.choice(list(value)) + chance.choice(("", "x"))] = copy.deepcopy(value[key])
        else:
            value[key] = _changed(value[key], chance)
        return value
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        what = chance.random()
        if what < 0.1:
            value.pop(place)
        elif what < 0.2:
            value.extend(copy.deepcopy(value[: chance.randint(1, 50)]))
        else:
            value[place] = _changed(value[place], chance)
        return value
    return copy.deepcopy(chance.choice(_ODD))


def _bytes_changed(body: bytes, chance: random.Random) -> bytes:
    changed = bytearray(body or b"{}")
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(changed))
        match chance.randrange(4):
            case 0:
                changed[place] = chance.randrange(256)
            case 1:
                changed[place:place] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
            case 2:
                changed[place:place] = b"[" * chance.choice((10, 5000))
            case _:
                del changed[place + 1 :]
    return bytes(changed)
