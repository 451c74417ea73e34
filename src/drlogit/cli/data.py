"""Samples from data files: what a model is fitted to, and what a model is asked about."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..estimators.tables.frames import listed
from ..files.model_file import read_model
from ..files.reading import DataFile
from ..problem.ball import Ball
from ..rows.checks import ParameterError
from .console import Console


@dataclass(frozen=True, eq=False)
class FileSamples:
    """The samples of a file; ``table`` has all of its columns, unless it is svmlight text."""

    file: DataFile
    X: Any
    y: NDArray[Any] | None
    sample_weight: NDArray[Any] | None = None
    table: Any = None

    @property
    def labels(self) -> NDArray[Any]:
        """The labels; ``ValueError`` if the file has none."""
        if self.y is None:
            raise ValueError(f"{self.file.name} has no column with labels: name it with --target")
        return self.y

    def column(self, name: str | None, parameter: str) -> Any:
        """The values of a column of the table by its name, or None."""
        if name is None:
            return None
        if self.table is None:
            raise ParameterError(parameter, "needs a table: the columns of svmlight have no names")
        return self.table[self.file.find(name, list(self.table), parameter)].to_numpy()


@dataclass(frozen=True, eq=False)
class Asked:
    """A model, what its file notes for commands, and samples with its features."""

    model: Any
    notes: dict[str, Any]
    samples: FileSamples

    @property
    def classes(self) -> list[Any]:
        return list(self.model.classes_.tolist())

    @property
    def positive(self) -> Any:
        """Of two classes, the one that decisions are about; None if there are more."""
        return self.notes.get("positive", self.classes[1]) if len(self.classes) == 2 else None

    def threshold(self, stated: float | None) -> float:
        """The cut-off: as stated, or else that of the model file, or else one half."""
        if stated is not None and self.positive is None:
            raise ParameterError("threshold", f"is for two classes, got {len(self.classes)}")
        if stated is not None and not 0.0 < stated < 1.0:
            raise ParameterError("threshold", f"must lie between 0 and 1, got {stated:g}")
        return float(self.notes.get("threshold", 0.5) if stated is None else stated)

    def costs(self, stated: Sequence[tuple[str, float]] | None) -> dict[Any, float] | None:
        """Costs by pairs of labels, from names such as ``good:bad``."""
        pairs = {f"{one}:{other}": (one, other) for one in self.classes for other in self.classes}
        for name, _ in stated or ():
            if name not in pairs:
                raise ValueError(
                    f"--cost must name a label and a decision of the model, such as "
                    f"{self.classes[0]}:{self.classes[-1]}=1, got {name!r:.60}"
                )
        return {pairs[name]: cost for name, cost in stated} if stated else None


# --- for a fit --------------------------------------------------------------------------------


def read_training(arguments: argparse.Namespace) -> tuple[FileSamples, dict[str, Any]]:
    """The samples of a fit, and what the model file notes of them for other commands."""
    file = _data_file(arguments, arguments.data)
    notes = {"data": Path(file.name).name, "target": arguments.target}
    if file.kind == "svmlight":
        notes["zero_based"] = file.zero_based
        X, y = file.read_svmlight()
        whole = y.astype(np.int64)
        samples = FileSamples(file, X, whole if (whole == y).all() else y)
    else:
        samples = _split(file, file.read_table(arguments.categorical_features or ()), arguments)
    classes = np.unique(samples.labels).tolist()
    if len(classes) < 2:
        raise ValueError(
            f"{file.name} has only the label {classes[0]!r:.60}, and a model needs two classes"
        )
    if arguments.positive is not None:
        if len(classes) > 2:
            raise ParameterError("positive", f"is for two classes, and {file.name} has more")
        ((notes["positive"], _),) = by_label({arguments.positive: 0}, classes, "positive").items()
    return samples, notes


def _split(file: DataFile, table: Any, arguments: argparse.Namespace) -> FileSamples:
    """A table as features, labels and weights."""
    names = list(table)
    if arguments.target is None:
        raise ParameterError(
            "target",
            f"must name the column of {file.name} with the labels: it has {listed(names, 8)}",
        )
    samples = FileSamples(file, table, None, table=table)
    labels = samples.column(arguments.target, "target")
    weights = samples.column(arguments.sample_weight, "sample_weight")
    taken = {arguments.target, arguments.sample_weight}
    taken |= {file.find(name, names, "drop") for name in arguments.drop or ()}
    features = [name for name in names if name not in taken]
    if not features:
        raise ValueError(f"{file.name} has no feature: all columns have another use")
    for name in arguments.categorical_features or ():
        table[name] = table[file.find(name, features, "categorical_features")].astype("category")
    if pd.isna(labels).any():
        row = int(pd.isna(labels).argmax()) + 1
        raise ValueError(
            f"{file.name}: the label of row {row} is missing: fill it in, or leave out such rows"
        )
    return FileSamples(file, table[features], labels, weights, table)


def stated_ball(
    arguments: argparse.Namespace, samples: FileSamples, classes: list[Any], ball: Ball | None
) -> Ball | None:
    """The ball that the options state; what they leave open is as in ``ball``."""
    if arguments.tolerate:
        ball = _tolerating(dict(arguments.tolerate), samples, classes)
    given = {name: vars(arguments).get(name) for name in ("epsilon", "norm", "kappa")}
    changes = {name: value for name, value in given.items() if value is not None}
    if "kappa" in changes:
        changes["kappa"] = _kappa(changes["kappa"], classes)
    return (ball or Ball()).replace(**changes) if changes else ball


def _tolerating(given: dict[str, float], samples: FileSamples, classes: list[Any]) -> Ball:
    kinds = given.keys() & {"labels", "numbers", "categories"}
    stated: dict[str, Any] = {name: given.pop(name) for name in kinds}
    shares = {n.removeprefix("labels:"): given.pop(n) for n in [*given] if n.startswith("labels:")}
    if shares:
        others = dict.fromkeys(classes, stated.get("labels", 0.0))
        stated["labels"] = others | by_label(shares, classes, "tolerate")
    if hasattr(samples.X, "columns"):
        given = {samples.file.find(n, list(samples.X), "tolerate"): t for n, t in given.items()}
    return Ball.tolerating(**stated, columns=given)


def _kappa(costs: list[Any], classes: list[Any]) -> Any:
    """One cost of all labels, or costs by label."""
    if len(costs) == 1 and isinstance(costs[0], float):
        return costs[0]
    if not all(isinstance(cost, tuple) for cost in costs):
        raise ParameterError("kappa", "must be one number, or LABEL=COST for each label")
    return by_label(dict(costs), classes, "kappa")


# --- for a model ------------------------------------------------------------------------------


def read_asked(
    arguments: argparse.Namespace, console: Console, path: str, *, with_labels: bool = True
) -> Asked:
    """A model and the samples to ask it about; labels are read if they are there."""
    model, notes = read_model(arguments.model)
    if arguments.zero_based is None:
        arguments.zero_based = notes.get("zero_based")
    file = _data_file(arguments, path)
    if file.kind == "svmlight":
        X, y = file.read_svmlight(model.n_features_in_)
        labels = _match(y, model, file) if with_labels else None
        return Asked(model, notes, FileSamples(file, X, labels))
    target, row_id = arguments.target or notes.get("target"), vars(arguments).get("id")
    # Levels and labels are compared as text, and 007 is no 7.
    texts = [str(each.name) for each in model.ball_.features.each if each.values]
    texts += [str(target)] * (model.classes_.dtype.kind in "UO")
    table = file.read_table(texts, [str(row_id)])
    samples, labels = FileSamples(file, table, None, table=table), None
    if with_labels and (arguments.target is not None or target in table):
        labels = _match(samples.column(target, "target"), model, file)
    weights = samples.column(arguments.sample_weight, "sample_weight")
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        for name in known:
            file.find(str(name), list(table), "the model")
        X = table[list(known)]
    else:
        others = {target, arguments.sample_weight, row_id}
        X = table[[name for name in table if name not in others]].to_numpy()
        console.note(
            f"warning: {arguments.model} was fitted without feature names, so the columns of "
            f"{file.name} are used in their order"
        )
    return Asked(model, notes, FileSamples(file, X, labels, weights, table))


# --- labels -----------------------------------------------------------------------------------


def by_label(stated: Mapping[str, Any], classes: list[Any], parameter: str) -> dict[Any, Any]:
    """What is stated by the text of a label, by label."""
    known = {_text(label): label for label in classes}
    for text in stated:
        if _text(text) not in known:
            raise ParameterError(
                parameter, f"must name one of the labels {', '.join(known)}, got {text!r:.60}"
            )
    return {known[_text(text)]: value for text, value in stated.items()}


def _match(labels: NDArray[Any], model: Any, file: DataFile) -> NDArray[Any]:
    """Labels of a file as those of the model; ``ValueError`` for one it does not know."""
    known = {_text(label): label for label in model.classes_.tolist()}
    texts = [_text(label) for label in labels.tolist()]
    for row, text in enumerate(texts):
        if text not in known:
            raise ValueError(
                f"{file.name}: the label {text!r:.60} in row {row + 1} is not a class of the "
                f"model, which has {', '.join(known)}"
            )
    return np.array([known[text] for text in texts], dtype=model.classes_.dtype)


def _text(label: Any) -> str:
    """A label as text; 1 and 1.0 are one label."""
    try:
        number = float(label)
    except ValueError:
        return str(label)
    return str(int(number)) if number.is_integer() and not isinstance(label, bool) else str(label)


def _data_file(arguments: argparse.Namespace, path: str) -> DataFile:
    form = arguments.format, arguments.delimiter, arguments.decimal, arguments.encoding
    return DataFile(path, *form, zero_based=bool(arguments.zero_based))
