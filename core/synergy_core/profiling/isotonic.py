"""Isotonic regression: takes the noise out of values that cannot fall."""

from collections.abc import Sequence


def non_decreasing(values: Sequence[float]) -> list[float]:
    """The non-decreasing sequence with the smallest squared distance from `values` (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while blocks and blocks[-1][0] > mean:
            before, before_count = blocks.pop()
            mean = (mean * count + before * before_count) / (count + before_count)
            count += before_count
        blocks.append((mean, count))
    return [mean for mean, count in blocks for _ in range(count)]
