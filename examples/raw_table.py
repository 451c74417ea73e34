"""From a raw table to a model you can trust and ship.

A table of credits with text columns goes in as it is.  What may be wrong with it is said in plain
words, and the fit is certified against all of that at once.  Then: what the model says, how it
stands beside a plain one, and the same predictions from scikit-learn alone.

Run it with ``python examples/raw_table.py``.  It reads credit-g (UCI) where the folder DRLOGIT_DATA
has it, and else makes up a table like it.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit


def credits() -> tuple[pd.DataFrame, pd.Series]:
    """The table, and who paid back."""
    path = Path(os.environ.get("DRLOGIT_DATA", ".")) / "tables" / "credit-g.csv.bz2"
    if path.exists():
        table = pd.read_csv(path, keep_default_na=False)
        return table.drop(columns="class"), table["class"]
    rng, n = np.random.default_rng(0), 800
    table = pd.DataFrame(
        {
            "duration": rng.integers(6, 48, n),
            "credit_amount": rng.lognormal(7.8, 0.8, n).round(),
            "age": rng.integers(19, 75, n),
            "checking_status": rng.choice(["<0", "0<=X<200", ">=200", "no checking"], n),
            "housing": rng.choice(["own", "rent", "for free"], n),
        }
    )
    risk = 0.04 * table["duration"] - 1.5 * (table["checking_status"] == "no checking")
    bad = risk + rng.logistic(size=n) > 1.0
    return table, pd.Series(np.where(bad, "bad", "good"))


def main() -> None:
    """Fit, read, compare and ship."""
    X, X_test, y, y_test = train_test_split(*credits(), test_size=0.4, random_state=0)

    print("1. What may be wrong with the table:\n")
    ball = drlogit.Ball.tolerating(labels=0.02, numbers=0.05, categories=0.02)
    model = drlogit.DRLogisticRegression(ball=ball).fit(X, y)
    for sentence in model.ball_.allowed():
        print(textwrap.fill(sentence, 96, initial_indent="   ", subsequent_indent="     "))

    print("\n2. The fit, and its certificate:\n")
    print(f"   worst-case log-loss {model.worst_case_loss_:.4f}, and no linear model is below")
    print(f"   {model.worst_case_loss_ - model.dual_gap_:.4f}")
    levels = model.coefficient_table().dropna(subset="level")
    print("   what moves it most, relative to the average customer:")
    for row in levels.sort_values("coefficient", key=np.abs)[:-5:-1].itertuples():
        print(f"     {row.coefficient:+.2f}  {row.column} is {row.level}")

    print("\n3. Beside a plain model, on other customers, in one ball:\n")
    numbers = make_column_selector(dtype_include="number")
    columns = make_column_transformer(
        (StandardScaler(), numbers), remainder=OneHotEncoder(handle_unknown="ignore")
    )
    plain = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(X, y)
    # One ball for both, in the units of the table.
    models = {"plain": plain, "robust": model}
    report = drlogit.audit(models, X_test, y_test, ball=ball, metric="log_loss")
    for line in report.verdict():
        print(textwrap.fill(line, 90, initial_indent="   ", subsequent_indent="     "))

    print("\n4. Shipped without us:\n")
    served = model.to_sklearn()
    difference = np.abs(served.predict_proba(X_test) - model.predict_proba(X_test)).max()
    print(
        f"   {type(served[-1]).__name__} after {type(served[0]).__name__}: probabilities differ by"
    )
    print(f"   {difference:.0e} at most")


if __name__ == "__main__":
    main()
