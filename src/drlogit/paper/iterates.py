"""The iterates of the paper's methods on the fixed-λ problem (B), in the letters of the paper.

    minimise    F(β, μ) = Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Every method has a generator without end of its iterates:

    for iterate in lp_admm_steps(X, y, lam=0.1, kappa=1.0):
        if iterate.residual <= 1e-6:
            break
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..problem.losses import flip_loss
from ..problem.problem import Problem, build_problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.reductions import Sum
from .fixed_lambda import FixedLambdaStep, part_of


@dataclass(frozen=True, eq=False)
class PaperIterate:
    """One iterate in the letters of the paper.

    Attributes
    ----------
    k : int
        Number of the iteration, from 1, at this λ.
    lam : float
        The λ of the subproblem.
    rho : float
        The penalty ρ_k of the iteration, in the units of the paper (a step length for the methods
        without a penalty).
    residual : float
        ``‖Ax^k - y^k‖₂``; not a number for the methods without a splitting.
    F : float
        ``F(x^k, y^k) = f(y^k) + P(y^k)``.
    """

    k: int
    lam: float
    rho: float
    residual: float
    F: float
    problem: Problem | None = field(default=None, repr=False)
    step: FixedLambdaStep | None = field(default=None, repr=False)

    @classmethod
    def of(cls, problem: Problem, lam: float, k: int, step: FixedLambdaStep) -> PaperIterate:
        """The iterate of a step; this visits the samples for ``F(x^k, y^k)``."""
        loss = flip_loss(problem.rows, problem.cost, _split_margins(problem, step), 0.0)
        value = loss.value(0.0, lam)
        return cls(k, lam, step.paper_rho(problem), step.residual, value, problem, step)

    @property
    def beta(self) -> FloatArray:
        """``x^k``: the coefficients, with an intercept last."""
        problem, step = self.kept()
        return problem.moved(step.beta, -1.0)

    @property
    def mu(self) -> Any:
        """``y^k``: the split margins, one per sample."""
        problem, step = self.kept()
        return problem.rows.gather(_split_margins(problem, step))

    @property
    def w(self) -> Any:
        """``w^k``: the multiplier of ``Ax = y``, one per sample."""
        problem, step = self.kept()
        if not step.splits:
            raise ValueError("this method has no multiplier w: it does not split off the margins")
        return problem.rows.gather(problem.rows.run(_multiplier, step.state)[0])

    def kept(self) -> tuple[Problem, FixedLambdaStep]:
        """The problem and the step; ``ValueError`` if the vectors were not kept."""
        if self.problem is None or self.step is None:
            raise ValueError("the vectors of this iterate were not kept: pass keep_vectors=True")
        return self.problem, self.step


def _split_margins(problem: Problem, step: FixedLambdaStep) -> Any:
    """μ per block; Zβ for the methods without a splitting."""
    if step.splits:
        return problem.rows.run(part_of, step.state, 0)[0]
    return problem.margins(step.beta)


def _multiplier(block: Block, state: tuple[FloatArray, ...]) -> tuple[FloatArray, tuple[()]]:
    return block.weights * state[1], ()


def paper_iterates(
    problem: Problem, lam: float, steps: Iterator[FixedLambdaStep]
) -> Iterator[PaperIterate]:
    """The steps of a method as :class:`PaperIterate`."""
    for k, step in enumerate(steps, start=1):
        yield PaperIterate.of(problem, lam, k, step)


def averages(iterates: Iterable[PaperIterate]) -> Iterator[PaperIterate]:
    """The averages ``x̄^K = Σ x^k / K``, ``ȳ^K`` and ``w̄^K`` of Theorem 4.2, after each iterate."""
    mean: FixedLambdaStep | None = None
    for count, iterate in enumerate(iterates, start=1):
        problem, step = iterate.kept()
        mean, rows, share = mean or step, problem.rows, 1.0 / count
        state = rows.run(mix_states, rows.pair(mean.state, step.state), share)[0]
        beta = mean.beta + share * (step.beta - mean.beta)
        residual = math.sqrt(rows.run(_distance, state, beta)[1][0] * rows.n_samples)
        mean = FixedLambdaStep(beta, state, state, step.rho, residual)
        yield PaperIterate.of(problem, iterate.lam, count, mean)


def mix_states(
    block: Block, pair: tuple[Any, Any], share: float
) -> tuple[tuple[FloatArray, ...], tuple[()]]:
    """One state, and ``share`` of the way to the other."""
    one, other = pair
    return tuple(m + share * (x - m) for m, x in zip(one, other, strict=True)), ()


def _distance(
    block: Block, state: tuple[FloatArray, ...], beta: FloatArray
) -> tuple[Any, tuple[Sum]]:
    return state, (Sum(float(block.weights @ np.square(block.margins(beta) - state[0]))),)


def subproblem(X: Any, y: Any, lam: float, model: dict[str, Any]) -> Problem:
    """The problem of a fixed λ; ε has no part in it."""
    if not (math.isfinite(lam) and lam >= 0.0):
        raise ValueError(f"lam must be finite and >= 0, got {lam!r}")
    return plain_problem(X, y, {"epsilon": 1.0, **model})


def plain_problem(X: Any, y: Any, model: dict[str, Any]) -> Problem:
    """The problem of the paper: one κ for all samples, no domains, no intercept by default."""
    problem = build_problem(X, y, **{"fit_intercept": False, **model})
    if problem.cost.labels.multiples is not None or problem.domains is not None:
        raise ValueError(
            "the paper's methods take one kappa for all samples and no categories or bounds: use "
            "drlogit.solve"
        )
    return problem
