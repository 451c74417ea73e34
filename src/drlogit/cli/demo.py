"""``drlogit demo``: fit, certify and explain a robust model on bundled data."""

from __future__ import annotations

import argparse
import math

from .console import DONE, NOT_CONVERGED
from .options import Commands, add_model_options, new_parser


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = new_parser(
        commands,
        "demo",
        help="fit, certify and explain a robust model on bundled data",
        description="Fit plain and robust logistic regression on scikit-learn's breast cancer "
        "data (standardised) and say what each can guarantee.",
        examples="""
        drlogit demo
        drlogit demo --epsilon 0.02 --kappa inf
        """,
    )
    add_model_options(parser, epsilon=0.1, kappa=1.0)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from ..problem import build_problem
    from ..solve import solve

    data = load_breast_cancer()
    X, y = StandardScaler().fit_transform(data.data), data.target
    epsilon, kappa, norm = arguments.epsilon, arguments.kappa, arguments.norm
    problem = build_problem(X, y, epsilon=epsilon, kappa=kappa, norm=norm)
    result = solve(X, y, epsilon=epsilon, kappa=kappa, norm=norm)
    plain = LogisticRegression().fit(X, y)

    print(f"Breast cancer: {X.shape[0]} tumours, {X.shape[1]} features (standardised).")
    print()
    print(_explain_radius(epsilon, kappa, X.shape[0]))
    print()

    models = {
        "plain LR": problem.join(plain.coef_, plain.intercept_[0]),
        "robust": problem.join(result.coef, result.intercept),
    }
    as_given = problem.with_radius(0.0)
    margins = {name: problem.rows.gather(problem.margins(v)) for name, v in models.items()}
    print(f"{'':34}" + "".join(f"{name:>10}" for name in models))
    for title, values in {
        "log-loss, data as they are": [as_given.objective(v) for v in models.values()],
        "log-loss, worst case allowed": [problem.objective(v) for v in models.values()],
    }.items():
        print(f"{title:34}" + "".join(f"{value:10.3f}" for value in values))
    accuracies = [np.mean(u > 0.0) for u in margins.values()]
    print(f"{'accuracy, data as they are':34}" + "".join(f"{a:10.1%}" for a in accuracies))
    print()

    print("How sure is that?")
    print(f"  The robust model's worst-case loss is    {result.objective:.7f}.")
    print(f"  No linear model can have one below       {result.dual_objective:.7f}.")
    print(f"  It is therefore optimal up to the gap of {result.gap:.1e}.")
    if not result.converged:
        print(f"  Not converged: {result.status}.")
    print()

    print("What does the worst case do to the robust model?")
    flipped = float(result.flip_share.mean())
    if flipped < 1e-6:
        print("  It flips no label, and spends the whole radius on moving features.")
    else:
        print(f"  It flips {flipped:.1%} of the labels, those the model is surest of first:")
        print(f"  {'sample':>8}  {'label':<10} {'model gives it':>15} {'share flipped':>14}")
        # Many shares are 1 up to rounding; among those, the larger margin gains more.
        u = margins["robust"]
        first = np.lexsort((-u, -np.round(result.flip_share, 3)))[:5]
        for i in first:
            label, probability = data.target_names[y[i]], 1.0 / (1.0 + np.exp(-u[i]))
            print(f"  {i:>8}  {label:<10} {probability:>15.1%} {result.flip_share[i]:>14.0%}")
        print("  These labels are not suspicious: they are where an error would cost most.")
        if result.lam > 0.0 and kappa * flipped < epsilon * (1.0 - 1e-6):
            print("  What is left of the radius goes into moving features.")
    return DONE if result.converged else NOT_CONVERGED


def _explain_radius(epsilon: float, kappa: float, n_samples: int) -> str:
    """What ε and κ allow the adversary, in plain words."""
    lines = [
        "What may go wrong with the data?",
        f"  epsilon = {epsilon:g}: how far samples may move, on average.",
    ]
    if math.isinf(kappa):
        lines.append("  kappa = inf: labels are beyond doubt; only features may move.")
    else:
        share = min(epsilon / kappa, 1.0)
        lines += [
            f"  kappa = {kappa:g}: flipping one label counts as moving a sample that far.",
            f"  So at most epsilon/kappa = {share:.3g} of all labels may be flipped "
            f"(about {share * n_samples:.0f} of {n_samples}).",
        ]
    return "\n".join(lines)
