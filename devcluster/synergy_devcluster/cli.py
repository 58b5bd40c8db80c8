"""``kube-synergy devcluster``: the devcluster's commands."""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from synergy_devcluster import cluster as clusters
from synergy_devcluster import gpus
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images.project import SOURCE, build_images, load_images
from synergy_devcluster.options import Options, parse_fake_nodes
from synergy_devcluster.paths import NAME_VARIABLE, Paths
from synergy_devcluster.programs import prerequisites
from synergy_devcluster.run_with import run_with
from synergy_devcluster.status_report import Status, status

Command = Callable[..., None]
GPUS_HELP = "Number of fake GPUs of each real node."
GPU_TYPE_HELP = "A100, H100, K80, P100, T4, V100, or a product name."
REPLICAS_HELP = "Number of jobs that may share a GPU of a real node, by MPS."
PREFERENCE_HELP = "GPU that a new client of a shared GPU gets: packed or distributed."
REAL_NODES_HELP = "Number of kubelets. They share this machine's CPUs."
FAKE_NODES_HELP = "kwok nodes: TYPE=NODESxGPUS[:cpu=24][:mem=500Gi],... for example V100=25x8,T4=25x8"


def one_line_errors(command: Command) -> Command:
    """Turn the devcluster's errors into one line on stderr: exit 2 for bad input, 1 for the rest."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except DevclusterError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2 if isinstance(error, BadInputError) else 1)

    return wrapper


@click.group()
@click.option("--name", help=f"Name, else ${NAME_VARIABLE}; a second devcluster needs its own network namespace.")
@click.pass_context
@one_line_errors
def devcluster(context: click.Context, name: str | None) -> None:
    """Run a real Kubernetes on this Linux machine, without Docker."""
    context.obj = Paths.of(name)


def cluster_options(command: Command) -> Command:
    """The options that say what a devcluster is made of; the command is given them as `options`."""

    @functools.wraps(command)
    def wrapper(*args: Any, gpu_count: int, gpu_type: str, fake_nodes: str, **rest: Any) -> None:
        names = ("real_nodes", "volumes", "bin_dir", "gpu_replicas", "gpu_preference", "gpu_renamed")
        own = {name: rest.pop(name) for name in names}
        options = Options(gpus=gpu_count, gpu=gpu_type, fake_nodes=parse_fake_nodes(fake_nodes), **own)
        command(*args, options=options, **rest)

    for option in (
        click.option("--bin-dir", type=click.Path(path_type=Path), help="Folder with programs of the pinned versions."),
        click.option("--volumes", type=int, default=64, show_default=True, help="Persistent volumes of 1 GiB."),
        click.option("--real-nodes", type=int, default=1, show_default=True, help=REAL_NODES_HELP),
        click.option("--fake-nodes", default="", help=FAKE_NODES_HELP),
        click.option("--gpu-renamed", is_flag=True, help="Shared GPUs are nvidia.com/gpu.shared."),
        click.option("--gpu-preference", default="distributed", show_default=True, help=PREFERENCE_HELP),
        click.option("--gpu-replicas", type=int, default=1, show_default=True, help=REPLICAS_HELP),
        click.option("--gpu-type", default="A100", show_default=True, help=GPU_TYPE_HELP),
        click.option("--gpus", "gpu_count", type=int, default=2, show_default=True, help=GPUS_HELP),
    ):
        wrapper = option(wrapper)
    return wrapper


@devcluster.command()
@click.pass_obj
@one_line_errors
@cluster_options
def up(paths: Paths, *, options: Options) -> None:
    """Start the devcluster if it does not run."""
    cluster = clusters.up(options, report=click.echo, paths=paths)
    click.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@devcluster.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True)
@click.pass_obj
@one_line_errors
@cluster_options
def run(paths: Paths, *, command: tuple[str, ...], options: Options) -> None:
    """Run COMMAND with KUBECONFIG set. Without a running devcluster, start one and remove it afterwards.

    The exit status is that of COMMAND.
    """
    sys.exit(run_with(options, command, paths=paths, report=click.echo))


@devcluster.command()
@click.pass_obj
@one_line_errors
def down(paths: Paths) -> None:
    """Stop and remove everything that `up` started and created."""
    if not clusters.down(report=click.echo, paths=paths):
        click.echo("no devcluster is here")


@devcluster.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@one_line_errors
def show_status(paths: Paths, as_json: bool) -> None:
    """Check that every component runs and that no packet can leave the machine; exit with 1 if not."""
    current = status(paths)
    click.echo(json.dumps(current.to_json()) if as_json else _in_words(current))
    if not current.healthy:
        sys.exit(1)


def _in_words(current: Status) -> str:
    if current.phase is None:
        return "no devcluster is running"
    shut = "; ".join(current.network_problems) or "nothing can leave the machine"
    lines = [
        f"phase    {current.phase}",
        f"options  {current.options}",
        f"nodes    {current.nodes_ready} of {current.nodes} ready",
        f"network  {shut}",
        f"logs     {current.logs}",
    ]
    for component in current.components:
        lines.append(f"{'up' if component.alive else 'DOWN':<8} {component.name} (pid {component.pid})")
        lines += [f"           {line}" for line in component.last_log_lines]
    return "\n".join(lines)


@devcluster.command("load-image")
@click.argument("archive", type=click.Path(path_type=Path))
@click.pass_obj
@one_line_errors
def load_image(paths: Paths, archive: Path) -> None:
    """Import an image ARCHIVE (docker or OCI) into the real node."""
    clusters.connect(paths).load_image(archive)


@devcluster.command("images")
@click.argument("names", nargs=-1, metavar="[NAMES]...")
@click.option("--source", type=click.Path(path_type=Path), default=SOURCE, help="The project's source tree.")
@click.option("--build-only", is_flag=True, help="Only build; no devcluster needs to run.")
@click.pass_obj
@one_line_errors
def project_images(paths: Paths, names: tuple[str, ...], source: Path, build_only: bool) -> None:
    """Build the project's images (all, or those of NAMES such as operator) and load those that the node lacks."""
    if build_only:
        for archive in build_images(source, only=names, paths=paths, report=click.echo).values():
            click.echo(archive)
        return
    given = load_images(clusters.connect(paths), source, only=names, report=click.echo)
    click.echo(f"{len(given)} images loaded" if given else "the node has them all")


