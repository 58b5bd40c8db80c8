"""What a suite starts ends with it, also if another suite follows in the same process."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import pytest_asyncio

@pytest_asyncio.fixture(scope="package")
async def program():
    print("the program starts")
    yield
    print("the program ends")
"""
USES_IT = "async def test_one(program): print('inside')"
INNER = "async def test_two(program): print('further inside')"
AFTER = "async def test_three(): print('after it')"
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "--import-mode=importlib", "-q", "-s")
SETTINGS = {
    "pythonpath": Path(__file__).parents[1],
    "asyncio_mode": "auto",
    "asyncio_default_fixture_loop_scope": "session",
    "asyncio_default_test_loop_scope": "session",
}


def test_what_a_folder_has_started_ends_before_the_next_one_begins(tmp_path: Path) -> None:
    files = {
        "conftest.py": "from support.folders import pytest_collect_directory",
        "suite/conftest.py": CONFTEST,
        "suite/test_it.py": USES_IT,
        "suite/part/test_it.py": INNER,
        "later/test_it.py": AFTER,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    settings = [f"--override-ini={name}={value}" for name, value in SETTINGS.items()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *settings, "suite", "later"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line.lstrip(".") for line in done.stdout.splitlines()]
    told = [line for line in told if line.startswith("the program") or line in ("inside", "further inside", "after it")]
    assert told == ["the program starts", "further inside", "inside", "the program ends", "after it"]
