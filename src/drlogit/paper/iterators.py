"""The iterations of the paper's methods on the fixed-λ problem (B), one iterate at a time.

    minimise    F(β, μ) = Σ w_i [h(μ_i) + (μ_i - κλ)_+]   over β, μ
    subject to  Zβ = μ,   ‖β/c‖_* ≤ λ

Each function is a generator without end, with the paper's letters and defaults:

    for iterate in lp_admm_steps(X, y, lam=0.1, kappa=1.0):
        if iterate.residual <= 1e-6:
            break
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..problem.losses import flip_gain, log_loss
from ..problem.problem import Problem, build_problem
from ..rows.arrays import FloatArray
from ..rows.blocks import Block
from ..rows.interface import State
from ..rows.reductions import Sum
from .admm import LIPSCHITZ, AdmmStart, BetaStep, check_penalty, given_point
from .ball_qp import InnerSolver
from .fixed_lambda import FixedLambdaStep
from .lp_admm import lp_admm_iteration
from .pdhg import pdhg_iteration
from .standard_admm import check_sigma, standard_admm_iteration
from .subgradient import subgradient_iteration

#: The settings of the paper's Section 5.1: ρ₀ and γ.
PAPER_RHO, PAPER_GAMMA = 0.001, 1.05

#: ``"zeros"``, ``"ones"`` (as in the released code), ``"random"``, or ``(x⁰, y⁰, w⁰)``.
PaperStart: TypeAlias = str | tuple[Any, Any, Any]


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

    @property
    def beta(self) -> FloatArray:
        """``x^k``: the coefficients, with an intercept last."""
        problem, step = self._kept()
        return problem.moved(step.beta, -1.0)

    @property
    def mu(self) -> Any:
        """``y^k``: the split margins, one per sample."""
        problem, step = self._kept()
        if math.isnan(self.residual):
            return problem.rows.gather(problem.margins(step.beta))
        return problem.rows.gather(problem.rows.run(_part, step.state, 0)[0])

    @property
    def w(self) -> Any:
        """``w^k``: the multiplier of ``Ax = y``, one per sample."""
        problem, step = self._kept()
        if math.isnan(self.residual):
            raise ValueError("this method has no multiplier w: it does not split off the margins")
        return problem.rows.gather(problem.rows.run(_multiplier, step.state)[0])

    def _kept(self) -> tuple[Problem, FixedLambdaStep]:
        if self.problem is None or self.step is None:
            raise ValueError("the vectors of this iterate were not kept: pass keep_vectors=True")
        return self.problem, self.step


def lp_admm_steps(
    X: Any,
    y: Any,
    *,
    lam: float,
    rho: float | None = PAPER_RHO,
    gamma: float | None = PAPER_GAMMA,
    eta: float = 0.0,
    inner: str | InnerSolver = "auto",
    inner_tol: float | None = None,
    start: PaperStart = "zeros",
    random_state: Any = None,
    **model: Any,
) -> Iterator[PaperIterate]:
    """Algorithm 1, LP-ADMM.

    Parameters
    ----------
    X, y
        Samples and labels, as in :func:`drlogit.solve`.
    lam : float
        λ.
    rho : float, optional
        The penalty ρ₀; None for 1/N.
    gamma : float, optional
        The growth γ ≥ 1 of ρ per iteration; 1 keeps it constant, None balances the residuals.  ρ
        stops growing at 1e12/N, where nothing moves any more.
    eta : float
        The weight η of linearised ADMM's term ``(η/2)‖y - y^k‖²``; 0 for LP-ADMM.
    inner : str or callable
        Solver of the β-step (C): a name in :data:`~drlogit.paper.ball_qp.INNER_SOLVERS`, a function
        ``inner(H, c, ball, start, tol)`` that returns θ, or ``"auto"``, the paper's choice:
        ``"active-set-cg"`` for ℓ1 transport, else ``"projected-gradient"``.
    inner_tol : float, optional
        Gap of (C) at which the inner solver stops, 0 for rounding; None for 1e-4 of the last
        squared residual.
    start : str or (x0, y0, w0)
        ``"zeros"``, ``"ones"`` (as in the released code), ``"random"`` (standard normal), or three
        vectors.
    random_state : optional
        Seed of a random start.
    **model
        ``kappa``, and whatever else :func:`drlogit.solve` takes to state the problem: ``norm``,
        ``feature_costs``, ``sample_weight``, ``fit_intercept`` (False unless given), ``n_jobs``.

    Yields
    ------
    PaperIterate
    """
    check_penalty(rho, gamma, eta)
    problem = subproblem(X, y, lam, model)
    beta_step = BetaStep.build(problem, published_inner(inner, problem), inner_tol)
    first = starting_point(problem, start, random_state, rho)
    weight = eta * problem.rows.n_samples
    steps = lp_admm_iteration(
        problem, lam, first, beta_step, gamma=gamma, eta=weight, endless_growth=True
    )
    return in_paper_letters(problem, lam, steps)


def linearized_admm_steps(
    X: Any, y: Any, *, lam: float, eta: float | None = None, gamma: float = 1.0, **options: Any
) -> Iterator[PaperIterate]:
    """Linearised ADMM, method (c) of Section 5.2: LP-ADMM with the term ``(η/2)‖y - y^k‖²``.

    ``eta`` is None for 1 % above L_f (the released code has 0.25 with ``rho=0.1``); all other
    parameters are those of :func:`lp_admm_steps`.
    """
    if eta is None:
        eta = 1.01 * LIPSCHITZ / len(y)
    return lp_admm_steps(X, y, lam=lam, eta=eta, gamma=gamma, **options)


def standard_admm_steps(
    X: Any,
    y: Any,
    *,
    lam: float,
    rho: float | None = 10.0,
    sigma: float = 1.0,
    inner: str | InnerSolver = "auto",
    inner_tol: float | None = None,
    start: PaperStart = "zeros",
    random_state: Any = None,
    **model: Any,
) -> Iterator[PaperIterate]:
    """Algorithm 3, standard ADMM, with Algorithm 4 for its (y, z)-step.

    ``sigma`` is the length σ of the multipliers' step; all other parameters are those of
    :func:`lp_admm_steps`.  Iterates have the multiplier ``w = -u``.
    """
    check_penalty(rho)
    check_sigma(sigma)
    problem = subproblem(X, y, lam, model)
    beta_step = BetaStep.build(problem, published_inner(inner, problem), inner_tol)
    first = starting_point(problem, start, random_state, rho)
    steps = standard_admm_iteration(problem, lam, first, beta_step, sigma=sigma)
    return in_paper_letters(problem, lam, steps)


def pdhg_steps(
    X: Any, y: Any, *, lam: float, sigma: float | None = None, **model: Any
) -> Iterator[PaperIterate]:
    """The primal-dual hybrid gradient method of Appendix B, method (b) of Section 5.2.

    ``sigma`` is the dual step, None for one that balances the two sides; the primal step follows
    from it.  All other parameters are those of :func:`lp_admm_steps`.
    """
    problem = subproblem(X, y, lam, model)
    return in_paper_letters(problem, lam, pdhg_iteration(problem, lam, sigma=sigma))


def subgradient_steps(X: Any, y: Any, *, lam: float, **model: Any) -> Iterator[PaperIterate]:
    """The projected subgradient method, method (d) of Section 5.2: the best point so far.

    Parameters are those of :func:`lp_admm_steps`.
    """
    problem = subproblem(X, y, lam, model)
    return in_paper_letters(problem, lam, subgradient_iteration(problem, lam))


def averages(iterates: Iterable[PaperIterate]) -> Iterator[PaperIterate]:
    """The averages ``x̄^K = Σ x^k / K``, ``ȳ^K`` and ``w̄^K`` of Theorem 4.2, after each iterate."""
    mean: FixedLambdaStep | None = None
    for count, iterate in enumerate(iterates, start=1):
        problem, step = iterate._kept()
        if mean is None:
            mean = step
        else:
            rows, share = problem.rows, 1.0 / count
            state = rows.run(_mixed, rows.pair(mean.state, step.state), share)[0]
            beta = mean.beta + share * (step.beta - mean.beta)
            gap = rows.run(_distance, state, beta)[1][0]
            residual = math.sqrt(gap * rows.n_samples)
            mean = FixedLambdaStep(beta, state, state, step.rho, residual)
        yield paper_iterate(problem, iterate.lam, count, mean)


def in_paper_letters(
    problem: Problem, lam: float, steps: Iterator[FixedLambdaStep]
) -> Iterator[PaperIterate]:
    """The iterates of an iteration as :class:`PaperIterate`."""
    for k, step in enumerate(steps, start=1):
        yield paper_iterate(problem, lam, k, step)


def paper_iterate(problem: Problem, lam: float, k: int, step: FixedLambdaStep) -> PaperIterate:
    """One of them; this visits the samples for ``F(x^k, y^k)``."""
    split = not math.isnan(step.residual)
    state: State = step.state if split else problem.margins(step.beta)
    _, (value,) = problem.rows.run(_split_value, state, problem.cost.kink(lam))
    rho = step.rho / problem.rows.n_samples if split else step.rho
    return PaperIterate(k, lam, rho, step.residual, float(value), problem, step)


def subproblem(X: Any, y: Any, lam: float, model: dict[str, Any]) -> Problem:
    """The problem of a fixed λ; ε has no part in it."""
    if not (math.isfinite(lam) and lam >= 0.0):
        raise ValueError(f"lam must be finite and >= 0, got {lam!r}")
    return plain_problem(X, y, {"epsilon": 1.0, **model})


def plain_problem(X: Any, y: Any, model: dict[str, Any]) -> Problem:
    """The problem of the paper: one κ for all samples, no domains, no intercept unless asked."""
    problem = build_problem(X, y, **{"fit_intercept": False, **model})
    if problem.cost.trust is not None or problem.domains is not None:
        raise ValueError(
            "the paper's methods take one kappa for all samples and no categories or bounds: use "
            "drlogit.solve"
        )
    return problem


def published_inner(inner: str | InnerSolver, problem: Problem) -> str | InnerSolver:
    """``"auto"`` as in the paper's experiments: active-set CG, or Algorithm 5 for other norms."""
    if inner != "auto":
        return inner
    return "active-set-cg" if problem.norm.name == "l1" else "projected-gradient"


