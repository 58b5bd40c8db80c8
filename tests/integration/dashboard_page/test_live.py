"""What changes on the cluster changes on the page, without building it anew."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from integration.dashboard_page.conftest import Served
from support.dashboard import answers as made
from support.dashboard.demo import realistic

Visit = Callable[..., Page]


def test_a_job_that_starts_leaves_the_queue(served: Served, visit: Visit) -> None:
    first, *_, last = made.queue(served.demo.world).rows[:50]
    name = f"{first.namespace}/{first.job}"
    page = visit(served, "#/queue")
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows.filter(has_text=name)).to_have_count(1)
    # a row that stays is the same element afterwards
    rows.filter(has_text=f"{last.namespace}/{last.job}").evaluate("(row) => { row.kept = true; }")
    served.demo.changes = 1
    expect(rows.filter(has_text=name)).to_have_count(0)
    assert page.evaluate("[...document.querySelectorAll('tbody tr')].filter((row) => row.kept).length") == 1


def test_figures_follow_the_changes(served: Served, visit: Visit) -> None:
    page = visit(served)
    waiting = page.locator(".figure").filter(has_text="Jobs that wait").locator(".value")
    before = len(served.demo.world.queue)
    expect(waiting).to_have_text(re.compile(rf"^\s*{before}\s*$"))
    served.demo.changes = 2
    expect(waiting).to_have_text(re.compile(rf"^\s*{before - 2}\s*$"))


def test_a_job_that_starts_tells_so_on_its_page(served: Served, visit: Visit) -> None:
    first = made.queue(served.demo.world).rows[0]
    page = visit(served, f"#/job/{first.namespace}/{first.job}")
    phase = page.locator(".head .chip")
    expect(phase).to_have_text("Queued")
    served.demo.changes = 1
    expect(phase).to_have_text("Running", timeout=15_000)


def test_a_job_that_cannot_be_loaded_again_stays_with_a_notice(served: Served, visit: Visit) -> None:
    served.allowed = {"403"}
    first = made.queue(served.demo.world).rows[0]
    page = visit(served, f"#/job/{first.namespace}/{first.job}")
    expect(page.locator(".head .chip")).to_have_text("Queued")
    served.demo.forbidden = {"jobs"}
    served.demo.changes = 1
    expect(page.get_by_text("It could not be loaded again: user 'ann' may not")).to_be_visible(timeout=15_000)
    expect(page.locator(".head .chip")).to_have_text("Queued")


def test_a_lost_stream_is_told_and_taken_up_again(served: Served, visit: Visit) -> None:
    served.allowed = {"503"}
    page = visit(served)
    state = page.locator("#live")
    expect(state).to_have_text("Live")
    served.demo.broken = True
    expect(state).to_have_text("Not live")
    expect(page.locator("#announce")).to_have_text("Updates have stopped. The page is reconnecting.")
    served.demo.broken = False
    served.demo.world = realistic()
    expect(state).to_have_text("Live")
    # what was missed meanwhile is loaded
    names = {name.split("/")[1] for name in served.demo.world.queue}
    page.goto(f"{served.url}#/queue")
    shown = set(page.locator("tbody th a").all_inner_texts())
    assert {name.split("/")[1] for name in shown} <= names
