"""`bench verbs` reads what it makes, by every way."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from synergy_cli.bench import verbs
from synergy_cli.main import main
from synergy_extender.verbs.wire import ExtenderArgs, offered_nodes


@pytest.mark.parametrize("form", ["names", "nodes"])
def test_a_request_offers_the_nodes_in_its_form(form: str) -> None:
    args = msgspec.json.decode(verbs.request_body(form, 3), type=ExtenderArgs)
    assert (args.node_names is None) == (form == "nodes")
    assert len(offered_nodes(args)) == 3


def test_each_way_is_told_beside_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "_TARGET_S", 0.0)
    report = json.loads(CliRunner().invoke(main, ["bench", "verbs", "--nodes", "4", "--json"]).output)
    assert [(case["what"], case["form"]) for case in report["cases"]] == [
        (what, form) for form in ("names", "nodes") for what, ways in (("decode", 3), ("route", 4)) for _ in range(ways)
    ]
    assert all(case["ratio"] == 1.0 for case in report["cases"] if case["way"] in ("msgspec", "Starlette, msgspec"))
    assert all(case["milliseconds"] > 0 for case in report["cases"])


def test_the_table_names_the_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "_TARGET_S", 0.0)
    result = CliRunner().invoke(main, ["bench", "verbs", "--nodes", "1"])
    assert "pydantic, as FastAPI calls it" in result.output


def test_no_nodes_are_refused_with_the_option() -> None:
    result = CliRunner().invoke(main, ["bench", "verbs", "--nodes", "0"])
    assert result.exit_code == 2
    assert "--nodes" in result.output
