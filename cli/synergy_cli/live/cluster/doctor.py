"""`kubectl synergy doctor`: checks of the installation."""

import asyncio
import base64
import binascii
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import click
from cryptography import x509

from synergy_api.names import GROUP
from synergy_cli.live.access import Cluster, Object, Where, ask
from synergy_cli.live.nodes import gpu_nodes
from synergy_cli.live.options import cluster_options, output_option
from synergy_cli.live.output import coloured, write_data, write_line
from synergy_cli.live.record import system_namespace_option
from synergy_kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    GPU_POOLS,
    NODES,
    SCHEDULING_POLICIES,
    SECRETS,
    SELF_ACCESS_REVIEWS,
    TRAINING_JOBS,
)
from synergy_view.doctor import Check, Facts, diagnose
from synergy_view.words import printable

_ASKED = (("get", TRAINING_JOBS), ("create", TRAINING_JOBS), ("patch", TRAINING_JOBS), ("delete", TRAINING_JOBS))
_CERTIFICATE = "kube-synergy-extender-tls"


@click.command("doctor")
@system_namespace_option
@cluster_options()
@output_option(wide=False)
def doctor_command(*, system_namespace: str, where: Where, output: str) -> None:
    """Check the installation: versions, definitions, components, certificate, GPUs, MPS, clock and your rights.

    Exits with 1 if a check has failed.
    """

    async def question(cluster: Cluster) -> list[Check]:
        return diagnose(await _facts(cluster, system_namespace))

    checks = ask(where, question)
    if output != "table":
        write_data(checks, output)
    else:
        width = max(len(check.what) for check in checks)
        for check in checks:
            told = printable(f"{check.what:<{width}}  {check.found}")
            click.echo(f"{coloured(check.level)}{' ' * (8 - len(check.level))} {told}")
            if check.todo:
                write_line(f"{'':{width + 11}}to do: {check.todo}")
    if any(check.level == "failed" for check in checks):
        raise click.exceptions.Exit(1)


async def _facts(cluster: Cluster, system_namespace: str) -> Facts:
    client = cluster.client
    version, date = await asyncio.gather(client.server_version(), client.date())
    now = time.time()
    definitions, deployments, nodes, pools, policies, secrets = await asyncio.gather(
        cluster.items(CUSTOM_RESOURCE_DEFINITIONS),
        cluster.items(DEPLOYMENTS, system_namespace),
        cluster.items(NODES),
        cluster.items(GPU_POOLS),
        cluster.items(SCHEDULING_POLICIES),
        cluster.items(SECRETS, system_namespace, field_selector=f"metadata.name={_CERTIFICATE}"),
    )
    return Facts(
        server_version=version,
        clock_skew_s=parsedate_to_datetime(date).timestamp() - now if date else None,
        definitions=None if definitions is None else _by_plural(definitions),
        deployments=deployments,
        certificate_left_s=_left(secrets, now),
        nodes=nodes,
        capacities=gpu_nodes(nodes or (), pools or ()),
        pools=pools,
        policies=policies,
        permissions=await _permissions(cluster),
    )


def _by_plural(definitions: list[Object]) -> Mapping[str, Object]:
    return {item["spec"]["names"]["plural"]: item for item in definitions if item["spec"]["group"] == GROUP}


def _left(secrets: list[Object] | None, now: float) -> float | None:
    """Seconds until the certificate expires; None if it cannot be read."""
    data: dict[str, Any] = (secrets[0].get("data") or {}) if secrets else {}
    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
    except (KeyError, ValueError, binascii.Error):
        return None
    return certificate.not_valid_after_utc.timestamp() - now


async def _permissions(cluster: Cluster) -> dict[str, bool]:
    async def allowed(verb: str) -> bool:
        attributes = {"group": GROUP, "resource": "trainingjobs", "verb": verb, "namespace": cluster.own_namespace}
        review = {"spec": {"resourceAttributes": attributes}}
        answer = await cluster.client.create(SELF_ACCESS_REVIEWS, review)
        return bool(answer["status"]["allowed"])

    answers = await asyncio.gather(*(allowed(verb) for verb, _ in _ASKED))
    return {f"{verb} {resource.plural}": answer for (verb, resource), answer in zip(_ASKED, answers, strict=True)}
