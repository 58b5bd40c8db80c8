"""The list of reasons is closed on both sides: nothing else is said, and nothing in it is never said."""

import string
from pathlib import Path

import pytest

from support.planner.reasons import literal_reasons, named_reasons
from synergy_api.reasons import ENTRIES, Reason, ReasonPlace, say
from synergy_api.reasons.page import troubleshooting
from synergy_core.model.deadlines import LateReason
from synergy_core.model.reasons import MESSAGES, NEVER
from synergy_core.model.reasons import Reason as Planned

ROOT = Path(__file__).parents[3]
ROOMS = (
    "api/synergy_api", "operator/synergy_operator", "extender/synergy_extender", "clusters/synergy_clusters",
    "cli/synergy_cli",
)  # fmt: skip
LIST = ROOT / "api/synergy_api/reasons"
CODE = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if not file.is_relative_to(LIST)]


def test_every_reason_has_an_entry_and_every_entry_a_reason() -> None:
    assert set(ENTRIES) == set(Reason)


def test_no_reason_is_in_the_list_that_no_code_says() -> None:
    planned = {Reason(word.value).name for word in (*Planned, *LateReason)}
    assert named_reasons(CODE) - {"__members__"} | planned == set(Reason.__members__)


def test_no_code_says_a_reason_in_words_of_its_own() -> None:
    assert [place for file in CODE for place in literal_reasons(file)] == []


def test_a_reason_in_words_of_its_own_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "said.py"
    file.write_text('Condition(type="Valid", reason="Whim")\nFinding("Whim", "")\nsay(Reason.ACCEPTED)\n')
    assert len(list(literal_reasons(file))) == 2
    assert named_reasons([file]) == {"ACCEPTED"}


def test_the_planners_reasons_are_all_there_and_those_of_never_are_warned_of() -> None:
    for planned in Planned:
        entry = ENTRIES[Reason(planned.value)]
        assert ReasonPlace.QUEUE in entry.places
        assert (entry.event == "Warning") == (planned in NEVER)


@pytest.mark.parametrize("reason", Reason)
def test_every_warning_says_what_to_change_or_that_nothing_is(reason: Reason) -> None:
    entry = ENTRIES[reason]
    planned = reason.value in Planned.__members__.values()
    if entry.event == "Warning" and not planned:
        assert entry.change or "queued again" in entry.says or entry.means, reason
    assert entry.places
    assert not entry.change.endswith(".")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_on_the_page(reason: Reason) -> None:
    page = troubleshooting()
    assert f"### {reason.value}\n" in page or f"| `{reason.value}` |" in page
    assert ENTRIES[reason].says in page


def test_a_message_is_what_is_and_what_to_change() -> None:
    found = say(Reason.WORKER_TOO_LARGE, wanted=8, most=4, gpu_type="V100")
    assert found.message == ("spec.gpusPerWorker is 8, the largest node has 4 GPUs (type V100): lower gpusPerWorker")


def test_a_text_without_its_facts_is_an_error() -> None:
    with pytest.raises(KeyError, match="wanted"):
        say(Reason.TOO_MANY_GPUS, most=1, gpu_type="V100", where="here")


def test_the_planners_texts_ask_for_facts_that_it_has() -> None:
    facts = {name for text in MESSAGES.values() for _, name, _, _ in string.Formatter().parse(text) if name}
    of_tenants = {"tenant", "gpu_type", "limit", "guarantee", "borrowing", "held", "kept"}
    assert (
        facts <= {"gpus", "types", "skew", "quota", "resource", "hard", "left", "need", "nodes", "groups"} | of_tenants
    )
