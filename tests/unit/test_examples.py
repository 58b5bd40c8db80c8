"""Properties hold or not: how long an example takes on a busy machine decides nothing."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("profile", ["few", "ci", "many"])
def test_no_example_has_a_time_limit(profile: str) -> None:
    assert settings.get_profile(profile).deadline is None


def test_the_profile_in_force_is_one_of_the_project() -> None:
    assert settings().deadline is None


def test_no_test_sets_a_time_limit_of_its_own() -> None:
    limits = {
        file.relative_to(TESTS): found
        for file in TESTS.rglob("*.py")
        if (found := re.findall(r"\bdeadline=(?!None|deadline)\d\S*", file.read_text()))
    }
    assert limits == {}
