"""How robust is this model?  Worst-case loss and error of fitted models over a range of radii.

    print(drlogit.audit(pipeline, X, y))
    print(drlogit.audit({"plain": lr, "robust": drlr}, X, y, kappa=0.5, epsilons=[0.01, 0.1]))

No model is refitted.  The samples should be ones the models were not fitted on, if there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..problem.losses import log_loss
from ..problem.norms import Norm
from ..problem.parameters import check_epsilon
from ..rows.arrays import FloatArray
from .misclassification import best_error, bounds_at, worst_error
from .questions import Question, pose
from .spaces import fitted_with
from .worst_case import flips_of, loss_at

#: Radii of an audit that names none, as shares of κ or of the mean distance to the boundary.
_SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class AuditRow:
    """One model at one radius.

    ``flip_limit`` is ``ε/κ``, the largest share of labels that may be flipped; ``flip_share`` is
    what the worst case for the log-loss really flips, the rest of its budget going into moves.
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

    ``epsilon`` is the smallest radius at which the worst case flips the whole of its label
    (``inf`` in lists that are not about flips).
    """

    index: int
    label: Any
    margin: float
    epsilon: float


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
        look by who wants to find wrong labels; the worst case does not touch them.
    """

    name: str
    loss: float
    error: float
    sensitivity: float
    half_wrong_radius: float
    rows: tuple[AuditRow, ...]
    first_flipped: tuple[AuditSample, ...]
    most_surprising: tuple[AuditSample, ...]


@dataclass(frozen=True)
class Audit:
    """The outcome of :func:`audit`; print it, index it by model name, or take its rows."""

    kappa: float
    norm: str
    n_samples: int
    epsilons: tuple[float, ...]
    models: tuple[ModelAudit, ...]
    spaces: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ModelAudit:
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(repr(model.name) for model in self.models)
        raise KeyError(f"no model {name!r} in this audit, only {known}")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One flat record per model and radius: ``pandas.DataFrame(report.rows)``."""
        return [asdict(row) for model in self.models for row in model.rows]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dictionaries, lists, strings and numbers, ready for JSON.

        Infinite numbers stay floats, which ``json.dumps`` writes as ``Infinity``.
        """
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_report(self))


def audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilons: Iterable[float] | None = None,
    kappa: float | None = None,
    norm: str | Norm | None = None,
    feature_costs: Any = None,
    categories: Any = None,
    bounds: Any = None,
    space: str = "fitted",
    sample_weight: ArrayLike | None = None,
    n_listed: int = 5,
) -> Audit:
    """Worst-case loss and error of one or several fitted models over a range of radii.

    Parameters
    ----------
    model : a model, or a list or mapping of models
        Each as in :func:`drlogit.worst_case_loss`.  Models in a mapping go by their keys, others
        by their class.
    X, y, norm, feature_costs, categories, bounds, space, \
sample_weight
        As in :func:`drlogit.worst_case_loss`.
    epsilons : iterable of float, optional
        Radii, sorted for the report.  By default 0 to 20 % of κ or, where that is less, of the
        mean distance between the samples predicted right and the decision boundary.
    kappa : float, optional
        Cost of flipping a label, positive, ``inf`` if labels are beyond doubt; at most a share
        ``epsilon / kappa`` of the labels can be flipped.  By default that of the models that are
        ours, else 1.
    n_listed : int
        How many samples to list.

    Returns
    -------
    Audit
    """
    models = named_models(model)
    norm, kappa = _common(models.values(), norm, kappa)
    questions = {
        name: pose(
            each, X, y, epsilon=0.0, kappa=kappa, norm=norm,
            feature_costs=feature_costs, categories=categories, bounds=bounds, space=space,
            sample_weight=sample_weight,
        )
        for name, each in models.items()
    }  # fmt: skip
    first = next(iter(questions.values())).problem
    if epsilons is None:
        radii = tuple(share * _scale(questions.values()) for share in _SHARES)
    else:
        radii = tuple(sorted({check_epsilon(epsilon) for epsilon in epsilons}))
        if not radii:
            raise ValueError("epsilons must hold at least one radius, got none")
    return Audit(
        kappa=first.kappa,
        norm=first.norm.name,
        n_samples=first.rows.n_samples,
        epsilons=radii,
        spaces=tuple(dict.fromkeys(question.space for question in questions.values())),
        models=tuple(_audit(name, each, radii, n_listed) for name, each in questions.items()),
    )


def _common(models: Iterable[Any], norm: Any, kappa: float | None) -> tuple[Any, float]:
    """The norm and κ of all models: as stated, or as those that are ours were fitted."""
    known = [fitted_with(model) for model in models]
    if norm is None:
        norm = _agreed([each.norm for each in known if each.norm is not None], "norm", "l1")
    if kappa is None:
        kappa = _agreed([each.kappa for each in known if each.kappa is not None], "kappa", 1.0)
    return norm, kappa


def _agreed(values: list[Any], name: str, otherwise: Any) -> Any:
    different = sorted(set(values))
    if len(different) > 1:
        shown = " and ".join(f"{value}" for value in different)
        raise ValueError(f"the models were fitted with {name} {shown}: say which with {name}=")
    return different[0] if different else otherwise


def named_models(model: Any) -> dict[str, Any]:
    """The models under distinct names."""
    if isinstance(model, Mapping):
        models = {str(name): each for name, each in model.items()}
    elif isinstance(model, list):
        names = [_name(each) for each in model]
        repeated = {name for name, times in Counter(names).items() if times > 1}
        seen: Counter[str] = Counter()
        models = {}
        for name, each in zip(names, model, strict=True):
            seen[name] += 1
            models[f"{name} {seen[name]}" if name in repeated else name] = each
    else:
        models = {_name(model): model}
    if not models:
        raise ValueError("no model to audit: the list or mapping is empty")
    return models


