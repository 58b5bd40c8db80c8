"""What is said of a name that is not there."""

import pytest

from synergy_core.model.names import nearest, not_there, unknown_field

POLICIES = ("fifo", "las", "srtf", "max-min-fairness")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("srft", "srtf"), ("SRTF", "srtf"), ("max-min-fairnes", "max-min-fairness"), ("whim", None), ("", None)],
)
def test_a_misspelt_name_is_known_by_what_is_like_it(name: str, meant: str | None) -> None:
    assert nearest(name, POLICIES) == meant


def test_the_clause_suggests_and_lists() -> None:
    assert not_there("fif", ("fifo", "las")) == "'fif' is not there; did you mean 'fifo'? choose one of fifo, las"
    assert not_there("x", ("fifo", "las")) == "'x' is not there; choose one of fifo, las"


def test_an_unknown_field_is_corrected_where_it_can_be() -> None:
    assert unknown_field("gpu", ("gpus", "name")) == "unknown field; did you mean 'gpus'?"
    assert unknown_field("zzz", ("gpus", "name")) == "unknown field; remove it or correct its name"
