"""Which operators of a file `make mutants` flips. These tests need its packages (`make .venv/.mutants-installed`)."""

from pathlib import Path

import pytest

from support.mutants.packages import ROOT

pytest.importorskip("cosmic_ray", reason="only there after `make mutants`")


def _mutants(tmp_path: Path, source: str) -> list[tuple[str, tuple[int, ...]]]:
    from support.mutants import changes

    file = tmp_path / "component" / "package" / "module.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "ROOT", tmp_path)
        found = changes.mutants(file)
        assert {mutant.module for mutant in found} <= {"package.module"}
        return [(mutant.after, mutant.lines) for mutant in found]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_change_in_a_function_belongs_to_the_lines_that_run_it_and_annotations_stay(
    tmp_path: Path, kind: str
) -> None:
    source = f"{kind} least(a: int | None, b: int) -> int | None:\n    return min(a or 0, b)\n"
    assert _mutants(tmp_path, source) == [
        ("return max(a or 0, b)", (2,)),
        ("return min(a and 0, b)", (2,)),
    ]


def test_a_change_outside_of_functions_runs_when_the_module_is_imported(tmp_path: Path) -> None:
    assert _mutants(tmp_path, "LIMIT = 2 * 3\n") == [("LIMIT = 2 / 3", ())]


def test_a_module_of_any_component_has_its_import_name() -> None:
    from support.mutants.changes import mutants

    found = mutants(ROOT / "extender" / "synergy_extender" / "decisions" / "admission.py")
    assert {mutant.module for mutant in found} == {"synergy_extender.decisions.admission"}
