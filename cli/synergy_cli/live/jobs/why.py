"""`kubectl synergy why`: the reason why a job waits, and what would make it start."""

import time
from collections.abc import Sequence
from contextlib import suppress

import click

from kube_synergy.live.present import NodesHiddenError, Present, look
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.jobs.remedies import tell_help, tried
from synergy_cli.live.moments import start_text
from synergy_cli.live.nodes import failing_rows
from synergy_cli.live.options import cluster_options, job_argument, output_option
from synergy_cli.live.output import heading, note, plain, write_data, write_line
from synergy_kube import ApiError
from synergy_kube.resources import NAMESPACES, TENANTS
from synergy_view.seen import SeenJob
from synergy_view.tenants import TenantRow, gpus_in_types, tenants_above
from synergy_view.why import Why, why
from synergy_view.words import count, listed

_NO_NODES = "you may not list nodes, so nothing is tried that would help"


@click.command("why")
@job_argument
@cluster_options()
@output_option(wide=False)
def why_command(*, job: str, where: Where, output: str) -> None:
    """Explain why a job waits, or where it runs: the deciding reason, the jobs ahead of it, the next step.

    To find what would start the job, the command plans with other GPU types, less CPU and memory, fewer GPUs, sharing
    and one more node, for five seconds at most.
    """

    async def question(cluster: Cluster) -> tuple[Why, list[TenantRow], str, Present | None]:
        asked = await cluster.job(job)
        others, hidden = await cluster.visible_jobs()
        here = not asked.is_elsewhere
        failing = await failing_rows(cluster, others) if here and not asked.gpus_held and not asked.finished else None
        answer = why(asked, others, time.time(), failing or ())
        planned = here and answer.position is not None
        tenants = await _tenants(cluster, asked) if planned else []
        try:
            return answer, tenants, hidden, await look(cluster) if planned else None
        except NodesHiddenError:
            return answer, tenants, "; ".join(filter(None, (hidden, _NO_NODES))), None

    answer, tenants, hidden, present = ask(where, question)
    found = None if present is None else tried(present, answer.job)
    if output != "table":
        write_data({**plain(answer), "tenants": plain(tenants), "help": plain(found)}, output)
    else:
        _tell(answer)
        _tell_tenants(tenants)
        tell_help(found)
    if answer.position is not None:
        note(hidden)


async def _tenants(cluster: Cluster, job: SeenJob) -> list[TenantRow]:
    """The job's Tenant and those above it, as far as the user may read them."""
    objects = await cluster.items(TENANTS)
    namespace: Object = {"metadata": {"name": job.namespace}}
    with suppress(ApiError):
        namespace = await cluster.client.get(NAMESPACES, job.namespace)
    return tenants_above(objects or (), namespace, job.spec.tenant)


def _tell_tenants(tenants: Sequence[TenantRow]) -> None:
    """What the tenants of a waiting job have, where GPUs are divided among tenants."""
    for one in tenants if any(one.guaranteed or one.limit for one in tenants) else ():
        parts = {"guaranteed": one.guaranteed, "limit": one.limit, "used": one.used, "waiting": one.waiting}
        told = ", ".join(f"{word} {gpus_in_types(gpus)}" for word, gpus in parts.items())
        write_line(f"  tenant {one.tenant}: {told}")


def _tell(answer: Why) -> None:
    heading(f"{answer.job}: {answer.phase}, {answer.reason}")
    for text in (answer.message, answer.explanation):
        if text:
            write_line(f"  {text}")
    if answer.next_step:
        write_line(f"  next: {answer.next_step}")
    if answer.cluster:
        write_line(f"  cluster: {answer.cluster}")
    if answer.position is not None:
        before = f", after {listed(list(answer.ahead))}" if answer.ahead else ", first of those that want its GPUs"
        write_line(f"  position in the queue: {answer.position}{before}")
    if answer.start_s is not None:
        by = f", in nine of ten cases {start_text(answer.start_by_s)}" if answer.start_by_s is not None else ""
        write_line(f"  it starts {start_text(answer.start_s)} by the newest estimate{by}: kubectl synergy when")
    if answer.holders:
        gpus = sum(one.gpus for one in answer.holders)
        holders = count(len(answer.holders), "job holds", "jobs hold")
        write_line(f"  {holders} {count(gpus, 'GPU')} that it could use:")
        for one in answer.holders[:5]:
            write_line(f"    {one.job}: {one.gpus} {one.gpu_type} (tenant {one.tenant})")
        if len(answer.holders) > 5:
            write_line(f"    and {len(answer.holders) - 5} more")
    for text in answer.notes:
        write_line(f"  also: {text}")
