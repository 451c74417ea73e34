"""Every tunable number of the engine.

``benchmarks/README.md``, "Settings", says where each was measured and what other values cost.  A
number that any value in a wide range serves is no setting: it is a constant where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The numbers, as the driver, the cones and the samples use them."""

    # --- start ---
    start_mu: float = 0.05
    """Complementarity per degree at the start."""
    start_lambda: float = 0.7
    """λ at β = 0, in units of μ/ε."""
    near_mu: float = 0.01
    """Complementarity per degree near an earlier result."""
    start_room: float = 0.02
    """Share by which a run opens above the λ of an earlier result."""

    # --- blocking samples: a step may pass the boundary of a few, which then keep a share ---
    blocking: float = 0.03
    """Share of the complementarity that passing samples may cost, and that passing one adds."""
    kept: float = 0.1
    """Share of its slack or multiplier that a passed sample keeps."""
    second_order: float = 30.0
    """Limit of the second-order term of a sample that the step will pass."""

    # --- steps ---
    least_sigma: float = 0.006
    """Least centring, as a share of μ."""
    decrement_sigma: float = 0.1
    """Centring per unit of Newton decrement over complementarity, so that μ does not run ahead."""
    allowance: float = 0.5
    """Rise of the loss above its parabola, per decrement or complementarity, to shorten a step."""
    missing: float = 0.3
    """Loss that the pieces lack, per complementarity, from which a step is refused."""
    held_sigma: float = 0.2
    """Least centring while trust rows stand in for missing pieces."""

    # --- tables ---
    trust: float = 1.3
    """Least range of a group's coefficients that trust rows allow, in costs of its change."""
    binding: float = 3e-4
    """Multiplier over slack, per weight, from which rows and pieces take part in a proof."""

    # --- certificate ---
    helpful: float = 0.3
    """Share of the distance that a correction, bound or step may leave to be worth going on."""

    # --- many samples (``large``) ---
    many_samples: int = 16
    """Samples per coefficient from which a fit starts from a subsample, ..."""
    many_entries: int = 200_000
    """... if X has this many entries."""
    sample_share: float = 2.0
    """Share of the rows in the subsample, in roots of coefficients per row."""
    sample_tolerance: float = 0.2
    """Tolerance on the subsample, in coefficients per row."""
    reach: float = 2.5
    """How far a step may carry margins, in root mean squares."""
    bent: float = 4.0
    """Least curvature of a hinge in the Gram matrix, in mean curvatures of the loss."""

    # --- near starts (``pair``) ---
    near_nats: float = 0.03
    """Distance of a start up to which a quadratic model at it beats opening near it, ..."""
    crowded: float = 0.5
    """... if at most this share of the samples is near the kink."""

    # --- several classes (``systems``) ---
    class_rows: int = 8
    """Rows per column, beyond one per coefficient, that make the preconditioner."""
    class_direct: int = 60
    """Coefficients up to which all rows make it."""
    class_predictor: float = 0.3
    """Accuracy of the predictor, in the norm of the preconditioner, ..."""
    class_corrector: float = 0.03
    """... of the corrector, ..."""
    class_correction: float = 1e-4
    """... and of the correction of a dual point."""
    class_steps: int = 25
    """Steps of conjugate gradients at most; more mean that rounding sets the accuracy."""


SETTINGS = Settings()
