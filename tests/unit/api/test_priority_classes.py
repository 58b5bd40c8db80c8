"""What PriorityClass objects are worth to plans."""

from typing import Any

from synergy_api.cluster.priority_classes import NO_CLASS, URGENT, PriorityClass, PriorityClasses, read_priority_classes
from synergy_api.parts.waiting import MOST_PREEMPTIONS, PREEMPTION_RULES, PreemptionRecord, kept


def _object(name: str, value: int, *, marks: str = "labels", urgent: str = "", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({marks: {URGENT: urgent}} if urgent else {})}, "value": value, **more}


def test_a_class_has_a_value_and_is_urgent_where_a_label_or_annotation_says_so() -> None:
    found = read_priority_classes(
        [
            _object("plain", 7),
            _object("label", 8, urgent="true"),
            _object("annotation", 9, marks="annotations", urgent="true"),
            _object("no", 9, urgent="yes"),
            _object("never", 9, urgent="true", preemptionPolicy="Never"),
        ]
    )
    assert {name: found.of(name) for name in found.by_name} == {
        "plain": PriorityClass(7),
        "label": PriorityClass(8, urgent=True),
        "annotation": PriorityClass(9, urgent=True),
        "no": PriorityClass(9),
        "never": PriorityClass(9),
    }
    assert found.of("unknown") is None
    assert found.of("") == NO_CLASS


def test_jobs_without_a_class_have_the_lowest_global_default() -> None:
    found = read_priority_classes([_object("b", 5, globalDefault=True), _object("a", 3, globalDefault=True)])
    assert (found.default, found.of("")) == ("a", PriorityClass(3))
    assert PriorityClasses().of_jobs_without == NO_CLASS


def test_a_status_keeps_the_newest_preemptions_and_each_rule_has_words() -> None:
    records: list[PreemptionRecord] = []
    for run in range(MOST_PREEMPTIONS + 3):
        rule = PREEMPTION_RULES[run % len(PREEMPTION_RULES)]
        records = kept(records, PreemptionRecord(at="2026-01-01T00:00:00Z", run=run, rule=rule, by=["ml/a", "ml/b"]))  # type: ignore[arg-type]
        assert records[-1].text
        assert "{" not in records[-1].text
    assert [one.run for one in records] == list(range(3, MOST_PREEMPTIONS + 3))
    alone = PreemptionRecord(at="2026-01-01T00:00:00Z", run=1, rule="Policy")
    assert alone.text == "another job gets the GPUs by the policy's order"
