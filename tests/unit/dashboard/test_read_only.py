"""The dashboard writes nothing to the cluster."""

import ast
from collections.abc import Iterator
from pathlib import Path

import synergy_dashboard
from synergy_kube.writes import Writes

_SOURCES = sorted(Path(synergy_dashboard.__file__).parent.rglob("*.py"))
_READS = {"get", "list", "page", "pages", "watch", "connect", "close", "on_error"}
_WRITES = {name for name in vars(Writes) if not name.startswith("_")}
_REVIEWS = {"TOKEN_REVIEWS", "ACCESS_REVIEWS"}


def calls() -> Iterator[tuple[Path, ast.Call, str, str]]:
    """Each call of a method: its file, itself, what it is called on, and its name."""
    for file in _SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield file, node, ast.unparse(node.func.value), node.func.attr


def test_a_client_is_asked_to_read_and_to_review_only() -> None:
    reviews = set()
    for file, call, target, name in calls():
        if not target.lower().endswith("client"):
            continue
        where = f"{file.name}:{call.lineno}: {ast.unparse(call)}"
        if name == "create":
            reviews.add(ast.unparse(call.args[0]))
            assert reviews <= _REVIEWS, where
        else:
            assert name in _READS, where
    assert reviews == _REVIEWS


def test_no_method_that_only_a_client_has_is_called_under_another_name() -> None:
    own = {"create", "create_subresource", "merge_patch", "strategic_patch"} & _WRITES
    assert len(own) == 4
    found = [(file.name, target) for file, _, target, name in calls() if name in own]
    assert {target for _, target in found} == {"self._client"}
