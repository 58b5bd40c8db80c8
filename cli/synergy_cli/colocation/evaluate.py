"""The figures of `kube-synergy colocation evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synergy_cli.text_table import text_table
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.evaluation import (
    Bin,
    Score,
    calibration,
    judged,
    judged_after,
    score,
    threshold_accuracy,
)
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model.measurement import SharedMeasurement

OBSERVATIONS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """On families of models that were not seen."""

    scores: Mapping[str, Score]
    """By predictor: `sums` (the thesis') and `effects` (ours)."""
    threshold: float
    """Fraction of the measurements that a bound on the sum of compute predicts rightly."""
    after: Mapping[int, float]
    """Mean absolute error of an unseen job's fraction after so many observations of it."""
    calibration: Sequence[Bin]


def evaluations(measured: Sequence[SharedMeasurement]) -> Evaluation:
    """Judge both predictors; raises ValueError where too little is left to fit to."""
    ours = judged(measured, fit_effects)
    return Evaluation(
        scores={"sums": score(judged(measured, fit_sums)), "effects": score(ours)},
        threshold=threshold_accuracy(measured),
        after={seen: score(judged_after(measured, fit_effects, seen)).mae for seen in OBSERVATIONS},
        calibration=calibration(ours),
    )


def evaluation_text(found: Evaluation) -> str:
    """As tables."""
    header = ("predictor", "mean absolute error", "both keep 85 %", "85 % on average")
    rows = [
        (name, f"{one.mae:.4f}", f"{one.share_accuracy:.1%}", f"{one.mean_accuracy:.1%}")
        for name, one in found.scores.items()
    ]
    rows.append(("bound on the sum of compute", "-", f"{found.threshold:.1%}", "-"))
    any_ = next(iter(found.scores.values()))
    rows.append(("commoner answer", "-", f"{any_.commoner:.1%}", f"{any_.commoner_mean:.1%}"))
    after = [(str(seen), f"{mae:.4f}") for seen, mae in found.after.items()]
    bins = [
        (f"{one.low:.2f} to {one.high:.2f}", str(one.jobs), f"{one.predicted:.3f}", f"{one.true:.3f}",
         f"{one.deviation:.3f}")
        for one in found.calibration
    ]  # fmt: skip
    return "\n\n".join(
        [
            text_table(header, rows),
            text_table(("observations of the unseen job", "mean absolute error"), after),
            text_table(("predicted", "jobs", "mean predicted", "mean measured", "deviation"), bins),
        ]
    )
