"""Corrections that make the slopes of pieces meet the equations of a dual point.

The bound (:mod:`drlogit.problem.domain_certificate`) wants ``g = Σ p y z`` to vanish for the
intercept, bounded and immovable features, and groups to keep to their inequalities.  A Newton
step in logit space, ``p - D y z·c`` with ``D = p (1 - p/q)`` and ``Σ D z zᵀ c = g`` in these
equations, removes what is left of them at the least cost to the value.  Nothing here needs to be
exact: what remains is paid for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..rows.arrays import FloatArray, IndexArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .piece_gram import piece_gram
from .piece_weights import Weights, WeightSums, curvature
from .problem import Problem

#: Directions whose eigenvalue is below this share of the largest are left alone.
_SINGULAR = 1e-10

#: The share of its slope that a step must leave to a piece for it to stay, where immovable features
#: may separate samples: their equations then hold only with no slope at all.
_LEFT = 1e-2


def immovable_columns(problem: Problem) -> IndexArray:
    """Features that cannot move, are not all zero, and are not combinations of others."""
    domains = problem.domains
    assert domains is not None
    free = problem.free & (problem.rows.column_scale > 0.0)
    free[domains.columns] = False
    free[domains.redundant(problem.fit_intercept)] = False
    if problem.fit_intercept:
        free[-1] = False
    return np.flatnonzero(free)


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations that a dual point with these signs has to meet, as columns of combinations.

    Intercept, bounded and immovable features have one each.  A group whose excess is negative
    needs none.  In others, categories whose entry of g is beyond a threshold (relative to ``Σ p``)
    share one with ``low`` (if negative) or ``high`` (if positive), which takes what they leave;
    the rest have their own.  Where all of a group's equations add up to the intercept's, one is
    left out.
    """

    problem: Problem
    columns: FloatArray

    @classmethod
    def of(cls, problem: Problem, here: WeightSums, threshold: float) -> Equations:
        domains = problem.domains
        assert domains is not None
        p, n_groups = problem.rows.n_columns, domains.n_groups
        g, limit = here.g, threshold * here.total
        columns: list[FloatArray] = []

        def add(*places: int) -> None:
            column = np.zeros(g.size)
            column[list(places)] = 1.0
            columns.append(column)

        offset = problem.fit_intercept
        if offset:
            add(p - 1)
        for place in [*domains.bounded.tolist(), *immovable_columns(problem).tolist()]:
            add(place)
        for k, group in enumerate(domains.groups):
            low, high = p + k, p + n_groups + k
            places, complete = group.tolist(), not domains.with_none[k]
            rooms = [
                g[low] - float(np.maximum(-g[group], 0.0).sum()),
                -g[high] - float(np.maximum(g[group], 0.0).sum()),
            ]
            if min(rooms) > limit:
                if complete and not offset:
                    add(*places, low, high)
                offset = offset or complete
                continue
            down = [j for j in places if g[j] < -limit and g[low] > limit]
            up = [j for j in places if g[j] > limit and g[high] < -limit]
            before = len(columns)
            for j in places:
                if j not in down and j not in up:
                    add(j)
            for side, end, room in ((down, low, rooms[0]), (up, high, rooms[1])):
                if not complete and room > limit:
                    continue
                if side:
                    add(*side, end)
                elif g[end] != 0.0 and complete:
                    add(end)
            if complete and offset and len(columns) > before:
                columns.pop()
            offset = offset or complete
        stacked = np.stack(columns, axis=1) if columns else np.zeros((g.size, 0))
        return cls(problem, stacked)

    def corrected(self, here: WeightSums) -> WeightSums | None:
        """The point after a step; None where there is nothing to correct, or no way to."""
        rows = self.problem.rows
        _, (gram,) = rows.run(_curvatures, here.weights)
        matrix = self.columns.T @ gram @ self.columns
        left = self.columns.T @ here.g
        diagonal = np.diagonal(matrix)
        # Where no piece has any slope, an equation holds, and nothing can change it.
        empty = (diagonal == 0.0) & (left == 0.0)
        if empty.all() or not (diagonal[~empty] > 0.0).all():
            return None
        scale = np.zeros_like(diagonal)
        scale[~empty] = 1.0 / np.sqrt(diagonal[~empty])
        unit = scale[:, None] * matrix * scale
        np.fill_diagonal(unit, 1.0)
        values, vectors = np.linalg.eigh(unit)
        large = values > _SINGULAR * values[-1]
        wanted = vectors.T @ (scale * left)
        step = self.columns @ (scale * (vectors[:, large] @ (wanted[large] / values[large])))
        least = _LEFT if immovable_columns(self.problem).size else 0.0
        return WeightSums.of(rows, rows.run(_shifted, here.weights, step, least)[0])


def _shifted(
    block: Block, weights: Weights, step: FloatArray, least: float
) -> tuple[Weights, tuple[()]]:
    """``p - D y z·step``, within [0, q]; nothing where less than a share of p is left."""
    pieces, q, p = weights
    base = block.y * block.margins(step[: block.n_columns])
    moved = p - curvature(q, p) * pieces.sign * pieces.scores(base, step)
    return Weights(pieces, q, np.where(moved > least * p, np.minimum(moved, q), 0.0)), ()


def _curvatures(block: Block, weights: Weights) -> tuple[Weights, tuple[Sum]]:
    pieces, q, p = weights
    none = np.zeros_like(p)
    gram = piece_gram(block, pieces, none, curvature(q, p), none)
    return weights, (Sum(gram[:-1, :-1]),)
