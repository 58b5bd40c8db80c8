"""`kubectl synergy submit`, `suspend` and `resume`: users' actions on their own jobs."""

from pathlib import Path
from typing import Any, cast

import click
import yaml

from kube_synergy.errors import InvalidJobError
from kube_synergy.live.following import states
from kube_synergy.live.submitting import create, set_suspend
from kube_synergy.making.options import JobOptions
from kube_synergy.making.program import program_of_script
from kube_synergy.making.submission import Submission, submission_of, submission_of_manifest
from kube_synergy.status import status_of
from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError
from synergy_cli.files import read_input
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.options import cluster_options, job_argument
from synergy_cli.live.output import write_line
from synergy_kube import NotFound
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.seen import SeenJob


@click.command("submit")
@click.argument("script", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-f", "--filename", help="Manifest of a TrainingJob instead of a script (- for standard input).")
@click.option("--name", help="Name of the job.  [default: the script's, with a random suffix]")
@click.option("--image", help="Image that runs the script. It needs python3 and the packages that the script imports.")
@click.option("--gpus", type=click.IntRange(1), default=1, show_default=True, help="GPUs of the whole job.")
@click.option("--steps", type=click.IntRange(1), help="Training steps until the job is done.")
@click.option("--epochs", type=click.IntRange(1), help="Passes over the data until the job is done, instead of steps.")
@click.option("--max-run-seconds", type=click.IntRange(1), help="Seconds of training until the job is done, instead.")
@click.option("--gpu-type", "gpu_types", multiple=True, help="GPU type that the job may use; may be repeated.")
@click.option("--tenant", help="Tenant of the job.")
@click.option("--after", multiple=True, metavar="JOB", help="Job that must succeed before; may be repeated.")
@click.option("--array", type=click.IntRange(1), help="Make so many jobs, with their index in SYNERGY_ARRAY_INDEX.")
@click.option("--max-parallel", type=click.IntRange(1), help="Of these, how many exist unfinished at a time.")
@click.option(
    "--skip-profile", is_flag=True, help="Do not profile the job: give it its GPU-proportional share of CPU and memory."
)
@click.option("--checkpoints", metavar="CLAIM", help="Existing PersistentVolumeClaim to mount at /checkpoints.")
@click.option(
    "--checkpoint-storage",
    metavar="SIZE",
    help="Create a volume of this size for /checkpoints. It is deleted with the job.",
)
@click.option(
    "--dry-run", type=Choice(["none", "server"]), default="none", help="server: check the job, but do not create it."
)
@click.option("--wait", is_flag=True, help="Wait until the job has ended; exit with 1 if it failed.")
@cluster_options()
def submit_command(
    *, script: Path | None, arguments: tuple[str, ...], filename: str | None, where: Where, dry_run: str, wait: bool,
    **how: Any,
) -> None:  # fmt: skip
    """Submit a training script, or the manifest of a TrainingJob.

    The command puts the script into a ConfigMap of the job, so you need not build an image.
    """
    if (script is None) == (filename is None):
        raise BadInputError("give either a SCRIPT or --filename")
    submission = _of_script(script, arguments, how) if script is not None else _of_file(filename or "-")
    if wait and dry_run == "server":
        raise BadInputError("--wait: nothing is created by --dry-run=server; leave one of them out")

    async def question(cluster: Cluster) -> SeenJob:
        created = await create(cluster, submission, dry_run=dry_run == "server")
        dry = " (dry run)" if dry_run == "server" else ""
        write_line(f"trainingjob.kube-synergy.dev/{created.name} created{dry}")
        return await _ended(cluster, created) if wait else created

    if ask(where, question).phase == "Failed":
        raise click.exceptions.Exit(1)


def _of_script(script: Path, arguments: tuple[str, ...], how: dict[str, Any]) -> Submission:
    if not how["image"]:
        raise BadInputError("--image: a script needs it")
    if sum(how[option] is not None for option in ("steps", "epochs", "max_run_seconds")) != 1:
        raise BadInputError("--steps: a script needs one of --steps, --epochs and --max-run-seconds")
    given = {key: value for key, value in how.items() if value and key != "skip_profile"}
    given["profile"] = "Skip" if how["skip_profile"] else "Auto"
    try:
        return submission_of(program_of_script(script, arguments), cast(JobOptions, given))
    except InvalidJobError as error:
        raise BadInputError(str(error)) from error


def _of_file(filename: str) -> Submission:
    return submission_of_manifest(job_of_file(filename))


def job_of_file(filename: str) -> Object:
    """The TrainingJob of a YAML file. Raises BadInputError if the file has anything else."""
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


async def _ended(cluster: Cluster, created: SeenJob) -> SeenJob:
    """Wait until the job has ended, and print each new reason."""
    job, told = created, ""
    try:
        async for state in states(Cluster(cluster.client, created.namespace), created.name, created.uid):
            job, now = state, status_of(state)
            if (line := f"{now.phase}: {now.reason}") != told:
                told = line
                write_line(str(now), err=True)
    except NotFound:
        raise click.ClickException(f"{created.full_name} was deleted before it ended") from None
    return job


@click.command("suspend")
@job_argument
@cluster_options()
def suspend_command(*, job: str, where: Where) -> None:
    """Suspend a job: it writes a checkpoint, releases its GPUs and waits until you resume it."""
    _set_suspend(job, where, suspend=True)


@click.command("resume")
@job_argument
@cluster_options()
def resume_command(*, job: str, where: Where) -> None:
    """Resume a suspended job from its checkpoint."""
    _set_suspend(job, where, suspend=False)


def _set_suspend(name: str, where: Where, *, suspend: bool) -> None:
    job, changed = ask(where, lambda cluster: set_suspend(cluster, name, suspend=suspend))
    word = "suspended" if suspend else "resumed"
    if job.finished:
        raise click.ClickException(f"{job.full_name} has ended ({job.phase}); nothing is changed")
    told = word if changed else f"unchanged: it is {word} already"
    write_line(f"trainingjob.kube-synergy.dev/{name} {told}")
