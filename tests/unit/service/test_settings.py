"""Variables that several programs read."""

import pytest

from synergy_service.settings import ConfigError, EnvironmentReader


def test_an_empty_variable_counts_as_not_set() -> None:
    read = EnvironmentReader({"A": ""})
    assert (read.text("A", "x"), read.names("A", ("y",)), read.whole("A", 3, least=1, most=9)) == ("x", ("y",), 3)
    assert (read.switch("A", default=True), read.positive("A", 2.5, most=9), read.port("A", 80)) == (True, 2.5, 80)


@pytest.mark.parametrize("text", ["0", "10", "-1", "1.5", "one"])
def test_a_whole_number_that_is_none_or_out_of_bounds_is_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(ConfigError, match=f"A is '{text}': give a number of days from 1 to 9"):
        EnvironmentReader({"A": text}).whole("A", 3, least=1, most=9, what="a number of days")


@pytest.mark.parametrize("text", ["0", "9", "-1", "nan", "inf", "soon"])
def test_a_number_must_be_above_zero_and_below_the_bound(text: str) -> None:
    with pytest.raises(ConfigError, match=f"A is '{text}': give a number of seconds above zero"):
        EnvironmentReader({"A": text}).positive("A", 1.0, most=9)


def test_a_switch_takes_either_case_and_nothing_else() -> None:
    assert EnvironmentReader({"A": "True"}).switch("A", default=False)
    with pytest.raises(ConfigError, match="A is 'yes': give true or false"):
        EnvironmentReader({"A": "yes"}).switch("A", default=False)


def test_a_port_that_must_be_known_is_not_0() -> None:
    assert EnvironmentReader({"A": "0"}).port("A", 80) == 0
    with pytest.raises(ConfigError, match="give a port from 1 to 65535"):
        EnvironmentReader({"A": "0"}).port("A", 80, least=1)
