"""The pages of the gallery, made from data that come with scikit-learn or are made up here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import drlogit


def tumours(path: Path) -> None:
    """Two robust models beside a plain one, on tumours that none of them has seen."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    labels = np.where(y == 1, "benign", "malignant")
    X, X_test, y, y_test = train_test_split(X, labels, random_state=0, stratify=labels)
    models = {
        "plain LR": LogisticRegression(),
        "robust to labels": drlogit.DRLogisticRegression(epsilon=0.02, kappa=1.0),
        "robust to moves": drlogit.DRLogisticRegression(epsilon=0.1, kappa=np.inf),
    }
    fitted = {name: make_pipeline(StandardScaler(), m).fit(X, y) for name, m in models.items()}
    ball = drlogit.Ball.tolerating(labels=0.02, numbers=0.1)
    report = drlogit.audit(fitted, X_test, y_test, ball=ball, pos_label="malignant")
    report.to_html(path, title=f"Breast cancer: {len(y_test)} tumours that no model has seen")


def loans(path: Path) -> None:
    """A credit model on a table with categories, and whether it treats ages alike."""
    X, y = _loans()
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    prices = drlogit.Ball.tolerating(labels=0.03, numbers=0.1, categories=0.05)
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    models = {
        "plain LR": make_pipeline(encoder, LogisticRegression()).fit(X, y),
        "robust": drlogit.DRLogisticRegression(ball=prices).fit(X, y),
    }
    ball = drlogit.Ball.tolerating(labels=0.03, numbers=0.1, categories=0.05)
    ages = np.where(X_test["age"] < 30, "below 30", "30 and older")
    report = drlogit.audit(
        models, X_test, y_test, ball=ball, pos_label="defaulted", by={"age": ages}
    )
    report.to_html(path, title=f"Made-up loans: {len(y_test)} that no model has seen")


def _loans() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    n = 1600
    X = pd.DataFrame(
        {
            "age": rng.integers(19, 70, n),
            "amount": np.round(np.exp(rng.normal(8.0, 0.7, n)), -2),
            "months": rng.choice([12, 24, 36, 48, 60], n),
            "account": rng.choice(["none", "overdrawn", "some", "full"], n, p=[0.3, 0.2, 0.3, 0.2]),
            "purpose": rng.choice(["car", "furniture", "education", "business", "repairs"], n),
            "housing": rng.choice(["own", "rent", "free"], n, p=[0.6, 0.3, 0.1]),
            "job": rng.choice(["clerk", "skilled", "manager", "unemployed"], n),
        }
    )
    score = (
        1.6
        + 0.02 * (X["age"] - 40)
        - 0.00012 * X["amount"]
        - 0.02 * (X["months"] - 36)
        + X["account"].map({"none": 0.9, "overdrawn": -1.0, "some": -0.2, "full": 0.4})
        + X["purpose"].map({"education": -0.7, "business": -0.3}).fillna(0.1)
        + X["job"].map({"unemployed": -0.6, "manager": 0.3}).fillna(0.0)
    )
    return X, np.where(score + rng.logistic(size=n) > 0, "repaid", "defaulted")


def wines(path: Path) -> None:
    """Three classes, told apart by one softmax."""
    data = load_wine(as_frame=True)
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[data.target]
    robust = drlogit.DRLogisticRegression(epsilon=0.05, kappa=1.0)
    report = drlogit.audit({"robust": robust.fit(data.data, labels)}, data.data, labels)
    report.to_html(path, title="Three kinds of wine, told apart by 13 measurements")


PAGES = {"tumours": tumours, "loans": loans, "wines": wines}


def write(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        make(folder / f"{name}.html")
