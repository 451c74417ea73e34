"""``drlogit demo``: fit, certify and explain a robust model on bundled data."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .console import DONE, NOT_CONVERGED, Console
from .options import Commands, add_model_options, new_parser
from .outputs import certificate_record, check_outputs, explain_radius

_BAR = 30


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "demo",
        help="fit, certify and explain a robust model on bundled data",
        description="Fit plain and robust logistic regression on scikit-learn's breast cancer "
        "data (standardised) and say how bad each can get on them.",
        examples="""
        drlogit demo
        drlogit demo -o demo.html
        drlogit demo --epsilon 0.02 --kappa inf
        """,
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="web page to write, which compares the two (.html)"
    )
    add_model_options(parser, epsilon=0.1, kappa=1.0)
    parser.set_defaults(run=run)


@dataclass(frozen=True, eq=False)
class _Demo:
    """Everything the demo talks about."""

    epsilon: float
    kappa: float
    labels: list[str]
    n_features: int
    result: Any
    audit: Any

    @property
    def margins(self) -> Any:
        """Those of the robust model."""
        return self.audit.audited["robust"].audit.u


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    console = Console(arguments)
    check_outputs(arguments)
    demo = _prepare(arguments)
    if arguments.output is not None:
        n_samples = len(demo.labels)
        demo.audit.to_html(
            arguments.output,
            subtitle=f"Plain and robust logistic regression on {n_samples} tumours: scikit-learn's "
            "breast cancer data",
        )
    console.answer(_record(demo), lambda: _text(demo, arguments.output))
    return DONE if demo.result.converged else NOT_CONVERGED


def _prepare(arguments: argparse.Namespace) -> _Demo:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from ..estimators.choosing import suggest_radius
    from ..fitting.solving import solve
    from ..plots.audits import audit_of
    from ..problem.parameters import check_kappa
    from ..robustness.measured_model import FittedWith

    data: Any = load_breast_cancer()
    scaler = StandardScaler()
    X, y = scaler.fit_transform(data.data), data.target
    ball = {"kappa": check_kappa(arguments.kappa), "norm": arguments.norm}
    epsilon = arguments.epsilon
    if epsilon == "auto":
        epsilon = float(suggest_radius(X, y, norm=arguments.norm))
    result = solve(X, y, epsilon=epsilon, **ball)
    plain = LogisticRegression().fit(X, y)
    labels = np.asarray(data.target_names)[y]
    fitted = FittedWith(arguments.norm, ball["kappa"], epsilon, (result,))
    asked = {
        "plain LR": _ask(plain.coef_[0], plain.intercept_[0], X, labels, data, scaler, ball),
        "robust": _ask(result.coef, result.intercept, X, labels, data, scaler, ball, fitted),
    }
    radii = [epsilon * quarter / 4 for quarter in range(9)]  # the fifth is epsilon itself
    return _Demo(
        epsilon=epsilon,
        kappa=arguments.kappa,
        labels=labels.tolist(),
        n_features=X.shape[1],
        result=result,
        audit=audit_of(asked, radii, 5, ball="robust"),
    )


def _ask(
    coef: Any, intercept: float, X: Any, labels: Any, data: Any, scaler: Any, ball: dict[str, Any],
    fitted: Any = None,
) -> Any:  # fmt: skip
    """A model among the standardised samples; its page speaks of them in their own units."""
    from ..robustness.audit_problem import audit_problem_of
    from ..robustness.audited_models import AuditedModel
    from ..robustness.features import Feature
    from ..robustness.linear_model import LinearModel
    from ..robustness.measured_model import FittedWith, MeasuredModel

    classes = (str(data.target_names[0]), str(data.target_names[1]))
    features = tuple(
        Feature(str(name), np.array([j]), None, "", 1.0 / scale, -mean / scale)
        for j, (name, mean, scale) in enumerate(
            zip(data.feature_names, scaler.mean_, scaler.scale_, strict=True)
        )
    )
    linear = LinearModel(np.asarray(coef), float(intercept), classes)
    measured = MeasuredModel(linear, X, "in standard deviations", features=features)
    question = audit_problem_of(
        measured, labels, epsilon=0.0, feature_costs=None, sample_weight=None, **ball
    )
    return AuditedModel(question, fitted or FittedWith())


def _record(demo: _Demo) -> dict[str, Any]:
    return {
        "n_samples": len(demo.labels),
        "n_features": demo.n_features,
        "epsilon": demo.epsilon,
        "kappa": demo.kappa,
        "fit": certificate_record(demo.result),
        "share_flipped": float(demo.result.flip_share.mean()),
        "audit": demo.audit.rows,
    }


def _text(demo: _Demo, page: str | None) -> str:
    n_samples = len(demo.labels)
    return "\n".join(
        [
            f"Breast cancer: {n_samples} tumours, {demo.n_features} features (standardised).",
            "",
            explain_radius(demo.epsilon, demo.kappa, n_samples),
            "",
            *_comparison(demo),
            "",
            *_curves(demo),
            *_certificate(demo),
            "",
            *_flips(demo),
            "",
            f"The same as a page to look at: {page}"
            if page
            else "drlogit demo -o demo.html makes a page of this to look at.",
        ]
    )


def _comparison(demo: _Demo) -> list[str]:
    models = demo.audit.models
    at = [next(row for row in model.rows if row.epsilon == demo.epsilon) for model in models]
    lines = [
        f"{'':34}" + "".join(f"{model.name:>10}" for model in models),
        f"{'log-loss, data as they are':34}" + "".join(f"{m.loss:10.3f}" for m in models),
        f"{'log-loss, worst case allowed':34}" + "".join(f"{r.worst_case_loss:10.3f}" for r in at),
        f"{'error, data as they are':34}" + "".join(f"{m.error:10.1%}" for m in models),
        f"{'error, worst case allowed':34}" + "".join(f"{row.worst_error:10.1%}" for row in at),
    ]
    plain, robust = (row.worst_error for row in at)
    if robust > plain:
        lines += [
            "Why the last is higher: kappa guards the loss, not the error. Where labels may be",
            "wrong at a low price, the robust model is less sure of everything, so that a wrong",
            "label costs it little; and then less of a move takes a sample across its boundary.",
        ]
    return lines


def _curves(demo: _Demo) -> list[str]:
    """Worst-case losses as bars, model by model, over a range of radii."""
    if demo.epsilon == 0.0:
        return []
    models = demo.audit.models
    largest = max(row.worst_case_loss for model in models for row in model.rows)
    lines = ["Worst-case log-loss against epsilon (# robust, . plain LR)"]
    for plain, robust in zip(models[0].rows, models[1].rows, strict=True):
        hashes = round(_BAR * robust.worst_case_loss / largest)
        dots = max(round(_BAR * plain.worst_case_loss / largest) - hashes, 0)
        bar = "#" * hashes + "." * dots
        lines.append(
            f"{plain.epsilon:10.4g} {bar:{_BAR}} {robust.worst_case_loss:.3f} / "
            f"{plain.worst_case_loss:.3f}" + (" *" if plain.epsilon == demo.epsilon else "")
        )
    return [*lines, f"{'':10} * the radius the robust model was fitted for", ""]


def _certificate(demo: _Demo) -> list[str]:
    result = demo.result
    lines = [
        "How sure is that, on the data it was fitted to?",
        f"  The robust model's worst-case loss is    {result.objective:.7f}.",
        f"  No linear model can have one below       {result.dual_objective:.7f}.",
        f"  It is therefore optimal up to the gap of {result.gap:.1e}.",
    ]
    return lines if result.converged else [*lines, f"  Not converged: {result.status}."]


def _flips(demo: _Demo) -> list[str]:
    result, u = demo.result, demo.margins
    flipped = float(result.flip_share.mean())
    lines = ["What does the worst case do to the robust model?"]
    if flipped < 1e-6:
        return [*lines, "  It flips no label, and spends the whole radius on moving features."]
    lines += [
        f"  It flips {flipped:.1%} of the labels, those the model is surest of first:",
        f"  {'sample':>8}  {'label':<10} {'model gives it':>15} {'share flipped':>14}",
    ]
    # Many shares are 1 up to rounding; among those, the larger margin gains more.
    for i in np.lexsort((-u, -np.round(result.flip_share, 3)))[:5]:
        lines.append(
            f"  {i:>8}  {demo.labels[i]:<10} {expit(u[i]):>15.1%} {result.flip_share[i]:>14.0%}"
        )
    lines.append("  These labels are not suspicious: they are where an error would cost most.")
    if result.lam > 0.0 and demo.kappa * flipped < demo.epsilon * (1.0 - 1e-6):
        lines.append("  What is left of the radius goes into moving features.")
    return lines
