"""What a job's fraction depends on: of which weights it is the sum, and each one's factor (`effects`)."""

from collections.abc import Mapping, Sequence

from synergy_core.model.usage import Usage

Feature = tuple[str, str]
"""A kind of weight, and the model or configuration whose weight it is (nothing for those of the load)."""

LOAD = ("partners", "compute", "product", "excess")
RANDOM = ("own", "own x compute", "own configuration", "partner", "partner x own", "partner configuration", "pair")
BESIDE = " beside "
"""Between the two models in the name of a pair."""


def features_of_all(usages: Sequence[Usage]) -> list[dict[Feature, float]]:
    """Of each of the jobs that share a GPU."""
    return [features_of(own, (*usages[:index], *usages[index + 1 :])) for index, own in enumerate(usages)]


def features_of(own: Usage, partners: Sequence[Usage]) -> dict[Feature, float]:
    """Of a job beside others."""
    load = sum(partner.compute for partner in partners)
    found: dict[Feature, float] = {
        ("partners", ""): float(len(partners)),
        ("compute", ""): load,
        ("product", ""): own.compute * load,
        ("excess", ""): max(0.0, own.compute + load - 1.0),
    }
    if own.model:
        found["own", own.model] = 1.0
        found["own x compute", own.model] = load
        found["own configuration", configuration(own)] = 1.0
    for partner in partners:
        if partner.model:
            weights = (
                (("partner", partner.model), 1.0),
                (("partner x own", partner.model), own.compute),
                (("partner configuration", configuration(partner)), 1.0),
            )
            for feature, value in weights:
                found[feature] = found.get(feature, 0.0) + value
        if own.model and partner.model:
            beside = ("pair", f"{own.model}{BESIDE}{partner.model}")
            found[beside] = found.get(beside, 0.0) + 1.0
    return found


def configuration(usage: Usage) -> str:
    """The name of a model's configuration."""
    return f"{usage.model} {usage.configuration}"


def dot(features: Mapping[Feature, float], weights: Mapping[Feature, float]) -> float:
    """The sum of the weights, each times its factor."""
    total = 0.0
    for feature, value in features.items():  # in turn: from Python 3.12 on, `sum` rounds otherwise than arrays do
        total += value * weights.get(feature, 0.0)
    return total
