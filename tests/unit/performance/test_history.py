"""The page of figures by release has what the records have."""

from performance.history import PAGE, filled, records, table

OLD = {
    "release": "0.1.0",
    "date": "2027-01-01",
    "sizes": {"small": [{"figure": "a", "load": {"jobs": 2}, "ratio": 9.0}]},
}
NEW = {
    "release": "0.2.0",
    "date": "2027-02-01",
    "sizes": {
        "small": [
            {"figure": "a", "load": {"jobs": 2}, "ratio": 3.14159},
            {"figure": "b", "load": {}, "ratio": 120.4},
        ],
        "large": [{"figure": "a", "load": {"jobs": 9}, "ratio": 1.0}],
    },
}


def test_each_release_has_a_column_and_what_it_lacks_is_empty() -> None:
    assert table([OLD, NEW], "small").splitlines() == [
        "| figure | load | 0.1.0 | 0.2.0 |",
        "| --- | --- | --- | --- |",
        "| `a` | 2 jobs | 9 | 3.14 |",
        "| `b` |  |  | 120 |",
    ]
    assert "0.1.0" not in table([OLD, NEW], "large")


def test_a_page_is_filled_below_its_marks_only() -> None:
    page = "Before.\n\n<!-- figures by release: small -->\n\n| old |\n\nAfter.\n"
    once = filled(page, [OLD, NEW])
    assert once.startswith("Before.\n\n<!-- figures by release: small -->\n\n| figure |")
    assert once.endswith("| `b` |  |  | 120 |\n\nAfter.\n")
    assert filled(once, [OLD, NEW]) == once


def test_the_page_has_the_figures_of_the_records() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text, records()) == text, "run PYTHONPATH=tests python -m performance.history"
    assert all(f" {one['release']} |" in text for one in records())
