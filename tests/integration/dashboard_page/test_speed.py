"""The page of a large cluster: 1,250 nodes with 10,000 GPUs, 5,000 jobs."""

import math
from collections.abc import Callable

from playwright.sync_api import CDPSession, Page

from integration.dashboard_page.conftest import Served, until
from support.dashboard.demo import Demo, large

Visit = Callable[..., Page]
FIRST_MS, UPDATE_MS = 1000, 100


def busy_ms(session: CDPSession) -> float:
    """How long the page's main thread has computed. What other programs have of the processors does not count."""
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def test_first_content_and_updates(serve: Callable[[Demo], Served], visit: Visit) -> None:
    demo = Demo(large(), every_s=0.4, changes=0)
    served = serve(demo)
    page = visit(served, "#/policy")
    until(page, "performance.getEntriesByName('first-content').length > 0")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    before = busy_ms(session)
    page.goto(f"{served.url}?again")
    until(page, "performance.getEntriesByName('first-content').length > 0")
    first = busy_ms(session) - before
    wall = page.evaluate("performance.getEntriesByName('first-content')[0].startTime")
    page.wait_for_timeout(1500)  # the chart

    demo.changes = math.inf
    page.reload()
    until(page, "performance.getEntriesByName('update').length >= 2", 60)
    before = busy_ms(session)
    seen = page.evaluate("performance.getEntriesByName('update').length")
    until(page, f"performance.getEntriesByName('update').length >= {seen + 8}", 60)
    updates = page.evaluate("performance.getEntriesByName('update').map((one) => one.duration)")[seen:]
    update = (busy_ms(session) - before) / len(updates)
    print(f"first content: {wall:.0f} ms, of them {first:.0f} ms of the main thread")
    print(f"updates: {sorted(round(one) for one in updates)} ms, {update:.0f} ms of the main thread each")
    assert first < FIRST_MS
    assert update < UPDATE_MS
