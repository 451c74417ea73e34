"""The models that others fit to a table: columns encoded as usual, and a plain logistic model."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def usual(frame: pd.DataFrame, last: Any) -> Any:
    """Numbers imputed and scaled, other columns one-hot, and a last step."""
    numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c])]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), [c for c in frame if c not in numbers]),
    )
    return make_pipeline(columns, last)


def ridge(X: Any, folds: int = 5) -> Any:
    """Logistic regression whose penalty cross-validation chooses by log-loss."""
    last = LogisticRegressionCV(Cs=10, cv=folds, scoring="neg_log_loss", max_iter=3000)
    if isinstance(X, pd.DataFrame):
        return usual(X, last)
    return make_pipeline(StandardScaler(with_mean=False), last)