def starting_point(
    problem: Problem, start: PaperStart, random_state: Any, rho: float | None
) -> AdmmStart:
    """``(x⁰, y⁰, w⁰)`` by name or as given."""
    if isinstance(start, str):
        sizes = (problem.costs.size, problem.rows.n_samples, problem.rows.n_samples)
        random = np.random.default_rng(random_state)
        makers: dict[str, Callable[[int], FloatArray]] = {
            "zeros": np.zeros, "ones": np.ones, "random": random.standard_normal
        }  # fmt: skip
        if start not in makers:
            names = ", ".join(map(repr, makers))
            raise ValueError(f"start must be one of {names} or (x0, y0, w0), got {start!r}")
        x, y, w = (makers[start](size) for size in sizes)
        start = (x, y, w)
    return given_point(problem, start, rho)


def _split_value(block: Block, state: Any, kink: float) -> tuple[Any, tuple[Sum]]:
    mu = state[0] if isinstance(state, tuple) else state
    return state, (Sum(float(block.weights @ (log_loss(mu) + flip_gain(mu, kink)))),)


def _part(block: Block, state: tuple[FloatArray, ...], k: int) -> tuple[FloatArray, tuple[()]]:
    return state[k], ()


def _multiplier(block: Block, state: tuple[FloatArray, ...]) -> tuple[FloatArray, tuple[()]]:
    return block.weights * state[1], ()


def _mixed(block: Block, pair: Any, share: float) -> tuple[Any, tuple[()]]:
    mean, latest = pair
    return tuple(m + share * (x - m) for m, x in zip(mean, latest, strict=True)), ()


def _distance(
    block: Block, state: tuple[FloatArray, ...], beta: FloatArray
) -> tuple[Any, tuple[Sum]]:
    return state, (Sum(float(block.weights @ np.square(block.margins(beta) - state[0]))),)
