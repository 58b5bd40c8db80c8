"""Kubernetes quantities to the integers that everything here computes with (milli-CPU, bytes), and back."""

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final

_SUFFIXES: Final[dict[str, Decimal]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
LARGEST: Final = 2**63 - 1
"""The most that a quantity can be: apimachinery cuts what is larger down to it."""
_LONGEST: Final = 64
"""Characters of a quantity. The API server writes none with more than 30."""
_QUANTITY: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?")
QUANTITY_PATTERN: Final = r"^[+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$"
"""What the API server lets through as an amount in a spec: a quantity that is not negative. Its exponent has two digits
at the most: the integer of 1e99999999 takes hours to compute."""


def parse_quantity(text: str | int | float) -> Decimal:
    """Value of a Kubernetes quantity in its base unit.

    Raises ValueError naming the text if it is not a quantity (apimachinery, pkg/api/resource), or more than one can be.
    """
    written = str(text)
    match = _QUANTITY.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        raise ValueError(f"{_shown(written)} is not a Kubernetes quantity such as 500m, 2 or 64Gi")
    number, suffix = match.group(1), match.group(2) or ""
    exponent = suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix not in _SUFFIXES
    value = Decimal(number + suffix) if exponent else Decimal(number) * _SUFFIXES[suffix]
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{text!r} is beyond {LARGEST}, the most that a Kubernetes quantity can be")
    return value


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


def cpu_millis(text: str | int | float) -> int:
    """CPU quantity in milli-CPU, rounded up and cut to 64 bits as the API server does."""
    return min(int((parse_quantity(text) * 1000).to_integral_value(ROUND_CEILING)), LARGEST)


def byte_count(text: str | int | float) -> int:
    """Memory or storage quantity in bytes, rounded up."""
    return int(parse_quantity(text).to_integral_value(ROUND_CEILING))


def whole_count(text: str | int | float) -> int:
    """Quantity of an extended resource, which is always a whole number.

    Raises ValueError if it is not whole.
    """
    value = parse_quantity(text)
    if value != value.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number of devices")
    return int(value)


def format_cpu(millis: int) -> str:
    """Milli-CPU as a Kubernetes quantity in the API server's canonical form."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def format_bytes(count: int) -> str:
    """Bytes as a Kubernetes quantity: the largest binary suffix that divides it."""
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        unit = int(_SUFFIXES[suffix])
        if count and count % unit == 0:
            return f"{count // unit}{suffix}"
    return str(count)
