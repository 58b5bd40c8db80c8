"""`kubectl synergy drain`: have jobs leave a node before a time, at the end of a round."""

import asyncio
import time
from dataclasses import dataclass

import click

from synergy_api.names import ANNOTATION_EMPTY_BY
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_api.timestamps import format_time, parse_time
from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.moments import moment, seconds_of
from synergy_cli.live.options import cluster_options
from synergy_cli.live.output import note, write_table
from synergy_kube import ApiError, NotFound
from synergy_kube.resources import NODES, SCHEDULING_POLICIES
from synergy_view.drain import DrainRow, drain_rows

_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class _Drain:
    """When a node must be empty, and the jobs that hold GPUs there."""

    empty_by_s: float | None
    rows: list[DrainRow]
    hidden: str


@click.command("drain")
@click.argument("node")
@click.option("--by", metavar="TIME", help="When the node must be empty: 30m, 12h, 2d from now, or an RFC 3339 time.")
@click.option("--cancel", is_flag=True, help="Let jobs come to the node again.")
@click.option("--wait", is_flag=True, help="Wait until no job of kube-synergy is on the node.")
@click.option(
    "--dry-run", type=Choice(["none", "server"]), default="none", help="server: check the change, but do not make it."
)
@cluster_options()
def drain_command(*, node: str, by: str | None, cancel: bool, wait: bool, dry_run: str, where: Where) -> None:
    """Have all jobs leave NODE before a time, each with a checkpoint at the end of a round.

    No job comes that would have to leave within a round. The node stays closed until you cancel the drain. Without --by
    and --cancel the command lists the jobs that are still on the node. It moves no other pods: run `kubectl drain` when
    no job is left. The command needs the right to patch nodes.
    """
    if cancel and (by is not None or wait):
        raise BadInputError("--cancel: leave out --by and --wait")
    dry = dry_run == "server"
    if wait and dry:
        raise BadInputError("--wait: nothing is changed by --dry-run=server; leave one of them out")
    text = None if by is None else _time_of(by, time.time())

    if cancel:
        ask(where, lambda cluster: _annotate(cluster, node, None, dry=dry))
        click.echo(f"node/{node} takes jobs again{' (dry run)' if dry else ''}")
        return

    async def question(cluster: Cluster) -> _Drain:
        if text is not None:
            await _annotate(cluster, node, text, dry=dry)
        return await _look(cluster, node, text if dry else None)

    found = ask(where, question)
    _tell(node, found, "(dry run)" if dry else "")
    if wait and found.rows:
        ask(where, lambda cluster: _empty(cluster, node))
        click.echo(f"node/{node} is empty")


def _time_of(by: str, now: float) -> str:
    """As RFC 3339. Raises BadInputError."""
    if "T" in by.upper():
        try:
            at_s = parse_time(by)
        except ValueError as error:
            raise BadInputError(f"--by: {error}") from error
    else:
        at_s = now + seconds_of("--by", by)
    if at_s < now:
        raise BadInputError(f"--by: {by} is in the past")
    try:
        return format_time(round(at_s))
    except (ValueError, OverflowError) as error:
        raise BadInputError(f"--by: {by} is after the year 9999") from error


async def _annotate(cluster: Cluster, node: str, text: str | None, *, dry: bool) -> None:
    patch: Object = {"metadata": {"annotations": {ANNOTATION_EMPTY_BY: text}}}
    try:
        await cluster.client.merge_patch(NODES, node, patch, dry_run=dry)
    except NotFound:
        raise BadInputError(f"NODE: there is no node {node}") from None


async def _look(cluster: Cluster, node: str, assumed: str | None = None) -> _Drain:
    try:
        item = await cluster.client.get(NODES, node)
    except NotFound:
        raise BadInputError(f"NODE: there is no node {node}") from None
    text = assumed or (item["metadata"].get("annotations") or {}).get(ANNOTATION_EMPTY_BY)
    try:
        empty_by_s = None if text is None else parse_time(text)
    except ValueError as error:
        raise BadInputError(f"node {node}, annotation {ANNOTATION_EMPTY_BY}: {error}; give --by or --cancel") from error
    jobs, hidden = await cluster.visible_jobs()
    now = time.time()
    until = now if empty_by_s is None else empty_by_s
    rows = drain_rows(jobs, node, empty_by_s=until, now=now, round_s=await _round_s(cluster))
    return _Drain(empty_by_s, rows, hidden)


async def _round_s(cluster: Cluster) -> float:
    """By the policy, or as without one."""
    default = float(SchedulingPolicySpec().round_seconds)
    try:
        item = await cluster.client.get(SCHEDULING_POLICIES, DEFAULT_POLICY_NAME)
    except ApiError:
        return default
    return float((item.get("spec") or {}).get("roundSeconds", default))


def _tell(node: str, found: _Drain, dry: str) -> None:
    if found.empty_by_s is None:
        click.echo(f"node/{node} is not drained: give --by")
    else:
        click.echo(f"node/{node} must be empty by {moment(found.empty_by_s)} {dry}".rstrip())
    drained = found.empty_by_s is not None
    rows = [[row.job, str(row.gpus), row.leaves if drained else "stays"] for row in found.rows]
    write_table(["JOB", "GPUS", "WHAT HAPPENS"], rows, nothing="no job of kube-synergy is on it")
    note(found.hidden)
    if drained and any(row.stays for row in found.rows):
        note("suspend the jobs that do not leave, or wait for their end")


async def _empty(cluster: Cluster, node: str) -> None:
    left = (await _look(cluster, node)).rows
    while left:
        await asyncio.sleep(_LOOK_S)
        left = (await _look(cluster, node)).rows
