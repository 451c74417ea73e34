"""A start for many samples from few of them: nested samples.

With many samples for each coefficient, a solution on a sixteenth of them is within sampling error
of the solution on all.  It costs a sixteenth, and from there on each fourfold sample needs a Gram
matrix or two (``method``), because the distance to go is known: margins change by about
``√(n (1/p - 1/q) / N)`` between samples with shares p and q of all N.

Which samples are taken depends on their numbers alone, not on how the rows are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...problem.problem import Problem
from ...problem.result import Monitor, Status
from ...rows.arrays import FloatArray
from ...rows.blocks import Block
from ...rows.matrix import held, thin_copy
from ...rows.memory import MemoryRows
from ...rows.reductions import Stack, Sum
from ..interior_point.progress import Progress
from ..interior_point.scaled import Scaled
from ..starts import start_pays
from .first_order import descend
from .kink_band import gathered_matrix
from .method import Guess, solve_from
from .step import Work, most_entries

#: Each sample has so many times the samples of the one before.
_GROWTH = 4

#: Samples for each coefficient in the smallest sample, at least, and how many sizes there may be.
#: Rare features of sparse data make for a larger sampling error than numbers alone: with 66 samples
#: for each coefficient a9a took twice as long as from nothing, with 29 w8a five times.
_LEAST_RATIO, _LEAST_RATIO_SPARSE = 20, 200
_MOST_LEVELS = 3

#: Entries of X below which samples save no time: (12000, 10) takes as long either way.
_FEW_ENTRIES = 500_000

#: How exactly (P) is solved on the smallest sample, and on the others: shares of what the objective
#: of all samples is expected to be above its minimum there.
_FIRST_SHARE, _SHARE = 0.03, 0.01

#: How far a solution on more samples is expected, in units of the sampling error of margins.
_SPREAD = 2.0

#: Gradients start on this share of the samples; from this sampling error of margins on those
#: of all samples pay.
_SHARE_FIRST, _SMALL_ERROR = 1.0 / 16.0, 0.12

#: Solves a scaled problem from nothing.
ColdSolver = Callable[[Scaled, Progress], Status]


def shares(problem: Problem) -> list[float]:
    """Shares of the samples, ascending, that lead to all of them; none if those are too few."""
    rows = problem.rows
    if rows.n_nonzeros < _FEW_ENTRIES:
        return []
    least = _LEAST_RATIO if _dense(problem) else _LEAST_RATIO_SPARSE
    ratio = rows.n_samples / (least * rows.n_columns)
    levels = min(int(math.log(ratio, _GROWTH)), _MOST_LEVELS) if ratio > 1.0 else 0
    found = [float(_GROWTH) ** -k for k in range(levels, 0, -1)]
    return [share for share in found if share * rows.n_nonzeros <= most_entries(rows)]


def _dense(problem: Problem) -> bool:
    rows = problem.rows
    return rows.n_nonzeros >= 0.5 * rows.n_samples * (rows.n_columns - problem.fit_intercept)


def nested_guess(problem: Problem, solve_cold: ColdSolver, work: Work) -> Guess | None:
    """A start for ``problem`` from samples of its samples; None where they do not lead there."""
    levels = shares(problem)
    if not levels:
        return None
    largest, places = _sampled(problem, levels[-1])
    guess, share_before = None, 0.0
    for share in levels:
        part = _part(largest, places < share)
        if part is None:
            return None
        sample = replace(problem, rows=part)
        scaled, progress = (
            Scaled.of(sample),
            Progress(sample, _tolerance(problem, share, first=guess is None), Monitor()),
        )
        if guess is None:
            status = solve_cold(scaled, progress)
        else:
            guess = replace(guess, spread=_spread(problem, share_before, share))
            status = solve_from(scaled, progress, guess, Work(), max_iter=progress.n_iter + 6)
        work.sample_grams += progress.n_iter * part.n_samples / problem.rows.n_samples
        if status is not Status.OPTIMAL:
            return None
        coefficients = progress.coefficients
        guess = Guess(coefficients, sample.best_lambda(coefficients))
        share_before = share
    return None if guess is None else replace(guess, spread=_spread(problem, share_before, 1.0))


def easy_guess(scaled: Scaled, work: Work) -> Guess | None:
    """A start by gradients alone, for dense data whose columns hardly depend on each other."""
    problem, rows = scaled.problem, scaled.problem.rows
    if not (_dense(problem) and start_pays(rows.n_nonzeros, known=False)):
        return None
    reached, here = None, isinstance(rows, MemoryRows)
    if rows.n_samples * _SHARE_FIRST >= _LEAST_RATIO * rows.n_columns:
        block, places = _sampled(problem, _SHARE_FIRST)
        part = _part(block, places < _SHARE_FIRST)
        if part is None:
            return None
        error = _spread(problem, _SHARE_FIRST, 1.0)
        reached = descend(Scaled.of(replace(problem, rows=part)), close=0.1 * error)
        if reached is None:
            return None
        work.gradient_steps += _SHARE_FIRST * reached.steps
        if not here or error <= _SMALL_ERROR:
            return replace(reached.guess, spread=error)
    reached = descend(scaled, reached) if here else None
    if reached is None:
        return None
    work.gradient_steps += reached.steps
    return reached.guess


def _spread(problem: Problem, before: float, now: float) -> float:
    """By how much margins are expected to change from one sample to the next."""
    rows = problem.rows
    return _SPREAD * math.sqrt(rows.n_columns * (1.0 / before - 1.0 / now) / rows.n_samples)


def _tolerance(problem: Problem, share: float, *, first: bool) -> float:
    """How exactly to solve on a share of the samples: ``n (1/p - 1) / 2N`` is what it costs."""
    excess = 0.5 * problem.rows.n_columns * (1.0 / share - 1.0) / problem.rows.n_samples
    return (_FIRST_SHARE if first else _SHARE) * excess


def _sampled(problem: Problem, share: float) -> tuple[Block, FloatArray]:
    """A sample as one block in memory, with the place of each sample in (0, 1)."""
    rows = problem.rows
    _, (places, numbers, y, weights, *parts) = rows.run(_take, rows.offsets, share)
    X = gathered_matrix(tuple(parts), rows.n_columns - problem.fit_intercept)
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers)
        places, y, weights, X = places[order], y[order], weights[order], X[order]
    return Block(X, y, weights, problem.fit_intercept), places


def _part(block: Block, kept: np.ndarray[Any, Any]) -> MemoryRows | None:
    """Some samples of a block as rows; None if a class is missing."""
    index = np.flatnonzero(kept)
    X, y, weights = block.X, block.y, block.weights
    if index.size < y.size:
        X, y, weights = X[index], y[index], weights[index]
    if not (weights[y > 0.0].any() and weights[y < 0.0].any()):
        return None
    whole = Block(held(X), y, weights / weights.sum(), block.intercept, thin_copy(X))
    return MemoryRows([whole], 1, whole)


def _take(block: Block, offset: int, share: float) -> tuple[None, tuple[Stack | Sum, ...]]:
    """Samples whose place is below ``share``: places, numbers, labels, weights, rows."""
    numbers = offset + np.arange(block.y.size)
    places = _places(numbers)
    index = np.flatnonzero(places < share)
    X = block.X[index]
    heads = Stack(places[index]), Stack(numbers[index]), Stack(block.y[index])
    weights = Stack(block.weights[index])
    if sp.issparse(X):
        entries = Stack(X.data), Stack(X.indices), Stack(np.diff(X.indptr))
        return None, (*heads, weights, *entries)
    return None, (*heads, weights, Stack(X))


def _places(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> FloatArray:
    """A number in [0, 1) for each sample, as if drawn at random: the mixer of SplitMix64."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)
