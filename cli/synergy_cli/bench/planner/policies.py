"""`kube-synergy bench planner --policies`: processor seconds of one plan under each policy."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click

from synergy_cli.bench.planner.next_round import next_rounds
from synergy_cli.bench.workload import a_round_later, cluster
from synergy_cli.text_table import text_table
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_core.policies import POLICIES

NODES, JOBS = 1_280, 5_000
MECHANISMS = ("proportional", "tune")
AIM_S = 1.0
"""Processor seconds that one round may take."""


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One policy on one mechanism. All times are processor seconds of one plan."""

    policy: str
    mechanism: str
    first_s: float
    """A leader's first round, which remembers nothing."""
    next_s: float
    """A later one: 1 % of the running jobs have ended, and as many have come."""
    within_aim: bool


def measure_policies(*, types: int, seed: int, only: Sequence[str], as_json: bool) -> None:
    """Measures all policies, or those of `only`, on so many GPU types, and prints a table or a JSON object."""
    start = cluster(nodes=NODES, jobs=JOBS, seed=seed, types=types)
    snapshot = a_round_later(start, plan(start, PlanConfig(policy="las", mechanism="tune")), seed=seed + 1)
    cases = []
    for policy in only or sorted(POLICIES):
        for mechanism in MECHANISMS:
            if not as_json:
                click.echo(f"{policy}, {mechanism} ...", err=True)
            found = next_rounds(snapshot, PlanConfig(policy=policy, mechanism=mechanism), seed=seed + 2)
            cases.append(PolicyCase(policy, mechanism, found.first, found.seconds, found.first <= AIM_S))
    if as_json:
        report = {"benchmark": "planner", "policies": True, "seed": seed, "aim_s": AIM_S}
        sizes = {"gpus": NODES * 8, "jobs": JOBS, "types": types}
        click.echo(json.dumps({**report, **sizes, "cases": [asdict(case) for case in cases]}))
        return
    click.echo(_text(cases))
    click.echo(f"processor seconds of one round: {NODES * 8} GPUs, {JOBS} jobs, GPU types: {types}")


def _text(cases: Sequence[PolicyCase]) -> str:
    by_policy = {(case.policy, case.mechanism): case for case in cases}
    header = ("policy", *(f"{mechanism}: {which}" for mechanism in MECHANISMS for which in ("first s", "next s")))
    rows = []
    for policy in dict.fromkeys(case.policy for case in cases):
        row = [policy]
        for mechanism in MECHANISMS:
            case = by_policy[policy, mechanism]
            row += [f"{case.first_s:.2f}", f"{case.next_s:.2f}"]
        rows.append(tuple(row))
    return text_table(header, rows)
