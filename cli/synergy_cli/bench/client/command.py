"""The command: two tables, or one JSON object."""

import asyncio
import json
from typing import Any

import aiohttp
import click

from synergy_cli.bench.client import decoding, writes
from synergy_cli.text_table import text_table
from synergy_kube import ApiError, NoClusterError


@click.command("client")
@click.option(
    "--pods", default=10_000, show_default=True, type=click.IntRange(1), help="Number of pods in the list to decode."
)
@click.option(
    "--requests",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    help="Number of writes per figure, to the cluster of KUBECONFIG. 0 needs no cluster.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def client_command(pods: int, requests: int, as_json: bool) -> None:
    """Compare the project's API client with the `kubernetes` package: decoding and writes."""
    try:
        written = asyncio.run(writes.measure(requests)) if requests else []
    except (NoClusterError, ApiError, aiohttp.ClientError, TimeoutError) as error:
        raise click.UsageError(f"the cluster cannot be measured: {error or 'no answer in time'}") from error
    report = report_of(pods, decoding.measure(pods), requests, written)
    click.echo(json.dumps(report) if as_json else text(report))


def report_of(
    pods: int, decoded: list[decoding.Decoded], requests: int, written: list[writes.Written]
) -> dict[str, Any]:
    """All figures, and the ratio of each to the project's own: `msgspec` of the same form, and `KubeClient`."""
    own = {one.way.partition(", ")[2]: one for one in decoded if one.way.startswith("msgspec")}
    ours = {one.write: one for one in written if one.way == "KubeClient"}
    return {
        "benchmark": "client",
        "pods": pods,
        "requests": requests,
        "decoding": [
            {
                **one._asdict(),
                "seconds_ratio": one.seconds / own[form].seconds,
                "peak_ratio": one.peak_mib / max(own[form].peak_mib, 1.0),
            }
            for one in decoded
            for form in [one.way.partition(", ")[2]]
        ],
        "writes": [
            {
                **one._asdict(),
                "ratio": one.milliseconds / ours[one.write].milliseconds,
                "cpu_ratio": one.cpu_ms / ours[one.write].cpu_ms,
            }
            for one in written
        ],
    }


def text(report: dict[str, Any]) -> str:
    """The report as tables."""
    decoded = text_table(
        (f"decode {report['pods']} pods", "s", "ratio", "peak MiB", "ratio"),
        [
            (
                one["way"],
                f"{one['seconds']:.3f}",
                f"{one['seconds_ratio']:.1f}",
                f"{one['peak_mib']:.0f}",
                f"{one['peak_ratio']:.1f}",
            )
            for one in report["decoding"]
        ],
    )
    if not report["writes"]:
        return decoded
    written = text_table(
        ("write", "way", "ms", "ratio", "cpu ms", "ratio"),
        [
            (
                one["write"],
                one["way"],
                f"{one['milliseconds']:.2f}",
                f"{one['ratio']:.2f}",
                f"{one['cpu_ms']:.2f}",
                f"{one['cpu_ratio']:.2f}",
            )
            for one in report["writes"]
        ],
    )
    return f"{decoded}\n\n{written}"
