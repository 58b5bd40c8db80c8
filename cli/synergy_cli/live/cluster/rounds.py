"""`kubectl synergy rounds`: what the last rounds decided."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.moments import moment
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import note, write_data, write_table
from synergy_cli.live.record import Record, from_record, system_namespace_option
from synergy_kube.resources import EVENTS, SCHEDULING_POLICIES
from synergy_view.rounds import Decided, Round, rounds


@click.command("rounds")
@click.option("--last", "most", default=10, show_default=True, type=click.IntRange(1, 1000), help="Number of rounds.")
@system_namespace_option
@cluster_options(everywhere=True)
@output_option(wide=False)
def rounds_command(*, most: int, system_namespace: str, where: Where, output: str) -> None:
    """Show what the last rounds decided and why: which jobs started, left or began to wait.

    The command reads the dashboard's history, or else events, for as long as Kubernetes keeps them. It leaves out
    rounds without a decision.
    """

    async def question(cluster: Cluster) -> list[Round]:
        async def recorded(record: Record) -> list[Round]:
            found = await record.json("decisions", rounds=most, namespace=cluster.namespace)
            return [_round(one) for one in found["rounds"]]

        async def otherwise() -> list[Round]:
            jobs = await cluster.jobs(cluster.namespace)
            selector = "involvedObject.kind=TrainingJob"
            events = await cluster.items(EVENTS, cluster.namespace, field_selector=selector)
            note("you may not list events: the answer has only runs that hold GPUs now" if events is None else "")
            return rounds(jobs, events or (), await _round_s(cluster), most=most)

        return await from_record(cluster, system_namespace, recorded, otherwise)

    found = ask(where, question)
    if output != "table":
        write_data(found, output)
    else:
        _write(found)


def _round(told: Mapping[str, Any]) -> Round:
    decided = tuple(Decided(**one) for one in told["decided"])
    return Round(index=told["index"], starts_s=told["starts_s"], decided=decided)


async def _round_s(cluster: Cluster) -> float:
    """How long a round is: as the extender follows it, else as written, else the default."""
    usual: float = SchedulingPolicySpec().round_seconds
    policies = await cluster.items(SCHEDULING_POLICIES) or ()
    item = next((one for one in policies if one["metadata"]["name"] == DEFAULT_POLICY_NAME), {})
    in_force = (item.get("status") or {}).get("inForce") or {}
    return float(in_force.get("roundSeconds") or (item.get("spec") or {}).get("roundSeconds") or usual)


def _write(found: Sequence[Round]) -> None:
    rows = []
    for one in found:
        at = moment(one.starts_s)
        for place, row in enumerate(one.decided):
            begin = [str(one.index), at] if not place else ["", ""]
            rows.append([*begin, row.what, row.job, row.reason, row.message])
    write_table(["ROUND", "BEGAN", "WHAT", "JOB", "REASON", "MESSAGE"], rows, nothing="no decision is known any more")
