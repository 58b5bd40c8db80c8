"""`kubectl synergy dashboard`: the web page on the user's own machine, with the user's own rights."""

import asyncio
import re
import shutil
import subprocess
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from synergy_cli.errors import BadInputError
from synergy_cli.live.access import Where
from synergy_cli.live.options import cluster_options
from synergy_cli.live.record import system_namespace_option
from synergy_kube import NoClusterError
from synergy_kube.credentials import bearer_token

_SERVICE: Final = "svc/kube-synergy-dashboard"
_VIEWER: Final = "kube-synergy-dashboard-viewer"
_FORWARDED: Final = re.compile(r"Forwarding from (127\.0\.0\.1:\d+)")


@click.command("dashboard")
@system_namespace_option
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port on this machine.  [default: a free one]")
@click.option(
    "--open/--no-open", "opens", default=True, help="Open the page in the browser, or only print its address."
)
@cluster_options()
def dashboard_command(*, system_namespace: str, port: int, opens: bool, where: Where) -> None:
    """Forward a port of this machine to the dashboard and open the page, until Ctrl-C.

    The page shows what you may see: it gets the token of your kubeconfig. If that has none, because you authenticate
    with a certificate, the command asks for a token of the ServiceAccount kube-synergy-dashboard-viewer, which
    administrators of the cluster may do. You need the right to forward ports to pods of the chart's namespace.
    """
    if shutil.which("kubectl") is None:
        raise BadInputError("there is no kubectl in the PATH, which forwards the port")
    token = _own_token(where) or _viewer_token(where, system_namespace)
    with _forwarded(where, system_namespace, port) as (address, forward):
        url = f"http://{address}/#token={token}"
        click.echo(f"The dashboard is at http://{address}/ until you press Ctrl-C.")
        if (opens and not webbrowser.open(url)) or not opens:
            click.echo(f"Open this address, which has your token: {url}")
        assert forward.stdout is not None
        try:
            for _ in forward.stdout:  # a line for each connection: kubectl would wait for whoever reads them
                pass
        except KeyboardInterrupt:
            return
    raise click.ClickException("kubectl has stopped forwarding the port")


def _own_token(where: Where) -> str:
    try:
        return asyncio.run(bearer_token(where.kubeconfig, where.context))
    except NoClusterError as error:
        raise BadInputError(str(error)) from error


def _viewer_token(where: Where, namespace: str) -> str:
    command = _kubectl(where, namespace, "create", "token", _VIEWER, "--duration=8h")
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise click.ClickException(
            f"your kubeconfig has no token, and you get none of the ServiceAccount {_VIEWER}: {made.stderr.strip()}. "
            "Ask your administrator for the dashboard's address behind single sign-on"
        )
    return made.stdout.strip()


@contextmanager
def _forwarded(where: Where, namespace: str, port: int) -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    """kubectl while it forwards, and the address on this machine."""
    command = _kubectl(where, namespace, "port-forward", "--address=127.0.0.1", _SERVICE, f"{port or ''}:80")
    forward = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # its errors go to the user's stderr
    try:
        assert forward.stdout is not None
        said = _FORWARDED.search(forward.stdout.readline())
        if said is None:
            raise click.ClickException(f"kubectl does not forward a port to {_SERVICE} of namespace {namespace}")
        yield said.group(1), forward
    finally:
        forward.terminate()
        forward.wait()


def _kubectl(where: Where, namespace: str, *arguments: str) -> list[str]:
    options = [f"--namespace={namespace}"]
    options += [f"--kubeconfig={where.kubeconfig}"] if where.kubeconfig else []
    options += [f"--context={where.context}"] if where.context else []
    return ["kubectl", *options, *arguments]
