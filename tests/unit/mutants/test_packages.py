"""Which code and which tests `make mutants PACKAGE=...` means."""

from pathlib import Path

import pytest

from support.mutants.packages import ROOT, own_tests, package_of


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("policies/rounds", "core/synergy_core/policies/rounds"),
        ("core/policies/rounds", "core/synergy_core/policies/rounds"),
        (".", "core/synergy_core"),
        ("extender/decisions", "extender/synergy_extender/decisions"),
        ("extender/synergy_extender/decisions", "extender/synergy_extender/decisions"),
        ("operator/job/reconcile.py", "operator/synergy_operator/job/reconcile.py"),
        ("operator", "operator/synergy_operator"),
        ("profiler-job/synergy_profiler", "profiler-job/synergy_profiler"),
        ("profiler", "profiler-job/synergy_profiler"),
    ],
)
def test_a_package_is_named_by_its_component_or_lies_in_the_core(name: str, code: str) -> None:
    place = ROOT / code
    assert package_of(name).files() == ([place] if place.is_file() else sorted(place.rglob("*.py")))


def test_both_spellings_of_a_package_share_their_results() -> None:
    names = {package_of(name).name for name in ("extender/decisions", "extender/synergy_extender/decisions")}
    assert names == {"extender-decisions"}


@pytest.mark.parametrize("name", ["extender/nowhere", "nowhere", "policies/rounds/nowhere.py"])
def test_a_package_without_code_is_told_with_what_to_give_instead(name: str) -> None:
    with pytest.raises(SystemExit, match=r"nowhere(\.py)? has no Python file\. Give .* such as extender/decisions"):
        package_of(name).files()


@pytest.mark.parametrize("name", ["../elsewhere", "extender/../../elsewhere", "/elsewhere"])
def test_a_package_outside_of_the_components_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=r"elsewhere is not relative to a component\. Give "):
        package_of(name)


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("extender/decisions/decide.py", "tests/unit/extender/decisions"),
        ("operator/job/reconcile.py", "tests/unit/operator/job"),
        ("extender/app.py", "tests/unit/extender"),
        ("mechanisms/optimum/choice.py", "tests/unit/core/mechanisms"),
    ],
)
def test_a_file_is_judged_first_by_the_tests_in_the_innermost_folder_of_its_package(name: str, tests: str) -> None:
    package = package_of(name)
    (file,) = package.files()
    assert own_tests(package.component, file) == ROOT / tests


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("operator/job", "tests/unit/operator/job"),
        ("operator/job/reconcile.py", "tests/unit/operator/job"),
        ("mechanisms/optimum", "tests/unit/core/mechanisms"),
        ("extender", "tests/unit/extender"),
    ],
)
def test_the_own_tests_of_a_package_are_those_in_its_innermost_folder(name: str, tests: str) -> None:
    assert package_of(name).own_tests == ROOT / tests


def test_every_component_with_unit_tests_can_be_judged() -> None:
    code = {package_of(path.parent.name).component.code for path in ROOT.glob("*/synergy_*/")}
    assert code == {Path(path) for path in ROOT.glob("*/synergy_*/")}
