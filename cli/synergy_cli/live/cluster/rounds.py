"""`kubectl synergy rounds`: what the last rounds decided."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_cli.live.access import Cluster, Where, ask
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import note, write_data, write_table
from synergy_kube.resources import EVENTS, SCHEDULING_POLICIES
from synergy_view.rounds import Round, rounds


@click.command("rounds")
@click.option("--last", "most", default=10, show_default=True, type=click.IntRange(1, 1000), help="Number of rounds.")
@cluster_options(everywhere=True)
@output_option(wide=False)
def rounds_command(*, most: int, where: Where, output: str) -> None:
    """Show what the last rounds decided and why: which jobs started, left or began to wait.

    The command reads events, so it goes back as far as Kubernetes keeps them. It leaves out rounds without a decision.
    """

    async def question(cluster: Cluster) -> tuple[list[Round], str]:
        jobs = await cluster.jobs(cluster.namespace)
        selector = "involvedObject.kind=TrainingJob"
        events = await cluster.items(EVENTS, cluster.namespace, field_selector=selector)
        hidden = "you may not list events: only runs that hold GPUs now are told" if events is None else ""
        return rounds(jobs, events or (), await _round_s(cluster), most=most), hidden

    found, hidden = ask(where, question)
    if output != "table":
        write_data(found, output)
    else:
        _write(found)
    note(hidden)


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
        at = datetime.fromtimestamp(one.starts_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        for place, row in enumerate(one.decided):
            begin = [str(one.index), at] if not place else ["", ""]
            rows.append([*begin, row.what, row.job, row.reason, row.message])
    write_table(["ROUND", "BEGAN", "WHAT", "JOB", "REASON", "MESSAGE"], rows, nothing="no decision is known any more")
