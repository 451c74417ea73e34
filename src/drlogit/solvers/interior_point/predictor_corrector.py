"""Directions of an interior point: Mehrotra's predictor-corrector, Gondzio's corrections.

    minimise    ελ + Σ w_i R_i(u_i, λ),     u = Zβ
    subject to  ‖β‖_* ≤ λ

The driver's half of an iterate is ``(x, λ)`` with the cone of the norm.  The other half belongs to
a *model of the samples*: it says what they add to the optimality conditions, linearised
(:class:`Conditions`), and how they follow a direction (:class:`SampleModel`).  Everything of size N
is eliminated before it gets here, which leaves one linear system of size n + 1 (see
``reduced_system``): one Cholesky factorisation serves predictor, corrector and corrections.

References: S. Mehrotra, SIAM J. Optim. 2 (1992); J. Gondzio, Comput. Optim. Appl. 6 (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from ...rows.arrays import FloatArray
from ...rows.interface import State
from .norm_cone import ConeStep, NormCone
from .scaled import Scaled
from .wide_system import System, reduced_system

#: Centring never aims below this share of the present complementarity ...
LEAST_SIGMA = 0.01

#: ... nor below this share of the Newton decrement, the distance from the central path in
#: units of the objective: complementarity that runs ahead of the residuals blocks all steps.
#: Where it did, centring aims above the present complementarity, by at most this factor.
_DECREMENT_SHARE = 0.1
_MOST_SIGMA = 10.0

#: Centrality corrections per iteration, how much further they try to go, and how much
#: longer the steps must get (summed) for one to be kept.
CORRECTIONS = 2
_REACH = 0.3
_WORTHWHILE = 0.05

#: Primal and dual step lengths.
Lengths: TypeAlias = tuple[float, float]


class Conditions(NamedTuple):
    """What the optimality conditions at a point ask of the samples, summed over them.

    Adjoints are products with Zᵀ: ``gradient`` of ``w (a - s)``, the others of w times the hinge's
    curvature ω, of what a gains when all products go to zero, and of what it gains per unit of
    centring.  ``flips`` are the same sums without Z, that of ``a`` itself first.
    """

    gram: FloatArray  # or its diagonal
    gradient: FloatArray
    omega_adjoint: FloatArray
    affine_adjoint: FloatArray
    centre_adjoint: FloatArray
    loss: float
    excess: float  # of the hinge
    products: float
    rounding: float  # what a hinge costs by being rounded
    flips: float
    omega: float
    flips_affine: float
    flips_centre: float


class Pull(NamedTuple):
    """What aims do to ``a`` while nothing else moves: the product with Zᵀ, and the sum."""

    adjoint: FloatArray
    flips: float


class Predicted(NamedTuple):
    """What follows from a predictor: changes of the products, and the second-order term's pull."""

    first: float
    second: float
    pull: FloatArray
    flips: float


class SampleModel(Protocol):
    """How the samples follow the driver.  States are the model's own: it makes one from another.

    Directions are in the user's coefficients and in the driver's λ; lengths are the longest steps
    that the samples allow.
    """

    @property
    def degree(self) -> float:
        """How much the samples' products count beside the cone's."""
        ...

    def gram_weights(self, here: State) -> State:
        """(d, None) per block, d being the weights of the Gram matrix."""
        ...

    def predict(
        self, here: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths, Predicted]:
        """The direction in which all products go to zero."""
        ...

    def correct(
        self, predictor: State, dcoefficients: FloatArray, dlam: float, centre: float, share: float
    ) -> tuple[State, Lengths]:
        """The direction towards ``centre``, with a share of the predictor's second-order terms."""
        ...

    def pull_back(self, step: State, trial: Lengths, centre: float) -> tuple[State, Pull]:
        """The direction with aims that bring the outliers of a trial step back."""
        ...

    def follow(
        self, pulled: State, dcoefficients: FloatArray, dlam: float
    ) -> tuple[State, Lengths]:
        """The direction that goes with these aims."""
        ...


@dataclass(frozen=True, eq=False)
class Point:
    """The driver's half of an iterate; the samples' half lives with the rows."""

    x: FloatArray
    lam: float
    cone: NormCone
    samples: State

    def moved(self, step: Move, alphas: Lengths, samples: State) -> Point:
        """The point after a step of these lengths, with the samples there."""
        primal = alphas[0]
        x, lam = self.x + primal * step.dx, self.lam + primal * step.dlam
        return Point(x, lam, self.cone.moved(step.cone, alphas), samples)


@dataclass(frozen=True, eq=False)
class Move:
    """One direction of everything, with the longest steps it allows."""

    dx: FloatArray
    dlam: float
    cone: ConeStep
    samples: State
    alphas: Lengths
    predicted: Predicted | None = None


