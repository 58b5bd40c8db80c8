"""What would make a job start, for `kubectl synergy why`."""

import time

from kube_synergy.live.present import Present
from synergy_cli.live.output import write_line
from synergy_core.collector import collector_paused
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_view.remedies import Help, what_would_help

_HELP_S = 5.0
"""After so long, no further change is tried."""


def tried(present: Present, job: str) -> Help | None:
    """What would make the job start, found out within a bounded time."""
    until = time.monotonic() + _HELP_S
    snapshot = present.snapshot
    with collector_paused():
        return what_would_help(snapshot, options_of_snapshot(snapshot).plan, job, lambda: time.monotonic() < until)


def tell_help(found: Help | None) -> None:
    """Write it."""
    if found is None:
        return
    if found.starts_anyway:
        write_line("  it starts in the next round, as things are now")
    for one in found.remedies:
        write_line(f"  would help: {one.told}: it would start on {one.gets}")
        if one.step:
            write_line(f"    {one.step}")
    if not (found.starts_anyway or found.remedies):
        write_line("  nothing that was tried would make it start in the next round")
    if not found.complete:
        write_line(f"  not all changes were tried within {_HELP_S:.0f} s")
