"""A function becomes a program that runs elsewhere, or an error that names what to change."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kube_synergy.errors import InvalidJobError
from kube_synergy.live.results import record_of, value_of
from kube_synergy.making.capture import program_of_function
from kube_synergy.making.literals import literal
from support.sdk import own_module


def run(function: Any, folder: Path, *args: Any, code: int = 0, **kwargs: Any) -> Any:
    """The record that the program of the function prints in a process that knows nothing of ours."""
    program = program_of_function(function, args, kwargs)
    for name, text in program.files.items():
        (folder / name).write_text(text)
    command = [sys.executable, str(folder / program.main)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env={})
    assert ran.returncode == code, ran.stderr
    return record_of(ran.stdout.splitlines())


def test_a_function_runs_with_what_it_uses_of_its_module(tmp_path: Path) -> None:
    record = run(own_module.train, tmp_path, 1.5, more=2)
    here = own_module.train(1.5, more=2)
    assert value_of("j", record) == {**here, "size": 2, "more": 2}
    text = (tmp_path / "main.py").read_text()
    assert "LOCK" not in text
    assert "def decorated" not in text
    assert "from collections import OrderedDict as OrderedDict" in text


def test_decorators_and_functions_that_call_each_other_come_along(tmp_path: Path) -> None:
    assert run(own_module.decorated, tmp_path, 4)["value"] == [5, 1]
    assert run(own_module.even, tmp_path, 10)["value"] is True


def test_a_function_within_another_keeps_its_strings(tmp_path: Path) -> None:
    def at_the_margin() -> str:
        return """
told
"""

    def indented() -> str:
        return """a
    b
        c"""

    assert run(at_the_margin, tmp_path)["value"] == "\ntold\n"
    assert run(indented, tmp_path)["value"] == "a\n    b\n        c"


def test_an_exception_leaves_its_traceback(tmp_path: Path) -> None:
    record = run(own_module.doubled, tmp_path, "x", code=1)
    assert "TypeError" in record["traceback"]
    assert "return value * RATE * 4" in record["traceback"]


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        (lambda: 1, (), "a lambda cannot be submitted: define a function with def"),
        (own_module.locks, (), "locks uses 'LOCK' from outside, and it is a _thread.lock, no plain value"),
        (own_module.misspelt, (), "misspelt uses 'undefined_name', which is not defined"),
        (own_module.generates, (), "async functions and generators"),
        (own_module.waits, (), "async functions and generators"),
        (own_module.outer(), (), "uses variables of the function around it: local; pass them as args or kwargs"),
        (own_module.other_name, (), "'renamed', another name of 'doubled'"),
        (own_module.Holder.method, (None,), "is a method"),
        (own_module.Holder().method, (), "submit a function defined with def"),
        (print, (), "submit a function defined with def"),
        (own_module.train, (), "args and kwargs: train() cannot be called with them: missing a required argument"),
        (own_module.train, (object(),), "args[0]: it is a builtins.object, no plain value"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_named(function: Any, args: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InvalidJobError) as caught:
        program_of_function(function, args)
    assert says in str(caught.value)


def test_a_function_without_source_is_refused() -> None:
    scope: dict[str, Any] = {}
    exec("def made(): return 1", scope)
    scope["made"].__module__ = "nowhere"
    with pytest.raises(InvalidJobError, match="the source of made is not there"):
        program_of_function(scope["made"])


@pytest.mark.parametrize(
    "value",
    [None, True, -3, 2.5, 1j, "é'\"", b"\x00", [], [1, [2]], (), (1,), (1, (2,)), {1, 2}, frozenset(), {"a": {1: "b"}}],
)
def test_plain_values_are_written_as_source(value: Any) -> None:
    assert eval(literal(value)) == value
    assert type(eval(literal(value))) is type(value)


def test_numbers_that_are_none_are_written_too() -> None:
    assert math.isnan(eval(literal(math.nan)))
    assert eval(literal([math.inf, -math.inf])) == [math.inf, -math.inf]


def test_values_nested_without_end_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested more than 50 times"):
        literal(endless)


def test_numbers_of_numpy_come_back_as_pythons(tmp_path: Path) -> None:
    script = "import numpy, kube_synergy_run as r\nr.run(lambda: {'a': numpy.arange(3), 'b': numpy.float32(0.5)})"
    ran = _runner(script, tmp_path)
    assert record_of(ran.stdout.splitlines()) == {"value": {"a": [0, 1, 2], "b": 0.5}}


def test_long_values_come_in_lines_that_runtimes_do_not_cut(tmp_path: Path) -> None:
    ran = _runner("import kube_synergy_run as r\nr.run(lambda: ['x' * 1000] * 100)", tmp_path)
    assert max(len(line) for line in ran.stdout.splitlines()) < 16_000
    assert record_of(ran.stdout.splitlines()) == {"value": ["x" * 1000] * 100}


@pytest.mark.parametrize(
    ("value", "says"),
    [("object()", "is not JSON: object"), ("'x' * 600_000", "at most 524288 come back")],
)
def test_what_cannot_come_back_is_said(value: str, says: str, tmp_path: Path) -> None:
    record = record_of(_runner(f"import kube_synergy_run as r\nr.run(lambda: {value})", tmp_path).stdout.splitlines())
    assert record is not None
    assert says in record["unusable"]


def test_only_rank_0_returns(tmp_path: Path) -> None:
    ran = _runner("import kube_synergy_run as r\nr.run(lambda: 1)", tmp_path, RANK="1")
    assert record_of(ran.stdout.splitlines()) is None


def _runner(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    from kube_synergy.remote import kube_synergy_run

    assert kube_synergy_run.__file__ is not None
    place = str(Path(kube_synergy_run.__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": place, **environment}, cwd=folder, capture_output=True,
        text=True, check=True,
    )  # fmt: skip


def test_records_that_are_cut_or_spoilt_are_passed_over() -> None:
    whole = f"::kube-synergy-result:: 1/1 {json.dumps({'value': 1})}"
    cut = "::kube-synergy-result:: 2/3 abc"
    assert record_of([whole, cut, "::kube-synergy-result:: 1/1 {", "::kube-synergy-result::"]) == {"value": 1}
    assert record_of(["said ::kube-synergy-result:: 1/1 {}"]) is None


CELLS = [
    "import math\nHALF = 0.5",
    "class Model:\n    def __init__(self, size):\n        self.size = size\n",
    "def train(size):\n    return [Model(size).size * HALF, math.floor(2.5)]\n",
]


def test_functions_and_classes_of_a_notebook_are_found_in_its_cells(tmp_path: Path) -> None:
    script = (
        "import json, sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for cell in {CELLS!r}: shell.run_cell(cell, store_history=True).raise_error()\n"
        "from kube_synergy.making.capture import program_of_function\n"
        "print(json.dumps(dict(program_of_function(shell.user_ns['train'], [3]).files)))\n"
    )
    environment = {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    files = json.loads(made.stdout.splitlines()[-1])
    assert "class Model" in files["main.py"]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ran = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert record_of(ran.stdout.splitlines()) == {"value": [1.5, 2]}
