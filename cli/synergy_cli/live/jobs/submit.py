"""`kubectl synergy submit`, `suspend` and `resume`: what a user does with a job of theirs."""

import asyncio
import re
import time
import uuid
from pathlib import Path
from typing import Any

import click
import yaml

from synergy_api.names import MAX_JOB_NAME
from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.files import read_input
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.options import cluster_options, job_argument
from synergy_kube import ApiError, NotFound
from synergy_kube.resources import CONFIG_MAPS, TRAINING_JOBS
from synergy_view.seen import SeenJob, read
from synergy_view.why import why

_POLL_S = 1.0
_SCRIPT_MOST = 900_000
"""Bytes of a script: a ConfigMap holds a mebibyte."""
_FOLDER = "/kube-synergy/script"


@click.command("submit")
@click.argument("script", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-f", "--filename", help="Manifest of a TrainingJob, - for standard input, instead of a script.")
@click.option("--name", help="Name of the job.  [default: the script's, with a random suffix]")
@click.option("--image", help="Image that runs the script; it must have python3 and what the script imports.")
@click.option("--gpus", type=click.IntRange(1), default=1, show_default=True, help="GPUs of the whole job.")
@click.option("--steps", type=click.IntRange(1), help="Training steps until the job is done; needed with a script.")
@click.option("--gpu-type", "gpu_types", multiple=True, help="GPU type that it may use; may be repeated.")
@click.option("--tenant", help="Tenant that it counts for.")
@click.option("--skip-profile", is_flag=True, help="Schedule it at the GPU-proportional share, without profile runs.")
@click.option("--dry-run", type=Choice(["none", "server"]), default="none", help="server: check, create nothing.")
@click.option("--wait", is_flag=True, help="Wait until the job has ended; exit with 1 if it failed.")
@cluster_options()
def submit_command(
    *, script: Path | None, arguments: tuple[str, ...], filename: str | None, where: Where, dry_run: str, wait: bool,
    **how: Any,
) -> None:  # fmt: skip
    """Submit a training script, or the manifest of a TrainingJob.

    The script becomes a ConfigMap of the job, so that no image has to be built for it.
    """
    if (script is None) == (filename is None):
        raise BadInputError("give either a SCRIPT or --filename")
    if script is not None:
        manifest, text = _of_script(script, list(arguments), how)
    else:
        manifest, text = job_of_file(filename or "-"), None
    if wait and dry_run == "server":
        raise BadInputError("--wait: nothing is created by --dry-run=server; leave one of them out")

    async def question(cluster: Cluster) -> SeenJob:
        created = read(await _create(cluster, manifest, text, dry=dry_run == "server"))
        dry = " (dry run)" if dry_run == "server" else ""
        click.echo(f"trainingjob.kube-synergy.dev/{created.name} created{dry}")
        return await _ended(cluster, created) if wait else created

    if ask(where, question).phase == "Failed":
        raise click.exceptions.Exit(1)


def _of_script(script: Path, arguments: list[str], how: dict[str, Any]) -> tuple[Object, str]:
    for option in ("image", "steps"):
        if not how[option]:
            raise BadInputError(f"--{option}: a script needs it")
    try:
        text = script.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"SCRIPT: cannot read {script}: {error}") from error
    if len(text.encode()) > _SCRIPT_MOST:
        raise BadInputError(f"SCRIPT: {script} has more than {_SCRIPT_MOST} bytes; put it into the image")
    name = how["name"] or _name_of(script)
    container = {
        "name": "train",
        "image": how["image"],
        "command": ["python3", f"{_FOLDER}/{script.name}"],
        "volumeMounts": [{"name": "script", "mountPath": _FOLDER, "readOnly": True}],
        **({"args": arguments} if arguments else {}),
    }
    volume = {"name": "script", "configMap": {"name": f"{name}-script"}}
    spec = {
        "gpus": how["gpus"],
        "steps": how["steps"],
        **({"gpuTypes": list(how["gpu_types"])} if how["gpu_types"] else {}),
        **({"tenant": how["tenant"]} if how["tenant"] else {}),
        **({"profile": {"mode": "Skip"}} if how["skip_profile"] else {}),
        "template": {"spec": {"containers": [container], "volumes": [volume]}},
    }
    script_map = {"metadata": {"name": f"{name}-script"}, "data": {script.name: text}}
    return {"metadata": {"name": name}, "spec": spec, "script": script_map}, text


