"""What a measured program uses, with the processes that it starts."""

import sys
from pathlib import Path

import click
import pytest

from support.waiting import eventually
from synergy_cli.bench.e2e.programs import FORECAST, Program

HOLDS = "held = bytearray({megabytes} << 20); import sys; sys.stdin.read()"
"""Until the program that started it has ended."""
STARTS = f"""
import subprocess, sys
held = bytearray(20 << 20)
children = [subprocess.Popen([sys.executable, "-c", *words], stdin=subprocess.PIPE)
            for words in ([{HOLDS.format(megabytes=30)!r}], [{HOLDS.format(megabytes=40)!r}, "{FORECAST}"])]
print("started", flush=True)
for child in children:
    child.wait()
"""


async def test_a_forecast_stands_apart_from_the_program_and_its_planner(tmp_path: Path) -> None:
    program = Program("extender-0", [sys.executable, "-c", STARTS], tmp_path / "log")
    await program.start()
    try:

        async def all_hold() -> bool:
            used = program.used()
            forecast = used.get("extender-0 forecast")
            return program.memory_bytes() > 50 << 20 and forecast is not None and forecast.memory_bytes > 40 << 20

        await eventually(all_hold, seconds=20, what="all processes to hold their memory")
        used = program.used()
        assert set(used) == {"extender-0", "extender-0 forecast"}
        assert used["extender-0"].memory_bytes < 90 << 20, "the forecast's 40 MiB are not in it"
        assert program.cpu_seconds() > 0
    finally:
        await program.stop()
    with pytest.raises(click.ClickException, match="extender-0 has ended: started"):
        program.used()
