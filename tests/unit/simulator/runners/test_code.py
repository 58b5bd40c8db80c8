"""Processes that would find something else are told apart."""

from pathlib import Path

import pytest

from support.simulator.steps import Step, square
from synergy_simulator.runners.code import LIBRARIES, Code, SameCode, code, fingerprint
from synergy_simulator.runners.errors import OtherCodeError
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import nothing

OTHER = Code((*code().parts[:-1], ("kube-synergy's sources", "before")))


def test_code_is_told_by_its_sources_and_by_what_it_computes_with(tmp_path: Path) -> None:
    def package(text: str, file: str = "deep/one.py") -> Path:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(text)
        return folder

    first = package("a = 1")
    assert fingerprint([first], LIBRARIES) == fingerprint([package("a = 1")], LIBRARIES)
    others = [[package("a = 2")], [package("a = 1", "deep/two.py")], [first, package("")]]
    prints = [fingerprint([first], LIBRARIES), *(fingerprint(packages, LIBRARIES) for packages in others)]
    prints.append(fingerprint([first], LIBRARIES[1:]))
    assert len({one.digest for one in prints}) == len(prints)


def test_a_library_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = fingerprint([], ["no-such-library"])
    assert ("no-such-library", "missing") in found.parts


def test_differences_are_named() -> None:
    mine = Code((("Python", "3.11.2"), ("numpy", "2.0"), ("scipy", "1.13")))
    assert mine.against(mine) == ""
    theirs = Code((("Python", "3.12.1"), ("numpy", "2.0")))
    assert mine.against(theirs) == "Python 3.12.1 instead of 3.11.2, scipy missing instead of 1.13"


def test_a_process_with_other_code_says_so() -> None:
    """The code was changed after the first process began."""
    sources = dict(code().parts)["kube-synergy's sources"]
    with pytest.raises(OtherCodeError, match=f"sources {sources} instead of before; begin again"):
        Processes(2).run(SameCode(square, OTHER), [Step(1, ""), Step(2, "")], nothing)
    assert SameCode(square, code())(Step(3, "")) == 9
