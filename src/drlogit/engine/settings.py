"""Every tunable number of the engine, each with what it is for and where it was chosen.

A number that any value in a wide range serves is no setting: it is a constant where it is used.

"Generated" are awkward problems (three norms, immovable columns, weights, scales from 1e-3 to 1e3,
ε from 1e-5 to 2 ε_max, as ``benchmarks/stress.py`` makes them); numbers were chosen on seeds below
1000 and judged on others.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The numbers, as the driver, the cones and the samples use them."""

    # --- start ---
    start_mu: float = 0.05
    """Complementarity per degree at the start (.02 is .2 iterations faster on made problems, and
    one of 1,000 with domains is not proven)."""
    start_lambda: float = 0.7
    """λ at β = 0, in units of μ/ε (made problems of 60 to 4,500 rows: 1 takes 3 % more iterations;
    on the central path, 1 to 2, 5 % more; generated ones: alike)."""
    near_mu: float = 0.01
    near_mu_loss: float = 0.002
    """μ from an earlier result, with and without flips (30 radii: two iterations less)."""
    start_room: float = 0.02
    """... and the room that its λ is given, as a share of it (paths of 15 radii: with .06 tables
    and classes take 8 % more iterations, numbers as many)."""
    least_lambda: float = 0.02
    """... and the least λ to open with, in units of 1/ε."""

    # --- blocking samples: a step may pass the boundary of a few, which then keep a share ---
    blocking: float = 0.03
    """Share of the complementarity up to which blocking samples may be passed (made problems of 60
    to 16,000 rows: .01 takes .5 to 2 iterations more, .1 as many)."""
    kept: float = 0.1
    """What a passed sample keeps of its slack or multiplier (generated)."""
    passing: float = 1.0 / 30.0
    """Of what is added by passing a sample, the share that is booked as its cost (generated)."""
    second_order: float = 30.0
    """Second-order terms of samples that will be passed are no guide beyond this (generated)."""

    # --- steps ---
    least_sigma: float = 0.006
    """Centring never aims below this share of μ (generated: .01 takes 1 % more iterations; at .003
    one of 150 problems of several classes is not proven)."""
    decrement_sigma: float = 0.1
    """Centring per unit of Newton decrement over complementarity, so that μ does not run ahead (.07
    takes 1 to 2 % fewer iterations, and a second-order cone of six rows is not proven)."""
    most_sigma: float = 3.0
    """... and never above this."""
    kept_product: float = 0.3
    """Without flips: share of the aimed complementarity below which a step may not end (generated:
    never; one second-order cone of six rows and 43 columns is not proven without)."""
    allowance: float = 0.5
    """Rise of the loss beyond its parabola, per decrement or complementarity, to shorten a step."""
    missing: float = 0.3
    """Loss above the pieces', per complementarity, from which a step is refused (made tables,
    seeds below 20: .1 refuses half as many steps more)."""
    held_sigma: float = 0.2
    """Least centring while trust rows carry what pieces should (made tables, seeds
    below 20: .5 takes .6 iterations more; without, 3 of 250 domain cases have no bound)."""

    # --- tables ("tables": 400 generated problems with domains, seeds below 1000) ---
    trust: float = 1.3
    """Least range of a group, in prices of its change, that trust rows allow (made tables of
    40 to 70 columns of four to six letters, 2,000 to 4,500 rows: 1.1 takes 13 % more)."""
    binding_row: float = 0.3
    binding_piece: float = 3e-4
    """Multiplier over slack, per weight, from which rows of groups and pieces take part in a proof
    (the same, mushroom and nursery: .003 to .3 are alike for rows, 3 takes 3 % more iterations; ten
    times as much for pieces 2 %, none at all 9 %)."""
    flip_margin: float = 2.0
    """Margin from which on flips pay where a run opens, as far as 1 ≤ λ ≤ .14/ε (made tables: 1 to
    4 are alike; without, up to three times the iterations at small ε and κ)."""

    # --- certificate ---
    emptied: float = 1e-2
    """Share of s that a correction has to leave, or s becomes 0 (separated samples)."""
    helpful: float = 0.3
    """Corrections go on, bounds are tried again and Gram matrices are kept, where a step leaves at
    most this share of the distance (Gram matrices: .03 takes one more, 1 two surveys more)."""

    # --- many samples (``large``): chosen on standard normal features, (5000, 40), (8000, 60),
    # (8000, 220), (8000, 300), (10000, 200), (20000, 50), (30000, 100), (60000, 20), a7a and w7a;
    # judged on (13500, 45), (25000, 130), (7500, 170), (6500, 280); besides, (150000, 25) had a
    # part in ``sample_share``, (13500, 45) in ``many_columns`` ---
    many_samples: int = 16
    """Samples per coefficient from which some of them lead to all (at (3500, 200), .7 to .95 times
    as long, at (8000, 300) half as long; with 8 samples each, (2000, 200), 1.2 times), ..."""
    many_entries: int = 200_000
    """... if X has so many entries ((4000, 14): .9 to 1.6 times as long, (8000, 35): .5 to 1.2)."""
    sample_share: float = 2.0
    """Share of the rows to start from, in roots of coefficients per row; a quarter at most (1.5
    takes one survey more at (5000, 40), (8000, 60), 2.5 a tenth more Gram matrices; a sample of a
    sample, besides, 1.05 times as long, but .85 at (60000, 120) from .7 ε_max on)."""
    sample_tolerance: float = 0.2
    """How exactly to solve on a sample, in units of coefficients per row (of its error: .4; .1
    takes an iteration more there, and saves none)."""
    least_multiple: float = 0.2
    """Least multiple of a model to start from (near ε_max .1 is alike, .5 and .03 take 5 to 10 %
    longer at (8000, 220), (11000, 300), (20000, 70)); at most it is doubled."""
    reach: float = 2.5
    """How far a step may carry margins, in root mean squares: 1.5 takes one survey more."""
    bent: float = 4.0
    """Hinges of less curvature than this many times the loss's mean stay out of the Gram matrix (1:
    a tenth more Gram matrices from .7 ε_max on, 10: up to six iterations more)."""
    alike: int = 2
    """Iterations on a model, with eight hinges for each coefficient, that need no Gram matrix of
    them (at .7 to .99 ε_max none takes 1.0 to 1.4 Gram matrices more, 1 half of that; 3
    save .2 and take an iteration more; also for correlated, lognormal and t features), ..."""
    many_columns: int = 128
    """... from so many coefficients on ((8000, 220), (10000, 200): .75 to .95 times as long;
    (20000, 50): up to 1.2 times, (30000, 100): .9 to 1.1, since iterations are added)."""

    # --- near starts (``pair``): paths of 15 and 30 radii on a7a, w7a, (2500, 40),
    # (8000, 220), (20000, 50) ---
    near_nats: float = 0.03
    """Distance of a start up to which a model of the loss at it is better than opening near it
    (.005 to .1 are alike on (2500, 40), (9000, 45) and one-hot columns of 8,000 rows),"""
    crowded: float = 0.5
    """... if no more than this share of the entries is near the kink (without, a path on w6a takes
    1.7 times as long; w7a: .35 to .6 are alike), and X has a quarter of ``many_entries``."""

    # --- several classes (``class_system``): chosen on standard normal features, (5000, 50, 5),
    # (20000, 100, 10), seed 7; judged on other seeds and shapes ---
    class_mu: float = 0.1
    class_mu_loss: float = 0.025
    """Complementarity at the start of all labels of a sample together, with and without flips
    (3,000 to 18,000 rows, 4 to 12 classes: without, .1 takes 5 % more iterations; with, .05 takes
    12 % more)."""
    class_rows: int = 8
    """Rows for each column, beyond one for each coefficient, to make the preconditioner of."""
    class_direct: int = 60
    """Coefficients up to which it is made of all rows (200: 7 instead of 5 times a plain fit at
    (50000, 30, 6), as long at (5000, 20, 5))."""
    class_predictor: float = 0.3
    class_corrector: float = 0.03
    class_correction: float = 1e-4
    """How exactly steps and corrections are solved for, in the norm of the preconditioner
    ((14000, 70, 9), (40000, 25, 7), (6000, 40, 5), (12000, 50, 4), seeds 3 to 5: a predictor to .1
    takes a tenth more products, to .03 a third more, one by the preconditioner alone a quarter
    less, but never ends on the table segment; lognormal features, (2300, 19, 7): both to .1
    stall)."""
    class_steps: int = 25
    """Steps of conjugate gradients at most: more mean that rounding sets the accuracy."""


SETTINGS = Settings()
