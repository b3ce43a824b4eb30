"""Ratios of alternated rounds."""

from __future__ import annotations

import numpy as np


def ratio_interval(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """The median of the ratios round by round, and the ends of its 95 % bootstrap interval."""
    ratios = np.array(ours) / np.array(theirs)
    rng = np.random.default_rng(7)
    medians = np.median(rng.choice(ratios, (2000, len(ratios))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)
