"""The effect of a new job or another policy on the cluster, with the user's own rights."""

import click

from kube_synergy.live.present import NodesHiddenError, Present, look, new_job
from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Cluster, Object, ask, hidden_nodes, where_of
from synergy_cli.live.jobs.submit import job_of_file
from synergy_cli.live.output import note
from synergy_cli.planning.futures import field_errors, what_if_text
from synergy_core.collector import collector_paused
from synergy_core.model.snapshot import Job, Snapshot
from synergy_simulator.forecast.what_if import compared


def ask_cluster(
    filename: str | None, kubeconfig: str | None, context: str | None, namespace: str | None
) -> tuple[Snapshot, list[Job]]:
    """The visible part of the cluster, and the job of the file as a new job. Notes go to stderr."""
    manifest = None if filename is None else job_of_file(filename)
    present, own_namespace = ask(where_of(kubeconfig, context, namespace, False), _look)
    for text in present.notes:
        note(text)
    if manifest is None:
        return present.snapshot, []
    try:
        return present.snapshot, [new_job(present, manifest, own_namespace)]
    except ValueError as error:
        raise BadInputError(f"--filename: {error}") from error


async def _look(cluster: Cluster) -> tuple[Present, str]:
    try:
        return await look(cluster), cluster.own_namespace
    except NodesHiddenError:
        raise hidden_nodes() from None


def tell_other_policy(present: Present, written: Object) -> None:
    """Print both futures: with the present policy, and with the SchedulingPolicy `written`."""
    with field_errors(), collector_paused():
        as_is, other = compared(present.snapshot, present.built(written).snapshot)
    click.echo(what_if_text(as_is, other, present.now))
    for text in present.notes:
        note(text)
