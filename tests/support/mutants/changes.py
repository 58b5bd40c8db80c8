"""The mutants of a file: each operator that can be flipped, once."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from support.mutants.packages import ROOT

Position = tuple[int, int]

_COMPARISONS = (("Eq", "NotEq"), ("Lt", "LtE"), ("Gt", "GtE"), ("Is", "IsNot"))
_ARITHMETIC = (
    ("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div"), ("Div", "Mul"), ("FloorDiv", "Mul"), ("Mod", "Mul"), ("Pow", "Mul"),
    ("BitOr", "BitAnd"), ("BitAnd", "BitOr"),
)  # fmt: skip
_SWAPPED_CALLS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any",
}  # fmt: skip
_SWAPPED_ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}


class SwapCall:
    """Cosmic Ray has no operator for this one: `min` becomes `max`, `any` becomes `all`, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
        """Where this node can change: once or not at all."""
        if (
            node.type == "name"
            and node.value in _SWAPPED_CALLS
            and (after := node.get_next_leaf()) is not None
            and after.value == "("
        ):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The node, changed."""
        node.value = _SWAPPED_CALLS[node.value]
        return node


class SwapAssignment:
    """Nor for this one: `+=` becomes `-=`."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Position, Position]]:
        """Where this node can change: once or not at all."""
        if node.type == "operator" and node.value in _SWAPPED_ASSIGNMENTS:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The node, changed."""
        node.value = _SWAPPED_ASSIGNMENTS[node.value]
        return node


@cache
def _operators() -> dict[str, Any]:
    flips = [*_COMPARISONS, *((after, before) for before, after in _COMPARISONS)]
    names = [
        *(f"ReplaceComparisonOperator_{before}_{after}" for before, after in flips),
        *(f"ReplaceBinaryOperator_{before}_{after}" for before, after in _ARITHMETIC),
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
        "ReplaceUnaryOperator_Delete_Not",
        "ReplaceUnaryOperator_Delete_USub",
        "ReplaceUnaryOperator_Delete_Invert",
        "AddNot",
        "ReplaceBreakWithContinue",
        "ReplaceContinueWithBreak",
    ]
    found: dict[str, Any] = {name: get_operator(f"core/{name}")() for name in names}
    return {**found, "SwapCall": SwapCall(), "SwapAssignment": SwapAssignment()}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. `path` is relative to the root; `line` counts from 1, `column` from 0."""

    path: str
    line: int
    column: int
    operator: str
    occurrence: int
    before: str
    """The changed line, without the space around it."""
    after: str
    """The same line in the mutant."""
    lines: tuple[int, ...]
    """Lines that Python reports when it runs the change; none if it runs when the module is imported."""

    @property
    def module(self) -> str:
        """The module's name: `synergy_core.model.pool`."""
        _, inside = self.path.split("/", 1)
        return inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def key(self) -> str:
        """Names the mutant as long as its file stays the same."""
        return f"{self.path}:{self.line}:{self.column}:{self.operator}:{self.after}"

    def source(self) -> str:
        """The file's text with the change."""
        code: str = mutate_code((ROOT / self.path).read_text(), _operators()[self.operator], self.occurrence)
        return code


def mutants(path: Path) -> list[Mutant]:
    """All mutants of a file that Python can compile, in the order of the file. Annotations stay as they are."""
    source = path.read_text()
    tree = ast.parse(source)
    annotations = [(_start(node), _end(node)) for node in _annotations(tree)]
    sums = [(_start(node), _end(node)) for node in ast.walk(tree) if isinstance(node, ast.BinOp)]
    ranges = list(_ranges(source))
    found = []
    for name, occurrence, start, end in ranges:
        if _within(start, annotations) or ("Binary" in name and not _within(start, sums)):
            continue
        if name == "AddNot" and any(start <= other < end for kind, _, other, _ in ranges if kind != name):
            continue  # the condition has an operator of its own to flip
        code = mutate_code(source, _operators()[name], occurrence)
        if code is None or not _compiles(code):
            continue
        line, column = start
        before, after = (text.splitlines()[line - 1].strip() for text in (source, code))
        relative = str(path.relative_to(ROOT))
        found.append(Mutant(relative, line, column, name, occurrence, before, after, _lines(tree, start)))
    return sorted(found, key=lambda mutant: (mutant.line, mutant.column, mutant.operator))


def _ranges(source: str) -> Iterator[tuple[str, int, Position, Position]]:
    """Each operator's name, its nth place, and where that starts and ends."""
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in _operators().items():
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            yield name, occurrence, start, end


def _within(position: Position, ranges: list[tuple[Position, Position]]) -> bool:
    return any(start <= position < end for start, end in ranges)


def _compiles(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _start(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> Position:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def _lines(tree: ast.Module, position: Position) -> tuple[int, ...]:
    """The position's line and the first of its statement, if both are inside a function."""
    within = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.Lambda) and _start(node) <= position < _end(node)
    ]
    functions = [node for node in within if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    inside = any(isinstance(node, ast.Lambda) or position >= _start(node.body[0]) for node in functions)
    innermost = max(within, key=_start, default=None)
    if not inside or innermost is None:
        return ()
    return tuple(sorted({innermost.lineno, position[0]}))
