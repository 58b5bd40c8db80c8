"""Colours, dashes and markers: a series looks the same in all charts of a page."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

COLOURS: Final = 8
"""Colours of the page's style sheet: those of Okabe and Ito, which people with colour blindness can distinguish."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a series looks."""

    colour: int
    """Number of the colour in the style sheet."""
    variant: int
    """Number of the dashes and the marker: distinguishes series of one colour."""


def styles_of(labels: Iterable[tuple[str, str]]) -> dict[str, Style]:
    """The style of each label, given groups and labels in the order of a page.

    Labels of one group have one colour and differ in the variant. Where all are of one group, each has a colour of its
    own. Where groups are more than colours, colours begin anew with the next variant.
    """
    groups: dict[str, dict[str, None]] = {}
    for group, label in labels:
        groups.setdefault(group, {}).setdefault(label)
    if len(groups) == 1:
        (only,) = groups.values()
        groups = {label: {label: None} for label in only}
    found: dict[str, Style] = {}
    for index, members in enumerate(groups.values()):
        for within, label in enumerate(members):
            found.setdefault(label, Style(index % COLOURS, within + index // COLOURS))
    return found
