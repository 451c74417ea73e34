"""The numbers of an audit: worst-case loss and error of fitted models over a range of radii."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..problem.label_costs import StatedKappa
from ..rows.arrays import FloatArray, IndexArray
from ..rows.threads import one_blas_thread
from .audit_problem import audit_problem
from .measured_model import fitted_columns, own_fit
from .misclassification import best_error, worst_error
from .old_adversary import Adversary
from .old_metrics import Metric
from .old_worst import WorstCase
from .promises import Guarantee
from .subgroups import Subgroup

#: Radii of an audit that names none, as shares of κ or of the mean distance to the boundary.
_SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class AuditRow:
    """One model at one radius.

    ``flip_limit`` is the largest share of labels that may be flipped, ``ε/κ`` for a single κ.
    ``flip_share`` is the share that the worst case for the log-loss flips; it spends the rest of
    its budget on moves.
    """

    model: str
    epsilon: float
    flip_limit: float
    flip_share: float
    worst_case_loss: float
    best_error: float
    worst_error: float


@dataclass(frozen=True)
class AuditSample:
    """One sample: its row in the data, its label, its margin, and the radius that reaches it.

    ``index`` is its position, ``row`` what it is called: by the index of a frame, else by position.
    ``epsilon`` is the smallest radius at which the worst case flips the whole of its label
    (``inf`` in lists that are not about flips).
    """

    index: int
    label: Any
    margin: float
    epsilon: float
    row: Any = None


@dataclass(frozen=True)
class ModelAudit:
    """What an audit says about one model.

    Attributes
    ----------
    name : str
    loss, error : float
        Log-loss (nats) and error rate on the samples as they are.
    sensitivity : float
        The dual norm of the coefficients: how much one unit of transport can change a score,
        and the slope at which the worst-case loss grows in the end.
    half_wrong_radius : float
        The smallest radius at which half of the predictions can be wrong (``inf`` if none).
    rows : tuple of AuditRow
        One per radius.
    first_flipped : tuple of AuditSample
        The samples whose labels the worst case flips first: those predicted right with the
        largest margins, where a wrong label costs most.  They are not suspects.
    most_surprising : tuple of AuditSample
        The samples whose labels surprise the model most, with the smallest margins.  Worth a
        check if labels may be wrong; the worst case does not touch them.
    """

    name: str
    loss: float
    error: float
    sensitivity: float
    half_wrong_radius: float
    rows: tuple[AuditRow, ...]
    first_flipped: tuple[AuditSample, ...]
    most_surprising: tuple[AuditSample, ...]


@dataclass(frozen=True, eq=False)
class AuditOutcome:
    """The result of an audit; it keeps the samples, because some parts are computed on request.

    ``ball`` names the model in whose ball all models are measured.  ``guarantees``, by model, are
    about the population of rows that the models have not seen, if there were any.  ``decided``, by
    model, is the worst case of the ``metric`` that people decide by, at each radius and last with
    its groups at the radius of a fit.
    """

    kappa: StatedKappa
    norm: str
    n_samples: int
    epsilons: tuple[float, ...]
    models: tuple[ModelAudit, ...]
    spaces: tuple[str, ...]
    ball: str
    row_names: tuple[Any, ...] | None = field(repr=False)
    audited: dict[str, Adversary] = field(repr=False)
    subgroups: tuple[Subgroup, ...] = field(repr=False)
    guarantees: dict[str, Guarantee] = field(repr=False)
    decided: dict[str, tuple[WorstCase, ...]] = field(repr=False, default_factory=dict)
    metric: Metric | None = field(repr=False, default=None)


def audit_problems(
    model: Any, X: Any, y: Any, *, norm: Any = None, kappa: Any = None, **options: Any
) -> tuple[dict[str, Adversary], str]:
    """The audits of one or several models, by name; options are those of :func:`audit_problem`.

    The name of the model in whose ball all are measured comes second: the first model that was
    fitted with a ball.
    """
    models = named_models(model)
    fits = {name: own_fit(each) for name, each in models.items()}
    first = next((name for name, fit in fits.items() if fit is not None), next(iter(models)))
    # One-hot columns of others' pipelines are numbers if they were numbers to that model.
    chosen, categories = fits[first], options.pop("categories", None)
    as_numbers = chosen is not None and not fitted_columns(chosen).groups
    found: dict[str, Adversary] = {}
    for name in (first, *(other for other in models if other != first)):
        numbers = as_numbers and categories is None and fits[name] is None
        found[name] = audit_problem(
            models[name], X, y, epsilon=0.0, kappa=kappa, norm=norm,
            common=(first, found[first]) if found else None,
            categories=[] if numbers else categories, **options,
        )  # fmt: skip
        kappa = found[first].kappa if kappa is None else kappa
        norm = found[first].problem.norm if norm is None else norm
    return {name: found[name] for name in models}, first


@one_blas_thread
def default_radii(audits: Iterable[Adversary]) -> tuple[float, ...]:
    """Default radii: shares of a typical distance, and the radii that models were fitted for.

    The typical distance is κ or, if smaller, the mean distance of samples predicted right from the
    decision boundary.  Of several models, the largest mean distance is used, so that the curves
    show where the other models break.
    """
    audits, distances = list(audits), []
    for audit in audits:
        right = (audit.u > 0.0) & (audit.weights > 0.0)
        if right.any() and audit.sensitivity > 0.0:
            mean = float(np.average(audit.u[right], weights=audit.weights[right]))
            distances.append(mean / audit.sensitivity)
    flips = audits[-1].flip_costs
    least = float(np.min(flips[flips > 0.0], initial=math.inf))
    scale = min(least, max(distances, default=math.inf))
    scale = scale if math.isfinite(scale) else 1.0
    known = {fit.ball_.epsilon for audit in audits if (fit := audit.measured.fit) is not None}
    return tuple(sorted({share * scale for share in _SHARES} | known))


def own_radius(audits: Iterable[Adversary], radii: Sequence[float]) -> float:
    """The radius of the last model that was fitted for one; otherwise one of the larger radii."""
    fits = [audit.measured.fit for audit in audits]
    fitted = [fit.ball_.epsilon for fit in fits if fit is not None and fit.ball_.epsilon > 0.0]
    return fitted[-1] if fitted else radii[(2 * len(radii)) // 3]


def named_models(model: Any) -> dict[str, Any]:
    """The models under distinct names."""
    if isinstance(model, Mapping):
        models = {str(name): each for name, each in model.items()}
    else:
        each = model if isinstance(model, list) else [model]
        names = [_name(one) for one in each]
        models = {}
        for k, (name, one) in enumerate(zip(names, each, strict=True)):
            number = f" {names[: k + 1].count(name)}" if names.count(name) > 1 else ""
            models[name + number] = one
    if not models:
        raise ValueError("no model to audit: the list or mapping is empty")
    return models


def _name(model: Any) -> str:
    if isinstance(model, tuple):
        return "(coef, intercept)"
    if hasattr(model, "steps"):
        return _name(model.steps[-1][1])
    return type(model).__name__


@one_blas_thread
def audit_model(
    name: str,
    audit: Adversary,
    radii: tuple[float, ...],
    n_listed: int,
    row_names: Sequence[Any] | None = None,
) -> ModelAudit:
    """What an audit says about one model."""
    u, w = audit.u, audit.weights
    worst, breakpoints, at = worst_error(audit), audit.breakpoints, np.array(radii)
    flipped, reached = breakpoints.flipped_first(w)
    curves = (
        audit.flip_limits(at),
        breakpoints.curve(w, breakpoints.flipped()).at(at),
        audit.loss_curve().at(at),
        best_error(audit).at(at),
        worst.at(at),
    )
    rows = tuple(AuditRow(name, *row) for row in np.stack([at, *curves], axis=1).tolist())
    surprising = np.flatnonzero(w > 0.0)
    surprising = surprising[np.argsort(u[surprising], kind="stable")][:n_listed]
    return ModelAudit(
        name=name,
        loss=float(w @ audit.losses),
        error=float(w[audit.wrong].sum()),
        sensitivity=audit.sensitivity,
        half_wrong_radius=worst.radius_of(0.5),
        rows=rows,
        first_flipped=_listed(audit, flipped[:n_listed], reached, row_names),
        most_surprising=_listed(audit, surprising, np.full(surprising.size, math.inf), row_names),
    )


def _listed(
    audit: Adversary, indices: IndexArray, epsilons: FloatArray, row_names: Sequence[Any] | None
) -> tuple[AuditSample, ...]:
    each = indices.tolist()
    names = each if row_names is None else [row_names[i] for i in each]
    columns = each, audit.observed(indices), audit.u[indices].tolist(), epsilons.tolist(), names
    return tuple(AuditSample(*sample) for sample in zip(*columns, strict=False))
