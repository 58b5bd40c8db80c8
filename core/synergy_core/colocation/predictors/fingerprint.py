"""Which references a new model resembles, and which one to run it beside next (Gavel, sections 3.3 and 6, figure 8).

A model's fingerprint is what it keeps of its speed beside each reference, and what each keeps beside it: 2 R entries. A
few of them are measured. Each reference gets a weight: the probability that the new model behaves like it, by how near
the reference's entries are to the measured ones. The other entries are the weighted means of the references'.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from synergy_core.colocation.predictors.references import References
from synergy_core.model.arrays import Floats, Ints

NOISE = 0.1
"""Standard deviation of an entry of a model around that of the reference that it resembles."""
FILLED_IN_NOISE = 0.2
"""The same where the reference's entry was not measured but filled in."""
KNOWN_WELL = 0.05
"""Below this uncertainty of the entries, one more measurement is not worth its time."""
_LEAST_GAIN = 0.02
"""Part of the variance that a measurement must be expected to remove."""
TINY = 1e-300

Kept = tuple[float, float]
"""What a model kept beside a reference, and what the reference kept; NaN where it was not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """What few measurements tell of a model."""

    weights: Floats
    """R: the probability that the model behaves like each reference."""
    nearest: str
    """The reference with the highest one, of equal ones the first by name."""
    confidence: float
    """The probability of all references that are exactly like the nearest one."""
    uncertainty: float
    """Standard deviation of an entry, over the references as they are weighted; the root of the mean square of all."""


def fingerprint(references: References, measured: Mapping[str, Kept]) -> Fingerprint:
    """The fingerprint of a model that was measured beside these references; others in `measured` tell nothing here."""
    entries = references.fingerprints
    weights = _weights(references, _seen(references, measured))
    best = int(weights.argmax())
    alike = np.isclose(entries, entries[best]).all(axis=1)
    deviation = float(np.sqrt(_variance(weights, entries).mean()))
    return Fingerprint(weights, references.models[best], float(weights[alike].sum()), deviation)


def next_reference(
    references: References | None, measured: Mapping[str, Kept], available: Collection[str], *, most: int
) -> str | None:
    """The reference beside which a new model should run next; None if no further measurement helps.

    `available` are the models that can be run. The choice is the one after whose measurement the entries are expected
    to be known best. Models that nothing is known of come after all others, by name: they tell of themselves only.
    """
    left = sorted(set(available) - set(measured))
    if not left or len(measured) >= most:
        return None
    known = [] if references is None else [name for name in left if name in references.models]
    if references is None or not known:
        return left[0]
    now = fingerprint(references, measured)
    if measured and now.uncertainty < KNOWN_WELL:
        return None
    expected = {name: _expected_variance(now.weights, references, references.models.index(name)) for name in known}
    best = min(known, key=lambda name: (round(expected[name], 12), name))
    if measured and expected[best] > (1.0 - _LEAST_GAIN) * now.uncertainty**2:
        return None
    return best


def _seen(references: References, measured: Mapping[str, Kept]) -> Floats:
    """2 R entries; NaN where nothing was measured."""
    nothing = (np.nan, np.nan)
    return np.array([measured.get(name, nothing)[side] for side in (0, 1) for name in references.models], dtype=float)


def _weights(references: References, seen: Floats) -> Floats:
    there = ~np.isnan(seen)
    chances = _log_chances(references, np.flatnonzero(there), seen[None, there])[0]
    likely: Floats = np.exp(chances - chances.max())
    return np.asarray(likely / likely.sum())


def _log_chances(references: References, columns: Ints, values: Floats) -> Floats:
    """V x R: the logarithm of the chance that each reference has these values (V x C) in these columns (C)."""
    noise = np.where(references.known[:, columns], NOISE, FILLED_IN_NOISE)
    errors = (values[:, None, :] - references.fingerprints[None, :, columns]) / noise[None]
    return np.asarray(-(errors**2 / 2 + np.log(noise)[None]).sum(axis=2))


def _variance(weights: Floats, entries: Floats) -> Floats:
    """Of each entry, if the model behaves like each reference with this probability."""
    mean = weights @ entries
    return np.asarray(weights @ (entries - mean) ** 2)


def _expected_variance(weights: Floats, references: References, reference: int) -> float:
    """The mean variance of the entries that is left on average after a measurement beside this reference.

    The model is like each reference in turn, with its probability: the measurement is then that reference's.
    """
    entries = references.fingerprints
    columns = np.array([reference, len(entries) + reference])
    chances = _log_chances(references, columns, entries[:, columns])
    after = weights * np.exp(chances - chances.max(axis=1, keepdims=True))
    after /= np.maximum(after.sum(axis=1, keepdims=True), TINY)
    means = after @ entries
    left = (after @ entries**2 - means**2).mean(axis=1)
    return float(weights @ left)
