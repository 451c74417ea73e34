"""A model file and the samples it is asked about."""

from __future__ import annotations

import argparse
import copy
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
from ..robustness.spaces import Placed, space_of
from ..rows.arrays import FloatArray, Matrix
from ..rows.matrix import matvec
from .console import Console


@dataclass(frozen=True, eq=False)
class ModelAndSamples:
    """A model, samples with the model's features in the model's order, and scores."""

    file: ModelFile
    samples: FileSamples

    @property
    def classes(self) -> list[Any]:
        labels: list[Any] = self.file.model.classes_.tolist()
        return labels

    @cached_property
    def probabilities(self) -> FloatArray:
        """A column for each class."""
        return np.asarray(self._nameless.predict_proba(self.samples.X))

    @cached_property
    def log_probabilities(self) -> FloatArray:
        """Their logarithms, finite however sure the model is."""
        return np.asarray(self._nameless.predict_log_proba(self.samples.X))

    @cached_property
    def predicted_codes(self) -> NDArray[np.intp]:
        """Positions of the predicted labels in ``classes``."""
        model = copy.copy(self._nameless)
        model.classes_ = np.arange(len(self.classes))
        return np.asarray(model.predict(self.samples.X))

    @property
    def predictions(self) -> list[Any]:
        """The predicted labels."""
        classes = self.classes
        return [classes[code] for code in self.predicted_codes]

    @cached_property
    def matrix(self) -> Matrix:
        """The features that coefficients are multiplied with."""
        if self.file.model.encoding_ is None:
            return self.samples.X
        return self._nameless._as_matrix(self.samples.X)

    @property
    def names(self) -> list[str]:
        """What these features are called."""
        encoding = self.file.model.encoding_
        return self.samples.names if encoding is None else encoding.names

    @property
    def moves(self) -> dict[str, Any]:
        """How distance was measured in the fit."""
        model = self.file.model
        return {
            "norm": model.norm,
            "feature_costs": model.feature_costs_,
            "categories": model.categories_,
            "bounds": model.bounds_,
        }

    @property
    def space(self) -> str:
        """Where distance was measured in the fit, in words."""
        return space_of(self.file.model)

    def scores(self, k: int = 0) -> FloatArray:
        """``x·β + b`` of one fit."""
        model = self.file.model
        return matvec(self.matrix, model.coef_[k]) + float(model.intercept_[k])

    def linear(self, k: int = 0) -> LinearModel:
        """One fit as a linear model that tells label 1 from label 0."""
        model = self.file.model
        return LinearModel(model.coef_[k], float(model.intercept_[k]), (0, 1))

    def placed(
        self, k: int, classes: tuple[Any, Any], instead: str | None, codes: NDArray[np.intp]
    ) -> Placed:
        """One fit among its samples, or ``instead`` of it a plain or constant model there."""
        model = self.file.model
        linear = LinearModel(model.coef_[k], float(model.intercept_[k]), classes)
        if instead is not None:
            fit = _plain if instead == "lr" else _constant
            coef, intercept = fit(self.matrix, codes, self.samples.weights)
            linear = LinearModel(coef, intercept, classes)
        encoding = model.encoding_
        return Placed(
            linear,
            self.matrix,
            self.space,
            norm=model.norm,
            kappa=float(model.kappa),
            costs=model.feature_costs_,
            categories=model.categories_,
            bounds=model.bounds_,
            names=self.names,
            features=() if encoding is None else tuple(of_encoding(encoding)),
        )

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The class of each sample; ``ValueError`` for a label that the model does not know."""
        assert self.samples.labels is not None
        return match_labels(
            self.samples.labels,
            self.classes,
            self.file.origin.get("positive_against_rest"),
            self.samples.source,
        )

    @cached_property
    def _nameless(self) -> Any:
        """The estimator without feature names: they have been matched when the file was read."""
        model = copy.copy(self.file.model)
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        return model


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
    origin = file.origin
    names = file.feature_names
    n_features = int(file.model.n_features_in_)
    encoding = file.model.encoding_
    target = arguments.target if arguments.target is not None else origin.get("target")
    zero_based = arguments.zero_based
    wanted = Wanted(
        labels=labels,
        target=None if target is None else str(target),
        features=None if names is None else tuple(names),
        weights=arguments.weights,
        n_features=n_features,
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        zero_based=bool(origin.get("zero_based") if zero_based is None else zero_based),
        table=encoding is not None,
        texts=tuple(str(c.name) for c in encoding.columns if c.levels) if encoding else (),
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
    return ModelAndSamples(file, samples)


def read_column(asked: ModelAndSamples, arguments: argparse.Namespace, name: str) -> list[Any]:
    """The values of a column of the data that need not be a feature, as they stand there."""
    origin = asked.file.origin
    target = arguments.target if arguments.target is not None else origin.get("target")
    wanted = Wanted(
        labels=False,
        target=None if target is None or target == name else str(target),
        features=(name,),
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        table=True,
        texts=(name,),
    )
    X = read_samples(arguments.data, wanted, label_file=arguments.labels).X
    values: list[Any] = (X.arrays[0] if hasattr(X, "arrays") else np.asarray(X)[:, 0]).tolist()
    return values


def match_labels(
    labels: NDArray[Any], classes: list[Any], against_rest: Any, source: str
) -> NDArray[np.intp]:
    """Positions of labels in the classes of a model, numbers and text compared as text if mixed."""
    if against_rest is not None:
        return _same(labels, against_rest).astype(np.intp)
    codes = np.full(labels.size, -1, dtype=np.intp)
    for position, label in enumerate(classes):
        codes[_same(labels, label)] = position
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
        raise ValueError(
            f"{source}: row {unknown[0] + 1} has the label {labels[unknown[0]].item()!r}, which "
            f"the model does not know; its classes are {shown}"
        )
    return codes


def _same(labels: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    if labels.dtype.kind == "U" or isinstance(label, str):
        return np.asarray(labels.astype(str) == str(label))
    return np.asarray(labels == label)
