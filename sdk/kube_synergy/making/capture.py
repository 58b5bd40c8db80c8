"""A function as a program of its own: its source, and that of what it uses of its module.

Source rather than a pickle: it runs with another version of Python than the user's, needs no library in the image, and
`kubectl get configmap` shows what a job runs (decision 53).
"""

import ast
import builtins
import importlib.resources
import inspect
import linecache
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from kube_synergy.errors import InvalidJobError
from kube_synergy.making.literals import literal
from kube_synergy.making.program import Program

RUNNER = "kube_synergy_run"
_MAIN = "main.py"


def program_of_function(
    function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Program:
    """The program that calls `function` with these arguments.

    Raises InvalidJobError naming what cannot be sent: arguments that are no plain values, and of what the function uses
    outside itself everything but modules, what can be imported from them, plain values, and functions and classes of
    its own module.
    """
    capture = _Capture(function)
    given = [_argument(f"args[{place}]", value) for place, value in enumerate(args)]
    named = {key: _argument(f"kwargs[{key!r}]", value) for key, value in (kwargs or {}).items()}
    try:
        inspect.signature(function).bind(*args, **(kwargs or {}))
    except TypeError as error:
        raise InvalidJobError(f"args and kwargs: {function.__name__}() cannot be called with them: {error}") from None
    call = "".join(f"{text}, " for text in given), ", ".join(f"{key!r}: {text}" for key, text in named.items())
    text = "\n".join(
        [
            f"# Made by kube_synergy.submit from the function {function.__name__}.",
            "from __future__ import annotations",
            "",
            *capture.imports,
            "",
            *capture.definitions,
            "",
            'if __name__ == "__main__":',
            f"    from {RUNNER} import run",
            "",
            f"    run({capture.name}, ({call[0]}), {{{call[1]}}})",
            "",
        ]
    )
    runner = importlib.resources.files("kube_synergy.remote").joinpath(f"{RUNNER}.py").read_text(encoding="utf-8")
    return Program(capture.name, f"the function {capture.name}", {_MAIN: text, f"{RUNNER}.py": runner}, _MAIN)


def _argument(place: str, value: Any) -> str:
    try:
        return literal(value)
    except ValueError as error:
        raise InvalidJobError(f"{place}: {error}; pass plain values and make the rest in the function") from None


class _Capture:
    """A function with all that it needs: import lines, and definitions in an order in which they can be run."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.imports: list[str] = []
        self.definitions: list[str] = []
        self._seen: dict[str, Any] = {}
        inner = inspect.unwrap(function)
        _check(function, inner)
        self.name = str(inner.__name__)
        self._module = inner.__module__
        self._globals: Mapping[str, Any] = inner.__globals__
        self._seen[self.name] = function
        self._define(self.name, inner)

    def _define(self, name: str, what: Any) -> None:
        source = _source(what)
        for used, chains in _names_used(source).items():
            self._need(used, chains, name)
        self.definitions.append(source)

    def _need(self, name: str, chains: set[str], user: str) -> None:
        if name in self._seen or (name.startswith("__") and name.endswith("__")):  # every module has its own __name__
            return
        if name not in self._globals:
            if not hasattr(builtins, name):
                raise InvalidJobError(f"{user} uses {name!r}, which is not defined: import or define it in {user}")
            return
        value = self._globals[name]
        self._seen[name] = value
        if isinstance(value, ModuleType):
            self.imports.extend(_module_imports(name, value, chains))
            return
        if self._is_own(value):
            if value.__name__ != name:
                raise InvalidJobError(f"{user} uses {name!r}, another name of {value.__name__!r}: use that name")
            _check(value, inspect.unwrap(value))
            self._define(name, inspect.unwrap(value))
            return
        home = _home(value)
        if home is not None:
            self.imports.append(f"from {home[0]} import {home[1]} as {name}")
            return
        try:
            self.definitions.append(f"{name} = {literal(value)}")
        except ValueError as error:
            raise InvalidJobError(
                f"{user} uses {name!r} from outside, and {error}: make it in {user}, or pass plain values as args"
            ) from None

    def _is_own(self, value: Any) -> bool:
        unwrapped = inspect.unwrap(value) if callable(value) else value
        is_definition = isinstance(unwrapped, FunctionType | type)
        return is_definition and unwrapped.__module__ in (self._module, "__main__")


def _check(function: Any, inner: Any) -> None:
    """Refuse a function without a source of its own."""
    if isinstance(inner, type) and function is inner:
        return
    name = getattr(inner, "__qualname__", type(inner).__name__)
    if not isinstance(inner, FunctionType):
        raise InvalidJobError(f"{name}: submit a function defined with def, or the path of a script")
    if inner.__name__ == "<lambda>":
        raise InvalidJobError("a lambda cannot be submitted: define a function with def")
    if inspect.iscoroutinefunction(inner) or inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidJobError(f"{name}: async functions and generators cannot be submitted; let a function run it")
    if inner.__code__.co_freevars:
        names = ", ".join(inner.__code__.co_freevars)
        raise InvalidJobError(f"{name} uses variables of the function around it: {names}; pass them as args or kwargs")
    if "." in name.rpartition("<locals>.")[2]:
        raise InvalidJobError(f"{name} is a method: submit a function that makes the object and calls it")


def _source(what: Any) -> str:
    try:
        return _at_the_margin(inspect.getsource(what))
    except (OSError, TypeError):
        pass
    found = _source_by_methods(what) if isinstance(what, type) else None
    if found is None:
        raise InvalidJobError(
            f"the source of {what.__qualname__} is not there: define it in a file or in a cell of a notebook"
        )
    return found


def _at_the_margin(source: str) -> str:
    """A definition of a block or a function as one of a module. The lines of its strings keep what they have."""
    if not source[:1].isspace():
        return source.rstrip() + "\n"
    dedented = textwrap.dedent(source).rstrip() + "\n"
    as_it_is = f"if True:\n{source.rstrip()}\n"
    block: Any = ast.parse(as_it_is).body[0]
    with suppress(SyntaxError):
        if ast.dump(ast.parse(dedented).body[0]) == ast.dump(block.body[0]):
            return dedented
    return as_it_is


def _source_by_methods(what: type) -> str | None:
    """The source of a class by the file of its methods: `inspect` does not find that of a class in a notebook."""
    for method in vars(what).values():
        if not isinstance(method, FunctionType):
            continue
        lines = linecache.getlines(method.__code__.co_filename)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == what.__name__:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                return _at_the_margin("".join(lines[first - 1 : node.end_lineno]))
    return None


class _WithoutSignatures(ast.NodeTransformer):
    """Takes the annotations of functions away: the program does not evaluate them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        for one in ast.walk(node.args):
            if isinstance(one, ast.arg):
                one.annotation = None
        return self.generic_visit(node)


def _names_used(source: str) -> dict[str, set[str]]:
    """The names that a definition takes from its module, each with the dotted names that begin with it."""
    tree = _WithoutSignatures().visit(ast.parse(source))
    table = symtable.symtable(ast.unparse(tree), "<source>", "exec")
    own = {one.get_name() for one in table.get_symbols() if one.is_assigned()}
    used: dict[str, set[str]] = {name: set() for name in sorted(set(_globals_of(table)) - own)}
    for node in ast.walk(tree):
        chain = _dotted(node)
        first = chain.partition(".")[0]
        if first in used:
            used[first].add(chain)
    return used


def _globals_of(table: symtable.SymbolTable) -> Iterator[str]:
    top = table.get_type() == "module"
    for one in table.get_symbols():
        if one.is_referenced() and (top or one.is_global()):
            yield one.get_name()
    for inner in table.get_children():
        yield from _globals_of(inner)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    inner = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if isinstance(node, ast.Attribute) and inner else ""


def _module_imports(name: str, module: ModuleType, chains: set[str]) -> list[str]:
    """The lines that bind `name` to the module, and load the submodules that dotted names go through."""
    lines = [f"import {module.__name__}" if module.__name__ == name else f"import {module.__name__} as {name}"]
    submodules = set()
    for chain in chains:
        path = module.__name__
        for part in chain.split(".")[1:]:
            path = f"{path}.{part}"
            if not isinstance(sys.modules.get(path), ModuleType):
                break
            submodules.add(path)
    return lines + [f"import {path}" for path in sorted(submodules)]


def _home(value: Any) -> tuple[str, str] | None:
    """The module and the name from which a value can be imported."""
    module = getattr(value, "__module__", None)
    names = [getattr(value, attribute, None) for attribute in ("__qualname__", "__name__", "_name")]
    for name in names:
        if isinstance(module, str) and isinstance(name, str) and getattr(sys.modules.get(module), name, None) is value:
            return module, name
    return None