@devcluster.command()
@click.pass_obj
@one_line_errors
def kubeconfig(paths: Paths) -> None:
    """Print the path of the administrator's kubeconfig."""
    click.echo(clusters.connect(paths).kubeconfig)


@devcluster.command("add-nodes")
@click.argument("groups")
@click.pass_obj
@one_line_errors
def add_nodes(paths: Paths, groups: str) -> None:
    """Add fake nodes to the running cluster: TYPE=NODESxGPUS[:cpu=24][:mem=500Gi],..."""
    clusters.connect(paths).add_nodes(parse_fake_nodes(groups))


@devcluster.command()
@click.argument("name")
@click.pass_obj
@one_line_errors
def program(paths: Paths, name: str) -> None:
    """Print the path of one of the cluster's programs, such as kubectl or helm."""
    click.echo(clusters.connect(paths).program(name))


@devcluster.command()
@click.argument("action", type=click.Choice(["start", "stop", "kill", "pause", "resume", "restart"]))
@click.argument("name")
@click.pass_obj
@one_line_errors
def component(paths: Paths, action: str, name: str) -> None:
    """Start, stop, kill, pause, resume or restart one component. Its data stay."""
    getattr(clusters.connect(paths).component(name), action)()


@devcluster.group("gpu")
def gpu() -> None:
    """List and change the fake GPUs of the real nodes."""


@gpu.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@one_line_errors
def list_gpus(paths: Paths, as_json: bool) -> None:
    """List the GPUs with UUID and health."""
    listed = gpus.listed(clusters.connect(paths))
    if as_json:
        click.echo(json.dumps({"gpus": [asdict(item) for item in listed]}))
        return
    for item in listed:
        click.echo(f"{item.uuid}  {item.node}  {'healthy' if item.healthy else 'unhealthy'}")


@gpu.command("unhealthy")
@click.argument("uuid")
@click.pass_obj
@one_line_errors
def make_unhealthy(paths: Paths, uuid: str) -> None:
    """Make the GPU with this UUID unhealthy."""
    gpus.set_health(clusters.connect(paths), uuid, healthy=False)


@gpu.command("healthy")
@click.argument("uuid")
@click.pass_obj
@one_line_errors
def make_healthy(paths: Paths, uuid: str) -> None:
    """Make the GPU with this UUID healthy again."""
    gpus.set_health(clusters.connect(paths), uuid, healthy=True)


@gpu.command("offer")
@click.option("--gpus", "count", type=int, required=True, help=GPUS_HELP)
@click.option("--gpu-replicas", type=int, default=1, show_default=True, help=REPLICAS_HELP)
@click.option("--gpu-preference", default="distributed", show_default=True, help=PREFERENCE_HELP)
@click.option("--gpu-renamed", is_flag=True, help="Shared GPUs are nvidia.com/gpu.shared.")
@click.pass_obj
@one_line_errors
def offer_gpus(paths: Paths, *, count: int, **sharing: Any) -> None:
    """Change the GPUs of the running real nodes. Pods keep the GPUs that they hold."""
    running = clusters.connect(paths)
    gpus.offer(running, Options(gpus=count, gpu=running.options.gpu, **sharing))


@gpu.command("offer-dra")
@click.option("--gpus", "count", type=int, required=True, help="GPUs of each real node; 0 takes them away.")
@click.option("--gpu-replicas", type=int, default=1, show_default=True, help=REPLICAS_HELP)
@click.pass_obj
@one_line_errors
def offer_dra_gpus(paths: Paths, *, count: int, gpu_replicas: int) -> None:
    """Give the running real nodes GPUs of DRA beside those of the device plugin."""
    gpus.offer_dra(clusters.connect(paths), count, gpu_replicas)


@devcluster.command("prerequisites")
@click.option("--install", is_flag=True, help="Install the missing Debian packages with apt-get.")
@one_line_errors
def show_prerequisites(install: bool) -> None:
    """List what this machine lacks for a devcluster, and how to install it."""
    if install:
        prerequisites.install(click.echo)
    prerequisites.check()
    click.echo("this machine has all that a devcluster needs")


@devcluster.command("build")
@click.pass_obj
@one_line_errors
def build(paths: Paths) -> None:
    """Build the programs and the base image in advance; the next `up` is then fast."""
    clusters.prepare(click.echo, paths)
