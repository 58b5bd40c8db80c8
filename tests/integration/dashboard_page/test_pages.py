"""Each page shows its data, and its address says what it shows."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from integration.dashboard_page.conftest import Served
from support.dashboard import answers as made
from support.dashboard import job_page as dashboard_job
from support.dashboard.demo import Demo, realistic

Visit = Callable[..., Page]
Serve = Callable[[Demo], Served]


def still(serve: Serve) -> Served:
    """A cluster in which nothing changes during the test."""
    return serve(Demo(realistic(), changes=0))


def test_cluster(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served)
    world = served.demo.world
    given, gpus = sum(row.gpus_given for row in world.types()), sum(row.gpus for row in world.types())
    expect(page.get_by_text(f"{given} of {gpus} GPUs, {gpus - given} free")).to_be_visible()
    for row in world.types():
        expect(page.get_by_text(f"{row.gpus_given} of {row.gpus} given", exact=True).first).to_be_visible()
    room = page.get_by_role("listitem").filter(has_text="Waiting for room")
    expect(room).to_contain_text(f"{world.reasons()['WaitingForRoom']} jobs")
    longest = max(
        (row for row in world.queue.values() if row.reason == "WaitingForRoom"), key=lambda row: row.waiting_s
    )
    expect(room).to_contain_text(f"{longest.namespace}/{longest.job}")
    expect(page.get_by_role("img", name="GPUs given and wanted over the last day")).to_be_visible()
    page.get_by_text("Show nodes as a table").click()
    closed = page.get_by_role("row").filter(has_text="a100-011")
    expect(closed).to_contain_text("not open")


def test_the_grid_tells_of_a_node_and_leads_to_its_jobs(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served)
    grid = page.get_by_role("img", name="GPUs by node")
    grid.focus()
    page.keyboard.press("ArrowRight")
    node = served.demo.world.nodes["a100-000"]
    expect(page.locator(".bubble")).to_contain_text(f"A100: {node.gpus_given} of {node.gpus} GPUs given")
    expect(page.locator("#announce")).to_contain_text(node.jobs[0])
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{served.url}#/job/{node.jobs[0]}")
    expect(page.get_by_role("heading", level=1)).to_have_text(node.jobs[0])


def test_queue_and_its_filters(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served, "#/queue")
    world = served.demo.world
    rows = page.get_by_role("table").get_by_role("row")
    expect(rows).to_have_count(1 + min(50, len(world.queue)))
    first = made.queue(world).rows[0]
    expect(rows.nth(1)).to_contain_text(f"{first.namespace}/{first.job}")
    expect(rows.nth(1)).to_contain_text(first.message)
    page.get_by_label("Reason").select_option("TenantCapped")
    capped = world.reasons()["TenantCapped"]
    expect(rows).to_have_count(1 + capped)
    assert "reason=TenantCapped" in page.url
    page.get_by_role("button", name="Waited").click()
    # the same address shows the same to somebody else
    other = visit(served, page.url.removeprefix(served.url))
    expect(other.get_by_role("table").get_by_role("row")).to_have_count(1 + capped)
    assert other.get_by_role("columnheader", name="Waited").get_attribute("aria-sort") == "ascending"
    page.go_back()
    page.go_back()
    expect(rows).to_have_count(1 + min(50, len(world.queue)))


def test_job(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    world = served.demo.world
    name = next(job.job for job in world.jobs.values() if job.gpus > 4)
    page = visit(served, f"#/job/{name}")
    data = dashboard_job.job(world, *name.split("/"))
    assert data is not None
    assert data.why is not None
    expect(page.get_by_text(data.why.message)).to_be_visible()
    expect(page.get_by_text(data.why.notes[0])).to_be_visible()
    for node in world.shares[name]:
        expect(page.get_by_role("rowheader", name=node)).to_be_visible()
    expect(page.get_by_role("table", name="Runs", exact=True)).to_contain_text("preempted")
    expect(page.get_by_text("1.43× the speed of the share")).to_be_visible()
    page.get_by_role("button", name="Lines").click()
    assert "surface=lines" in page.url
    expect(page.get_by_role("img", name="Speed by CPU and memory").locator("canvas").first).to_be_visible()


def test_a_waiting_job_tells_its_next_step(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    row = next(iter(served.demo.world.queue.values()))
    page = visit(served, f"#/job/{row.namespace}/{row.job}")
    expect(page.get_by_text(f"kubectl synergy when {row.job} -n {row.namespace}")).to_be_visible()
    expect(page.get_by_text("It holds nothing")).to_be_visible()


def test_a_waiting_job_tells_what_would_help_when_it_is_asked(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    row = next(iter(served.demo.world.queue.values()))
    page = visit(served, f"#/job/{row.namespace}/{row.job}")
    button = page.get_by_role("button", name="What would help?")
    expect(page.get_by_text("Allow T4 too")).to_have_count(0)
    button.click()
    expect(page.get_by_role("listitem").filter(has_text="Allow T4 too")).to_contain_text("4 T4 GPUs on 1 node")
    expect(page.get_by_text(f"kubectl patch trainingjob {row.job} -n {row.namespace}")).to_be_visible()
    expect(page.get_by_text("Not all changes were tried")).to_be_visible()
    running = next(job.job for job in served.demo.world.jobs.values())
    page.goto(f"{served.url}#/job/{running}")
    expect(page.get_by_role("heading", level=1)).to_have_text(running)
    expect(page.get_by_role("button", name="What would help?")).to_have_count(0)


def test_rounds_go_back_in_time(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served, "#/rounds")
    expect(page.get_by_role("img", name="Runs by node over time").locator("canvas")).to_be_visible()
    expect(page.locator(".rounds > li")).to_have_count(12)
    expect(page.get_by_text("which has had less than its share").first).to_be_visible()
    before = page.locator(".head .told").inner_text()
    page.get_by_role("button", name="Earlier").click()
    expect(page.locator(".head .told")).not_to_have_text(before)
    assert "until_s=" in page.url
    page.get_by_role("button", name="Now").click()
    expect(page.locator(".head .told")).to_have_text(before)


def test_tenants(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served, "#/tenants")
    table = page.get_by_role("table", name="Tenants")
    for row in served.demo.world.tenants():
        line = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row.tenant))
        expect(line).to_contain_text(str(row.gpus_given))
    expect(table.get_by_role("row").filter(has_text="vision")).to_contain_text("16 GPUs never preempted, weight 4")
    expect(table.get_by_role("row").filter(has_text="vision")).to_contain_text("32 A100, 16 V100")
    page.get_by_role("button", name="30 days").click()
    assert "days=30" in page.url
    expect(page.get_by_role("button", name="30 days")).to_have_attribute("aria-pressed", "true")


def test_what_if_asks_what_the_form_says(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    page = visit(served, "#/what-if?mechanism=opt&drain=a100-000,a100-001")
    page.get_by_label("Policy").select_option("fifo")
    page.get_by_label("Add nodes").fill("A100:2, T4:1")
    page.get_by_label("GPUs", exact=True).fill("4")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("table", name="Both futures in sum")).to_contain_text("Mean job completion time")
    expect(page.get_by_role("table", name="Jobs in both futures")).to_contain_text("vision/added")
    (asked,) = served.demo.asked
    assert (asked.policy, asked.mechanism) == ("fifo", "opt")
    assert asked.add_nodes == {"A100": 2, "T4": 1}
    assert asked.drain_nodes == ["a100-000", "a100-001"]
    assert asked.add_job is not None
    assert asked.add_job["kind"] == "TrainingJob"
    assert json.dumps(asked.add_job).count('"gpus": 4') == 1
    assert "add=A100" in page.url


def test_what_if_says_what_is_wrong_with_the_form(serve: Serve, visit: Visit) -> None:
    page = visit(still(serve), "#/what-if?add=A100")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("alert")).to_contain_text("write NAME:COUNT, not A100")


def test_policy(serve: Serve, visit: Visit) -> None:
    page = visit(still(serve), "#/policy")
    expect(page.get_by_label("Spec as YAML")).to_contain_text("- name: vision\n    weight: 2")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "kube-synergy-export.zip"


@pytest.mark.parametrize("part", ["cluster", "rounds", "tenants"])
def test_a_refusal_is_told_in_the_servers_words(serve: Serve, visit: Visit, part: str) -> None:
    served = still(serve)
    served.allowed = {"403"}
    served.demo.forbidden = {part}
    page = visit(served, f"#/{part}")
    expect(page.get_by_role("alert")).to_contain_text("You are not allowed to see this")
    expect(page.get_by_role("alert")).to_contain_text("user 'ann' may not get TrainingJobs")


def test_no_such_job_and_no_such_page(serve: Serve, visit: Visit) -> None:
    served = still(serve)
    served.allowed = {"404"}
    expect(visit(served, "#/job/a/b").get_by_role("alert")).to_contain_text("there is no TrainingJob a/b")
    expect(visit(served, "#/nowhere").get_by_role("alert")).to_contain_text("no page at this address")


def test_hidden_jobs_are_told_of_as_a_number(serve: Serve, visit: Visit) -> None:
    page = visit(serve(Demo(realistic(), hidden=7, changes=0)))
    expect(page.get_by_text("7 jobs in namespaces that you may not see")).to_be_visible()


def test_the_token_leaves_the_address_and_is_sent(serve: Serve, visit: Visit) -> None:
    served = serve(Demo(realistic(), token="s3cret", every_s=0.3))
    page = visit(served, "#token=s3cret")
    expect(page.get_by_text("Jobs that run")).to_be_visible()
    expect(page.locator("#live")).to_have_text("Live")
    assert "s3cret" not in page.url
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    assert page.evaluate("sessionStorage.token") == "s3cret"


def test_sign_in(serve: Serve, visit: Visit) -> None:
    served = serve(Demo(realistic(), token="s3cret"))
    served.allowed = {"401"}
    page = visit(served, "#/queue")
    field = page.get_by_label("Token")
    field.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    field = page.get_by_label("Token")
    field.fill("s3cret")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("'token' in sessionStorage") is False
