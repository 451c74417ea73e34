"""Bounds with domains: the class of models that they cover, and the dual point of a model."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import stated

import domain_zoo
import zoo
from drlogit.dual.certify import certify, pieces_of_dual_point
from drlogit.dual.pieces import PieceCoordinates
from drlogit.problem.parameters import ADMITTED


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [0.999, -0.999, 1.001, -1.001])
def test_the_reference_point_has_at_most_the_admitted_log_odds(seed, share):
    """It has the means of numbers and the least category of each group."""
    case = domain_zoo.generated(seed) | {"fit_intercept": True}
    X, groups, weights = case["X"], case["categories"], domain_zoo.weights_of(case)
    coef = np.random.default_rng(seed).uniform(-1.0, 1.0, X.shape[1])
    grouped = np.isin(np.arange(coef.size), [j for group in groups for j in group])
    odds = (weights @ X * coef)[~grouped].sum()
    for group in groups:
        with_none = (X[:, group].sum(axis=1) == 0.0).any()
        odds += min([*coef[group], *([0.0] if with_none else [])])
    problem = stated.problem(**case)
    layout = PieceCoordinates(problem)
    found = layout.model(problem.join(coef, share * ADMITTED - odds))
    assert layout.coordinates(problem).admits(found) == (abs(share) < 1.0)


@pytest.mark.parametrize(("seed", "share"), [(1, 0.999), (1, 1.001), (4, 0.999), (4, 1.001)])
def test_categories_are_at_most_the_admitted_log_odds_apart(seed, share):
    case = domain_zoo.generated(seed)
    problem = stated.problem(**case)
    layout = PieceCoordinates(problem)
    coef, (group, *_) = np.zeros(case["X"].shape[1]), problem.domains.groups
    coef[group[0]] = share * ADMITTED
    model = layout.model(problem.join(coef, 0.0))
    assert layout.coordinates(problem).admits(model) == (share < 1.0)


@pytest.mark.parametrize("domains", [False, True])
def test_a_model_beyond_the_class_has_a_bound_of_zero(domains):
    """Even with the dual point that proves the optimum."""
    case = domain_zoo.generated(1) | {"fit_intercept": True, "kappa": np.inf}
    if not domains:
        case |= {"categories": None, "bounds": None}
    problem, fit = stated.problem(**case), stated.solve(**case)
    best = problem.join(fit.coef, fit.intercept)
    if domains:
        point = pieces_of_dual_point(problem, fit.dual)
    else:
        point = zoo.dual_point(problem, best, fit.dual.flip_share, fit.dual.s)
    near = certify(problem, best, point=point)
    assert near.dual > 0.05
    far = problem.join(fit.coef, fit.intercept + 1.1 * ADMITTED)
    assert certify(problem, far, point=near.point).dual == 0.0


def test_dual_points_of_other_problems_are_not_taken():
    """Without flips a point with flipped pieces is infeasible."""
    case = domain_zoo.generated(1) | {"kappa": 0.3, "epsilon": 0.1}
    problem, fit = stated.problem(**case), stated.solve(**case)
    assert fit.dual.moves.flipped.any()
    (found,) = pieces_of_dual_point(problem, fit.dual)
    assert found.flipped.sum() == fit.dual.moves.flipped.sum()
    assert pieces_of_dual_point(stated.problem(**case | {"kappa": np.inf}), fit.dual) is None
    fewer = {name: case[name][1:] for name in "Xy"} | {"sample_weight": None}
    assert pieces_of_dual_point(stated.problem(**case | fewer), fit.dual) is None
