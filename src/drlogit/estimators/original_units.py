"""A model of standardised features as a model of the features as they were.

A unit of a standardised feature is ``scale`` units of the original.  So its coefficient is divided
by ``scale``, and so is what it costs to move the original by one: the robust problem, its value and
its certificate stay the same.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np


def in_original_units(model: Any, scaler: Any) -> Any:
    """A copy of a fitted estimator that takes what the fitted ``StandardScaler`` took."""
    given = 1.0 if model.feature_costs_ is None else np.asarray(model.feature_costs_)
    scale = np.ones(model.coef_.shape[1]) if scaler.scale_ is None else scaler.scale_
    costs = given / scale
    result = model.result_
    coef = result.coef / scale
    shift = coef @ scaler.mean_ if scaler.with_mean else 0.0
    ball = result.ball and replace(result.ball, feature_costs=costs)
    result = replace(result, coef=coef, intercept=result.intercept - shift, ball=ball)
    model = copy.copy(model)
    model.feature_costs = model.feature_costs_ = costs
    model._set_result(result, model.epsilon_, model.kappa_)
    return model
