"""How robust is a model you already have?  Nothing is refitted.

You have a pipeline in production: a scaler and a logistic regression.  What happens to it if a few
labels are wrong, or if the data move?  ``drlogit.audit`` answers for every distribution within a
Wasserstein radius ε of your test data, exactly and at once.

    python examples/audit_existing_model.py [picture.png]
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit


def main(picture: str | None = None) -> None:
    """Audit a plain model, look at its worst case, and set it beside a robust one."""
    data = load_breast_cancer(as_frame=True)
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.5, random_state=0, stratify=data.target
    )
    production = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

    # Distances are measured in the space in which the last step was fitted: after the scaler, so
    # that one step is one standard deviation.
    print("1. The audit: kappa = 1, so a wrong label counts for as much as one feature moved by")
    print("   one standard deviation, and epsilon is the share of labels that may be wrong.\n")
    print(drlogit.audit(production, X_test, y_test, kappa=1.0, n_listed=3))

    print("\n2. What the worst case looks like, if labels are beyond doubt and only data move:\n")
    worst = drlogit.worst_case_distribution(
        production, X_test, y_test, epsilon=0.05, kappa=np.inf, tol=1e-2
    )
    feature = X.columns[np.argmax(np.abs(worst.direction))]
    print(
        f"   expected log-loss {worst.expected_loss:.3f}, at most {worst.supremum:.3f}, reached by"
    )
    print(f"   moving {worst.moved_mass:.1%} of the samples by {worst.longest_move:.1f} standard")
    print(f"   deviations of '{feature}', the feature this model leans on most.")

    print("\n3. Beside two robust models, one that fears wrong labels and one that does not:\n")
    fears_labels = drlogit.DRLogisticRegression(epsilon=0.02, kappa=1.0)
    fears_moves = drlogit.DRLogisticRegression(epsilon=0.1, kappa=np.inf)
    models = {
        "production": production,
        "robust, kappa=1": make_pipeline(StandardScaler(), fears_labels).fit(X, y),
        "robust, kappa=inf": make_pipeline(StandardScaler(), fears_moves).fit(X, y),
    }
    report = drlogit.audit(models, X_test, y_test, kappa=1.0, n_listed=0)
    print(str(report).split("\n\nproduction:")[0])
    print(
        "\nThe first robust model wins where it was asked to: its worst-case log-loss grows far\n"
        "more slowly, because it is never very sure. It pays with a larger loss on the data as\n"
        "they are, and with the largest worst-case *error* of the three: to fear wrong labels is\n"
        "to keep every sample close to the decision boundary, from where it is easily moved\n"
        "across. The second one fears moves only. It gives up little on clean data, its loss\n"
        "grows more slowly than that of the production model, and its errors do not grow faster."
    )

    if picture is not None:
        from drlogit.report import RobustnessDisplay

        RobustnessDisplay.from_estimators(models, X_test, y_test, kappa=1.0).figure_.savefig(
            picture, dpi=150
        )
        print(f"\nwrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