def _name_of(script: Path) -> str:
    stem = re.sub(r"[^a-z0-9]+", "-", script.stem.lower()).strip("-") or "job"
    return f"{stem[: MAX_JOB_NAME - 14].strip('-')}-{uuid.uuid4().hex[:5]}"


def job_of_file(filename: str) -> Object:
    """The TrainingJob of a YAML file. Raises BadInputError where that is not what the file has."""
    try:
        documents = [one for one in yaml.safe_load_all(read_input(filename, "--filename")) if one]
    except yaml.YAMLError as error:
        raise BadInputError(f"--filename: {filename} is not YAML: {' '.join(str(error).split())}") from error
    jobs = [one for one in documents if isinstance(one, dict) and one.get("kind") == TRAINING_JOBS.kind]
    if len(jobs) != 1 or len(documents) != 1:
        raise BadInputError(
            f"--filename: {filename} has {len(documents)} objects, {len(jobs)} of them TrainingJobs; give one, or use "
            "kubectl apply"
        )
    found: Object = jobs[0]
    return found


async def _create(cluster: Cluster, manifest: Object, text: str | None, *, dry: bool) -> Object:
    """The job first, then the ConfigMap that it owns: its pods wait for it. Neither is left without the other."""
    body = {key: value for key, value in manifest.items() if key != "script"}
    namespace = body.get("metadata", {}).get("namespace") or cluster.own_namespace
    created = await cluster.client.create(TRAINING_JOBS, body, namespace, dry_run=dry)
    if text is None:
        return created
    metadata = created["metadata"]
    owner = {
        "apiVersion": TRAINING_JOBS.api_version,
        "kind": TRAINING_JOBS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    script = manifest["script"]
    script["metadata"]["ownerReferences"] = [owner]
    try:
        await cluster.client.create(CONFIG_MAPS, script, namespace, dry_run=dry)
    except ApiError:
        if not dry:
            await cluster.client.delete(TRAINING_JOBS, metadata["name"], namespace)
        raise
    return created


async def _ended(cluster: Cluster, job: SeenJob) -> SeenJob:
    """The job once it has ended. Each new reason is told on the way."""
    told = ""
    while True:
        try:
            job = read(await cluster.client.get(TRAINING_JOBS, job.name, job.namespace))
        except NotFound:
            raise click.ClickException(f"{job.full_name} was deleted before it ended") from None
        answer = why(job, (), time.time())
        line = f"{answer.phase}: {answer.reason}"
        if line != told:
            told = line
            click.echo(f"{line}: {answer.message}" if answer.message else line, err=True)
        if job.finished:
            return job
        await asyncio.sleep(_POLL_S)


@click.command("suspend")
@job_argument
@cluster_options()
def suspend_command(*, job: str, where: Where) -> None:
    """Hold a job: it writes a checkpoint, leaves its GPUs and is not planned until it is resumed."""
    _set_suspend(job, where, suspend=True)


@click.command("resume")
@job_argument
@cluster_options()
def resume_command(*, job: str, where: Where) -> None:
    """Let a suspended job go on from its checkpoint."""
    _set_suspend(job, where, suspend=False)


def _set_suspend(name: str, where: Where, *, suspend: bool) -> None:
    async def question(cluster: Cluster) -> None:
        job = await cluster.job(name)
        word = "suspended" if suspend else "resumed"
        if job.finished:
            raise click.ClickException(f"{job.full_name} has ended ({job.phase}); nothing is changed")
        if job.spec.suspend == suspend:
            click.echo(f"trainingjob.kube-synergy.dev/{name} unchanged: it is {word} already")
            return
        await cluster.client.merge_patch(TRAINING_JOBS, name, {"spec": {"suspend": suspend}}, cluster.own_namespace)
        click.echo(f"trainingjob.kube-synergy.dev/{name} {word}")

    ask(where, question)
