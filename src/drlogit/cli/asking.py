"""A model file and the samples it is asked about."""

from __future__ import annotations

import argparse
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.class_recall import ClassRecall
from ..estimators.tables.frames import columns_of, listed
from ..files.columns import FileSamples, Wanted
from ..files.model_file import read_model
from ..files.reading import read_samples
from ..files.values import keyed_by_label, match_labels
from .console import Console


@dataclass(frozen=True, eq=False)
class ModelAndSamples:
    """A model, how its data were read, and samples with its features in its order."""

    model: Any
    origin: dict[str, Any]
    samples: FileSamples

    @property
    def classes(self) -> list[Any]:
        labels: list[Any] = self.model.classes_.tolist()
        return labels

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The class of each sample; ``ValueError`` for a label that the model does not know."""
        assert self.samples.labels is not None
        return match_labels(self.samples.labels, self.classes, self.samples.source)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as the model has them."""
        return np.asarray(self.model.classes_[self.codes])

    @property
    def positive(self) -> int:
        """The position of the class that probabilities are of, if there are two."""
        classes = self.classes
        return classes.index(self.origin.get("positive", classes[1]))

    @property
    def of_recorded(self) -> ModelAndSamples:
        """The same, with a model of the recorded labels (without ``label_noise``)."""
        model = copy(self.model)
        model.label_noise_ = None
        return replace(self, model=model)

    def predicted(self, threshold: float | None) -> NDArray[np.intp]:
        """Positions of the predicted classes; the positive one from this probability on."""
        if threshold is None:
            named = self.model.predict(self.samples.X)
            return np.asarray(np.searchsorted(self.model.classes_, named))
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"--threshold must lie between 0 and 1, got {threshold:g}")
        if len(self.classes) > 2:
            raise ValueError(
                f"--threshold needs a model of two classes, got {len(self.classes)} classes"
            )
        sure = self.model.predict_proba(self.samples.X)[:, self.positive] >= threshold
        return np.where(sure, self.positive, 1 - self.positive)

    def recall(self, threshold: float | None = None) -> ClassRecall:
        """How much of each class, as recorded, the model finds."""
        predicted = self.of_recorded.predicted(threshold)
        return ClassRecall.of(self.classes, self.codes, predicted, self.samples.weights)

    def kappa(self, stated: Any) -> Any:
        """What flips cost: a column of the data, or what is stated by label as text, or at all."""
        if self.samples.kappa is not None:
            return self.samples.kappa
        return keyed_by_label(stated, self.classes, self.samples.source)


def read_asked(
    arguments: argparse.Namespace, console: Console, *, with_labels: bool = True
) -> ModelAndSamples:
    """Read a model and the samples to ask it about."""
    model, origin = read_model(arguments.model)
    encoding, names = model.encoding_, names_of(model)
    n_features = int(model.n_features_in_)
    columns = () if encoding is None else encoding.columns
    wanted = _wanted(
        arguments,
        origin,
        with_labels=with_labels,
        features=None if names is None else tuple(names),
        n_features=n_features,
        served=True,
        named_by="a feature of the model",
        categorical=tuple(str(column.name) for column in columns if column.levels is not None),
    )
    samples = read_samples(arguments.data, wanted)
    found = samples.X.shape[1]
    if found != n_features:
        raise ValueError(
            f"{samples.source} has {found} features, expected {n_features} for the model "
            f"{arguments.model}"
        )
    if names is None and samples.feature_names is not None:
        console.note(
            f"warning: {arguments.model} was fitted without feature names, so the columns of "
            f"{samples.source} are used in their order: {listed(samples.feature_names)}"
        )
    if names is None and hasattr(samples.X, "columns"):
        samples.X.columns = range(n_features)
    return ModelAndSamples(model, origin, samples)


def names_of(model: Any) -> list[str] | None:
    """Names of the columns that a model takes, if it knows any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def warn_of_fitted_rows(asked: ModelAndSamples, console: Console) -> None:
    """Say so if rows that are called new have the name of those that the model was fitted to."""
    name = Path(asked.samples.source).name
    if name == asked.origin.get("data"):
        console.note(
            f"warning: the model was fitted to rows of {name}; if these rows are among them, the "
            "statements about new data do not hold"
        )


def warn_of_neglect(asked: ModelAndSamples, recall: ClassRecall, console: Console) -> None:
    """Say so if a class is almost never predicted."""
    said = recall.neglected(asked.model.epsilon_, asked.model.kappa_)
    if said is not None:
        console.note(f"warning: {said}")


def read_column(asked: ModelAndSamples, arguments: argparse.Namespace, option: str) -> list[Any]:
    """The values of the column that an option names, as they stand there; it may be no feature."""
    name = vars(arguments)[option]
    wanted = _wanted(
        arguments, asked.origin, with_labels=False, features=(name,), weights=None,
        kappa_column=None, categorical=(name,), missing_marks=(), named_by=f"--{option}",
    )  # fmt: skip
    X = read_samples(arguments.data, wanted).X
    values: list[Any] = (X.iloc[:, 0] if hasattr(X, "iloc") else np.asarray(X)[:, 0]).tolist()
    return values


def read_groups(asked: ModelAndSamples, arguments: argparse.Namespace) -> Any:
    """The column of ``--groups`` as subgroups of the samples, if it was given."""
    if arguments.groups is None:
        return None
    column = np.array(read_column(asked, arguments, "groups"), dtype=object)
    return {arguments.groups: columns_of(column[:, None])[0].levels}


def costs_by_pair(given: dict[str, float] | None, classes: list[Any]) -> dict[Any, float] | None:
    """Costs by pairs of labels, from names such as ``good:bad``."""
    if given is None:
        return None
    pairs = {f"{label}:{decision}": (label, decision) for label in classes for decision in classes}
    unknown = [name for name in given if name not in pairs]
    if unknown:
        raise ValueError(
            f"--costs must name a label and a decision of the model, such as "
            f"{classes[0]}:{classes[-1]}=1, got {unknown[0]!r:.60}"
        )
    return {pairs[name]: cost for name, cost in given.items()}


def _wanted(arguments: argparse.Namespace, origin: dict[str, Any], **others: Any) -> Wanted:
    """What to read from the data file; by default as the data of the fit were read."""
    target = arguments.target if arguments.target is not None else origin.get("target")
    if target is not None and str(target) in (others["features"] or ()):
        target = None
    if arguments.zero_based is None:
        others["zero_based"] = origin.get("zero_based")
    return Wanted.stated(vars(arguments), target=None if target is None else str(target), **others)
