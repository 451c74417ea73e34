"""A model file and the samples it is asked about."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.tables.frames import MISSING_MARKS
from ..files.columns import FileSamples, Wanted
from ..files.model_file import ModelFile, looks_like_model, read_model
from ..files.reading import read_samples
from ..robustness.features import of_encoding
from ..robustness.linear_model import LinearModel
from ..robustness.measured_model import MeasuredModel, where_measured
from ..rows.arrays import FloatArray, Matrix
from ..rows.row_blocks import is_in_blocks
from .console import Console
from .labels import match_labels


@dataclass(frozen=True, eq=False)
class ModelAndSamples:
    """A model, and samples with the model's features in the model's order."""

    file: ModelFile
    samples: FileSamples

    @property
    def model(self) -> Any:
        """The estimator."""
        return self.file.model

    @property
    def classes(self) -> list[Any]:
        labels: list[Any] = self.model.classes_.tolist()
        return labels

    @cached_property
    def matrix(self) -> Matrix:
        """The features that coefficients are multiplied with."""
        X = self.samples.X
        return X if is_in_blocks(X) else self.model._as_matrix(X)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The class of each sample; ``ValueError`` for a label that the model does not know."""
        assert self.samples.labels is not None
        against_rest = self.file.origin.get("positive_against_rest")
        return match_labels(self.samples.labels, self.classes, against_rest, self.samples.source)

    def measured(
        self, k: int, classes: tuple[Any, Any], instead: str | None, codes: NDArray[np.intp]
    ) -> MeasuredModel:
        """One fit among its samples, or ``instead`` of it a plain or constant model there."""
        model, encoding = self.model, self.model.encoding_
        coef, intercept = model.coef_[k], float(model.intercept_[k])
        if instead is not None:
            fit = _plain if instead == "lr" else _constant
            coef, intercept = fit(self.matrix, codes, self.samples.weights)
        return MeasuredModel(
            LinearModel(coef, intercept, classes),
            self.matrix,
            where_measured(model),
            norm=model.norm,
            kappa=float(model.kappa),
            costs=model.feature_costs_,
            categories=model.categories_,
            bounds=model.bounds_,
            names=self.samples.names if encoding is None else encoding.names,
            features=() if encoding is None else tuple(of_encoding(encoding)),
        )


def _plain(
    X: Matrix, codes: NDArray[np.intp], weights: FloatArray | None
) -> tuple[FloatArray, float]:
    """Logistic regression as most fit it: on standardised features, with scikit-learn's penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sp.issparse(X))
    fit = LogisticRegression(max_iter=10_000).fit(scaler.fit_transform(X), codes, weights)
    coef = fit.coef_[0] / scaler.scale_
    shift = float(coef @ scaler.mean_) if scaler.with_mean else 0.0
    return coef, float(fit.intercept_[0]) - shift


def _constant(
    X: Matrix, codes: NDArray[np.intp], weights: FloatArray | None
) -> tuple[FloatArray, float]:
    """The model that knows only how frequent the labels are."""
    share = float(np.average(codes, weights=weights))
    return np.zeros(X.shape[1]), float(np.log(share) - np.log1p(-share))


def read_asked(arguments: argparse.Namespace, *, labels: bool) -> ModelAndSamples:
    """Read a model and the samples to ask it about."""
    try:
        file = read_model(arguments.model)
    except (ValueError, OSError):
        if looks_like_model(arguments.data):
            raise ValueError(
                f"{arguments.model} is no model, but {arguments.data} is: the model comes first, "
                f"drlogit {arguments.command} {arguments.data} {arguments.model}"
            ) from None
        raise
    encoding, names = file.model.encoding_, file.feature_names
    n_features = int(file.model.n_features_in_)
    wanted = _wanted(
        arguments,
        file.origin,
        labels=labels,
        features=None if names is None else tuple(names),
        weights=arguments.weights,
        n_features=n_features,
        table=encoding is not None,
        texts=tuple(str(c.name) for c in encoding.columns if c.levels is not None)
        if encoding
        else (),
        numbers=tuple(str(n) for n in file.origin.get("numbers") or () if n in (names or ())),
        missing_marks=encoding.missing_marks if encoding else MISSING_MARKS,
    )
    samples = read_samples(arguments.data, wanted, label_file=arguments.labels)
    found = samples.X.shape[1]
    if found != n_features:
        raise ValueError(
            f"{samples.source} has {found} features, but the model {arguments.model} has "
            f"{n_features}"
        )
    if names is None and samples.feature_names is not None:
        shown = ", ".join(samples.feature_names[:8]) + (", …" if n_features > 8 else "")
        Console(arguments).note(
            f"warning: {arguments.model} was fitted without feature names, so the columns of "
            f"{samples.source} are taken in the order in which they stand: {shown}"
        )
    if names is None and hasattr(samples.X, "columns"):
        samples.X.columns = range(n_features)
    return ModelAndSamples(file, samples)


def read_column(asked: ModelAndSamples, arguments: argparse.Namespace, name: str) -> list[Any]:
    """The values of a column of the data that need not be a feature, as they stand there."""
    wanted = _wanted(
        arguments, asked.file.origin, labels=False, features=(name,), table=True, texts=(name,),
        missing_marks=(),
    )  # fmt: skip
    X = read_samples(arguments.data, wanted, label_file=arguments.labels).X
    values: list[Any] = (X.iloc[:, 0] if hasattr(X, "iloc") else np.asarray(X)[:, 0]).tolist()
    return values


def _wanted(arguments: argparse.Namespace, origin: dict[str, Any], **options: Any) -> Wanted:
    """What to read of the data, as the model's were read where nobody says otherwise."""
    target = arguments.target if arguments.target is not None else origin.get("target")
    if target is not None and str(target) in (options.get("features") or ()):
        target = None
    zero_based = arguments.zero_based
    return Wanted(
        target=None if target is None else str(target),
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        zero_based=bool(origin.get("zero_based") if zero_based is None else zero_based),
        **options,
    )
