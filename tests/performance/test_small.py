"""The figures of `loads/small.yaml` are in their ranges. `make performance-small`."""

import pytest

from performance.declared import Declared, declaration
from performance.measure import measure

SMALL = declaration("small")


@pytest.mark.parametrize("declared", SMALL.figures, ids=lambda one: one.figure)
def test_a_figure_is_in_its_range(declared: Declared) -> None:
    found = measure(declared, SMALL.turns, {})
    assert found.within, f"{found.ratio:.3g} in {found.attempts} attempts; declared is {declared.range}"