def _name(model: Any) -> str:
    if isinstance(model, tuple):
        return "(coef, intercept)"
    if hasattr(model, "steps"):
        return _name(model.steps[-1][1])
    return type(model).__name__


def _scale(questions: Iterable[Question]) -> float:
    """κ or, if smaller, the mean distance of samples predicted right from the boundary."""
    distances = []
    for question in questions:
        right = (question.u > 0.0) & (question.weights > 0.0)
        if right.any() and question.sensitivity > 0.0:
            mean = float(np.average(question.u[right], weights=question.weights[right]))
            distances.append(mean / question.sensitivity)
    # Of several models, the sturdiest: the others are then seen to break on the way.
    scale = min(question.problem.kappa, max(distances, default=math.inf))
    return scale if math.isfinite(scale) else 1.0


def _audit(name: str, question: Question, radii: tuple[float, ...], n_listed: int) -> ModelAudit:
    u, w, kappa = question.u, question.weights, question.problem.kappa
    best, worst = best_error(question), worst_error(question)
    flips = flips_of(question)
    errors = [bounds_at(epsilon, best, worst) for epsilon in radii]
    rows = tuple(
        AuditRow(
            model=name,
            epsilon=epsilon,
            flip_limit=min(epsilon / kappa, 1.0),
            flip_share=flips.at(epsilon),
            worst_case_loss=loss_at(question, epsilon),
            best_error=error.best,
            worst_error=error.worst,
        )
        for epsilon, error in zip(radii, errors, strict=True)
    )
    # On the boundary, scikit-learn predicts the negative class.
    wrong = (u < 0.0) | ((u == 0.0) & (question.signs > 0.0))
    surprising = np.flatnonzero(w > 0.0)
    surprising = surprising[np.argsort(u[surprising], kind="stable")][:n_listed]
    return ModelAudit(
        name=name,
        loss=float(w @ log_loss(u)),
        error=float(w[wrong].sum()),
        sensitivity=question.sensitivity,
        half_wrong_radius=worst[1].radius_of(0.5),
        rows=rows,
        first_flipped=_listed(question, flips.samples[:n_listed], flips.reached),
        most_surprising=_listed(question, surprising, np.full(surprising.size, math.inf)),
    )


def _listed(
    question: Question, indices: NDArray[np.intp], epsilons: FloatArray
) -> tuple[AuditSample, ...]:
    labels = question.labels(question.signs[indices]).tolist()
    return tuple(
        AuditSample(int(i), label, float(question.u[i]), float(epsilon))
        for i, label, epsilon in zip(indices, labels, epsilons, strict=False)
    )


# --- the report -----------------------------------------------------------------------------


def _report(report: Audit) -> list[str]:
    several = len(report.models) > 1
    subject = f"{len(report.models)} models" if several else report.models[0].name
    lines = [f"Audit of {subject} on {report.n_samples} samples, {report.norm} transport"]
    if math.isinf(report.kappa):
        lines.append("kappa = inf: labels cannot be flipped, only features move")
    else:
        lines.append(
            f"kappa = {report.kappa:g}: at most a share epsilon/kappa of the labels can be flipped"
        )
    lines += [f"distances {space}" for space in report.spaces]
    lines += ["", *_tables(report)]
    for model in report.models:
        prefix = f"{model.name}: " if several else ""
        lines += ["", f"{prefix}half of the predictions can be wrong {_half_wrong(model)}"]
        if model.first_flipped:
            lines.append("labels the worst case flips first, where an error costs most:")
            lines += [
                f"  row {s.index}: label {s.label!r}, margin {s.margin:.3g}"
                f", flipped from epsilon = {s.epsilon:.3g}"
                for s in model.first_flipped
            ]
        elif math.isfinite(report.kappa):
            lines.append("no label is worth flipping: moving features hurts this model more")
        lines.append("labels that surprise the model most (the worst case leaves them alone):")
        lines += [
            f"  row {s.index}: label {s.label!r}, margin {s.margin:.3g}"
            for s in model.most_surprising
        ]
    return lines


def _half_wrong(model: ModelAudit) -> str:
    if math.isinf(model.half_wrong_radius):
        return "at no radius"
    return f"from epsilon = {model.half_wrong_radius:.3g}"


def _tables(report: Audit) -> list[str]:
    """Radii down: loss and error of one model side by side, of several in a table each."""
    losses = [[f"{row.worst_case_loss:.4f}" for row in model.rows] for model in report.models]
    errors = [
        [f"{row.best_error:.1%} to {row.worst_error:.1%}" for row in model.rows]
        for model in report.models
    ]
    radii = {"epsilon": [f"{epsilon:.4g}" for epsilon in report.epsilons]}
    if math.isfinite(report.kappa):
        radii["flips up to"] = [f"{row.flip_limit:.1%}" for row in report.models[0].rows]
    names = [_short(model.name) for model in report.models]
    if len(names) == 1:
        return _table([*radii.items(), ("log-loss", losses[0]), ("error", errors[0])])
    return [
        "worst-case log-loss (nats)",
        *_table([*radii.items(), *zip(names, losses, strict=True)]),
        "",
        "error, best to worst case",
        *_table([*radii.items(), *zip(names, errors, strict=True)]),
    ]


def _table(columns: list[tuple[str, list[str]]]) -> list[str]:
    widths = [max(map(len, [head, *cells])) for head, cells in columns]
    lines = [[head for head, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"
