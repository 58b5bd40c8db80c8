"""The Job that upgrades definitions: which way is a downgrade, and what its settings may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.names import ANNOTATION_VERSION, PRODUCT_VERSION
from synergy_operator.definitions.job import UpgradeSettings, packaged, read_settings
from synergy_operator.definitions.upgrade_check import DowngradeError, check_upgrade, version_of

NUMBERS = st.lists(st.integers(0, 20), min_size=1, max_size=3)


def definition(version: str) -> dict[str, object]:
    return {"metadata": {"name": "trainingjobs.kube-synergy.dev", "annotations": {ANNOTATION_VERSION: version}}}


@given(NUMBERS, NUMBERS)
def test_only_a_smaller_version_is_a_downgrade(there: list[int], wanted: list[int]) -> None:
    width = max(len(there), len(wanted))
    back = there + [0] * (width - len(there)) > wanted + [0] * (width - len(wanted))
    found, offered = (definition(".".join(map(str, numbers))) for numbers in (there, wanted))
    if back:
        with pytest.raises(DowngradeError):
            check_upgrade(found, offered)
    else:
        check_upgrade(found, offered)


def test_a_definition_that_is_not_there_or_has_no_version_is_older_than_any() -> None:
    for there in (None, {}, {"metadata": {"name": "x"}}, {"metadata": {"annotations": None}}, definition("")):
        check_upgrade(there, definition("0.0.1"))


def test_the_refusal_names_both_versions_and_the_ways_out() -> None:
    with pytest.raises(DowngradeError) as refused:
        check_upgrade(definition("0.10.0"), definition("0.9.0"))
    for words in ("trainingjobs.kube-synergy.dev", "0.10.0", "0.9.0", "crds.upgrade=false", "crds.allowDowngrade=true"):
        assert words in str(refused.value)


def test_what_is_packaged_says_the_products_version() -> None:
    assert {version_of(item) for item in packaged()} == {PRODUCT_VERSION}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SYNERGY_UPGRADE_DEFINITIONS", "yes"),
        ("SYNERGY_ALLOW_DOWNGRADE", "1"),
        ("SYNERGY_DEFAULT_POLICY", "{"),
        ("SYNERGY_DEFAULT_POLICY", '{"policy": "none of ours"}'),
        ("SYNERGY_DEFAULT_POLICY", "[]"),
    ],
)
def test_a_setting_that_is_wrong_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        read_settings({name: value})


def test_without_settings_definitions_are_upgraded_and_no_policy_is_made() -> None:
    assert read_settings({}) == UpgradeSettings(upgrade=True, allow_downgrade=False, policy=None)
