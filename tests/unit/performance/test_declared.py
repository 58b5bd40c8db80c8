"""What a file of loads may declare, and what an error says."""

from pathlib import Path

import pytest

from performance.declared import FOLDER, DeclarationError, Range, declaration
from performance.figures import NAMES, PROCESSES


def written(folder: Path, text: str) -> Path:
    (folder / "some.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_declared_files_are_sound(file: Path) -> None:
    declared = declaration(file.stem)
    assert declared.turns >= 3
    assert len({one.figure for one in declared.figures}) == len(declared.figures)


def test_every_figure_is_declared_where_it_is_large() -> None:
    large = {one.figure for one in declaration("large").figures}
    small = {"reconcile-new-job", "reconcile-running-job", "span-off"}  # the same, however large the cluster is
    assert set(NAMES) - large == small


def test_a_change_needs_no_cluster() -> None:
    assert not {one.figure for one in declaration("small").figures} & set(PROCESSES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "some.yaml"),
        ("figures: 3", "needs a list of figures"),
        ("figures: [{figure: speed, most: 1}]", "'speed': there is no such figure; there are plan-round"),
        ("figures: [5]", "None: there is no such figure"),
        ("figures: [{figure: plan-round, most: 1, at: 2}]", "plan-round: takes figure, load, least and most, not at"),
        ("figures: [{figure: plan-round}]", "plan-round: needs a range"),
        ("figures: [{figure: plan-round, least: 2, most: 1}]", "plan-round: needs a range"),
        ("figures: [{figure: start, most: 1}]", "needs `processes`"),
    ],
)
def test_what_cannot_be_declared_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declaration("some", written(tmp_path, text))


def test_a_size_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=r"huge\.yaml: there is no such file"):
        declaration("huge", tmp_path)


def test_both_ends_belong_to_a_range() -> None:
    ends = Range(1.0, 2.0)
    assert [value in ends for value in (0.99, 1.0, 2.0, 2.01)] == [False, True, True, False]
    assert str(ends) == "1 to 2"
    assert str(Range(0.0, 2.0)) == "at most 2"
    assert str(Range(2.0, float("inf"))) == "at least 2"
