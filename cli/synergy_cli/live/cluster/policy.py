"""`kubectl synergy policy`: the policy in force, and changes of it."""

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import click
import yaml

from kube_synergy.live.present import NodesHiddenError, Present, look
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_cli.choice import Choice
from synergy_cli.errors import BadInputError, OneLineGroup
from synergy_cli.live.access import Cluster, Object, Where, ask, hidden_nodes
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import note, write_data, write_line
from synergy_cli.live.what_if import tell_other_policy
from synergy_core.model.names import nearest, not_there
from synergy_kube.resources import SCHEDULING_POLICIES


@click.group("policy", cls=OneLineGroup)
def policy_command() -> None:
    """Show the policy in force, or change it."""


@policy_command.command("show")
@cluster_options()
@output_option(wide=False)
def show(*, where: Where, output: str) -> None:
    """Show the policy in force, and the fields of the SchedulingPolicy that differ from the defaults."""

    async def question(cluster: Cluster) -> dict[str, Any]:
        found: dict[str, Any] = await cluster.client.get(SCHEDULING_POLICIES, DEFAULT_POLICY_NAME)
        return found

    item = ask(where, question)
    status = item.get("status") or {}
    if output != "table":
        write_data({"spec": item.get("spec") or {}, "inForce": status.get("inForce")}, output)
        return
    in_force = status.get("inForce")
    if in_force is None:
        write_line("no extender has said yet what it follows: kubectl synergy doctor")
    else:
        words = [in_force["policy"], f"with {in_force['mechanism']}", f"in rounds of {in_force['roundSeconds']} s"]
        words += ["without regard to GPU types"] if in_force.get("agnostic") else []
        words += ["placement-sensitive"] if in_force.get("placementSensitive") else []
        write_line(f"in force: {' '.join(words)}")
        if in_force.get("allocation"):
            write_line(f"its allocation is {in_force['allocation']}: no new optimum was found in time")
    for condition in status.get("conditions") or []:
        if condition["type"] == "Valid" and condition["status"] == "False":
            write_line(f"the SchedulingPolicy is not followed: {condition['reason']}: {condition.get('message', '')}")
    for name, value in sorted((item.get("spec") or {}).items()):
        if value != _DEFAULTS.get(name):
            write_line(f"  {name}: {value}")


_DEFAULTS = SchedulingPolicySpec().to_wire()


@policy_command.command("set")
@click.argument("changes", metavar="FIELD=VALUE...", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--dry-run", type=Choice(["none", "server"]), default="none", help="server: check the change, but do not make it."
)
@cluster_options()
def set_(*, changes: tuple[str, ...], yes: bool, dry_run: str, where: Where) -> None:
    """Change fields of the SchedulingPolicy `default`, such as policy=las or queues.promoteKnob=4.

    The API server checks the change. Then the command shows what it would do to the present jobs, and on a terminal
    you are asked. The extender follows the change at the next plan.
    """
    patch: dict[str, Any] = {}
    for change in changes:
        path, equals, value = change.partition("=")
        if not equals or not path:
            raise BadInputError(f"FIELD=VALUE: {change!r} has no =; write for example policy=las")
        check_spelling(path.removeprefix("spec.").split("."), value)
        _put(patch, path, _parsed(value))

    def patched(*, dry: bool) -> Callable[[Cluster], Coroutine[Any, Any, Object]]:
        async def question(cluster: Cluster) -> Object:
            return await cluster.client.merge_patch(
                SCHEDULING_POLICIES, DEFAULT_POLICY_NAME, {"spec": patch}, strict=True, dry_run=dry
            )

        return question

    _preview(where, ask(where, patched(dry=True)))
    if dry_run != "server":
        if not yes and _on_a_terminal():
            click.confirm("change the policy?", abort=True)
        ask(where, patched(dry=False))
    click.echo(
        f"schedulingpolicy.kube-synergy.dev/{DEFAULT_POLICY_NAME} changed"
        + (" (dry run)" if dry_run == "server" else "")
    )


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _preview(where: Where, changed: Object) -> None:
    """Show the effect of the changed policy. If it cannot be simulated, show the reason: the change is still
    possible."""

    async def question(cluster: Cluster) -> Present:
        try:
            return await look(cluster)
        except NodesHiddenError:
            raise hidden_nodes() from None

    try:
        present = ask(where, question)
        if present.state.jobs:
            tell_other_policy(present, changed)
    except click.ClickException as error:
        note(f"what the change would do is not known: {error.message}")


def check_spelling(path: Sequence[str], value: str) -> None:
    """Raise BadInputError for a field or a name that is similar to a known one. The API server checks all others."""
    kind: Any = SchedulingPolicySpec
    for name in path:
        known = {field.alias or key: field.annotation for key, field in kind.model_fields.items()}
        if name not in known:
            _refuse(".".join(path), name, known)
            return
        kind = known[name]
        if not hasattr(kind, "model_fields"):
            break
    names = get_args(kind) if get_origin(kind) is Literal else ()
    if names and value not in names:
        _refuse(".".join(path), value, names)


def _refuse(field: str, name: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if nearest(name, names) is not None:
        raise BadInputError(f"{field}: {not_there(name, names)}")


def _put(patch: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.removeprefix("spec.").split(".")
    for parent in parents:
        patch = patch.setdefault(parent, {})
    patch[last] = value


def _parsed(text: str) -> Any:
    """A value in YAML: a number, a boolean, a list in brackets, or text. `null` removes the field."""
    try:
        return yaml.safe_load(text) if text else ""
    except yaml.YAMLError as error:
        raise BadInputError(f"FIELD=VALUE: {text!r} is not YAML: {' '.join(str(error).split())}") from error