class Linearised:
    """The optimality conditions at a point, linearised, in scaled coordinates."""

    def __init__(
        self,
        scaled: Scaled,
        model: SampleModel,
        point: Point,
        samples: Conditions,
        fixed: bool = False,
    ) -> None:
        self.scaled = scaled
        self.model = model
        self.point = point
        self.samples = samples
        self.fixed = fixed  # λ does not move
        self.hinge_affine = scaled.scaled(samples.affine_adjoint)
        self.hinge_centre = scaled.scaled(samples.centre_adjoint)
        gradient_theta, gradient_lam = point.cone.gradient()
        # Residuals of stationarity in x and λ.
        self.residual = scaled.scaled(samples.gradient)
        self.residual[scaled.kept] += gradient_theta
        self.residual_lam = scaled.epsilon - scaled.kappa * samples.flips + gradient_lam

    @property
    def primal(self) -> float:
        """Objective of (P) at this point, at its own λ."""
        return float(self.scaled.epsilon * self.point.lam + self.samples.loss + self.samples.excess)

    @cached_property
    def complementarity(self) -> float:
        return float(self.samples.products) + self.point.cone.complementarity()

    @property
    def estimate(self) -> float:
        """What the gap would be if the point were exactly dual feasible."""
        return self.complementarity + float(self.samples.rounding)

    @cached_property
    def mu(self) -> float:
        return self.complementarity / (self.model.degree + self.point.cone.degree)

    def system(self, refine: bool = True) -> System:
        return reduced_system(
            self.scaled, self.samples.gram, lambda: self.model.gram_weights(self.point.samples),
            self.samples.omega_adjoint, self.samples.omega, self.point.cone.curvature(), self.fixed,
            refine=refine,
        )  # fmt: skip

    def predictor(self, system: System) -> Move | None:
        """All products to zero; None if the direction is not finite."""
        aim = self.point.cone.affine()
        solved = self._solve(system, aim, self.hinge_affine, self.samples.flips_affine)
        if solved is None:
            return None
        dx, dlam = solved
        followed = self.model.predict(self.point.samples, self.scaled.coefficients(dx), dlam)
        return self._move(dx, dlam, aim, *followed)

    def after(self, predictor: Move) -> float:
        """Complementarity after the longest predictor step."""
        primal, dual = predictor.alphas
        assert predictor.predicted is not None
        first, second = predictor.predicted[:2]
        # Σ w (t dc + r da) is what is missing from minus the products.
        hinge_part = float(
            (1.0 - dual) * self.samples.products + (primal - dual) * first + primal * dual * second
        )
        return hinge_part + self.point.cone.after(predictor.cone, predictor.alphas)

    def decrement(self, system: System) -> float:
        """Newton's decrement, squared: what a step to the central path should gain."""
        mu = self.mu
        rhs, rhs_lam = self._right_side(
            self.point.cone.centred(mu),
            self.hinge_affine + mu * self.hinge_centre,
            self.samples.flips_affine + mu * self.samples.flips_centre,
        )
        dx, dlam = system.solve(rhs, rhs_lam)
        return float(rhs @ dx) + rhs_lam * dlam

    def centre(self, decrement: float, predictor: Move, least: float = 0.0) -> float:
        """The complementarity per unit of degree to aim at; of what is there, ``least`` or more."""
        ratio = max(self.after(predictor), 0.0) / self.complementarity
        sigma = max(
            min(1.0, ratio**3),
            LEAST_SIGMA,
            min(_MOST_SIGMA, _DECREMENT_SHARE * decrement / self.complementarity),
            least,
        )
        return sigma * self.mu

    def corrected(
        self, system: System, predictor: Move, centre: float, share: float, corrections: int
    ) -> Move | None:
        """The step towards ``centre``, with a share of the predictor's second-order terms.

        Centrality corrections follow while they lengthen the steps.
        """
        cone, samples, predicted = self.point.cone, self.samples, predictor.predicted
        assert predicted is not None
        pull = self.scaled.scaled(predicted.pull)
        hinge_adjoint = self.hinge_affine + centre * self.hinge_centre + share * pull
        flips = samples.flips_affine + centre * samples.flips_centre + share * predicted.flips
        aim = cone.corrected(centre, predictor.cone, share)
        solved = self._solve(system, aim, hinge_adjoint, flips)
        if solved is None:
            return None
        dx, dlam = solved
        followed = self.model.correct(
            predictor.samples, self.scaled.coefficients(dx), dlam, centre, share
        )
        step = self._move(dx, dlam, aim, *followed)
        for _ in range(corrections):
            if min(step.alphas) >= 0.95:
                break
            trial = (min(1.0, step.alphas[0] + _REACH), min(1.0, step.alphas[1] + _REACH))
            pulled, back = self.model.pull_back(step.samples, trial, centre)
            aim = cone.recentred(aim, step.cone, trial, centre)
            hinge_adjoint = hinge_adjoint + self.scaled.scaled(back.adjoint)
            flips = flips + back.flips
            solved = self._solve(system, aim, hinge_adjoint, flips)
            if solved is None:
                break
            dx, dlam = solved
            followed = self.model.follow(pulled, self.scaled.coefficients(dx), dlam)
            longer = self._move(dx, dlam, aim, *followed)
            if sum(longer.alphas) < sum(step.alphas) + _WORTHWHILE:
                break
            step = longer
        return step

    def _right_side(
        self, aim: FloatArray, hinge_adjoint: FloatArray, flips: float
    ) -> tuple[FloatArray, float]:
        drive, drive_lam = self.point.cone.drive(aim)
        rhs = -self.residual - hinge_adjoint
        rhs[self.scaled.kept] -= drive
        if self.fixed:
            return rhs, 0.0
        return rhs, -(self.residual_lam - self.scaled.kappa * flips + drive_lam)

    def _solve(
        self, system: System, aim: FloatArray, hinge_adjoint: FloatArray, flips: float
    ) -> tuple[FloatArray, float] | None:
        dx, dlam = system.solve(*self._right_side(aim, hinge_adjoint, flips))
        return (dx, dlam) if np.isfinite(dx).all() and math.isfinite(dlam) else None

    def _move(
        self,
        dx: FloatArray,
        dlam: float,
        aim: FloatArray,
        samples: State,
        longest: Lengths,
        predicted: Predicted | None = None,
    ) -> Move:
        """The direction in (x, λ) and in the samples, with the cone's."""
        cone = self.point.cone.direction(dx[self.scaled.kept], dlam, aim)
        primal, dual = self.point.cone.longest(cone)
        alphas = (min(1.0, primal, longest[0]), min(1.0, dual, longest[1]))
        return Move(dx, dlam, cone, samples, alphas, predicted)
