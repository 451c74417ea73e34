"""FileSamples from data files: what a model is fitted to, and what a model is asked about."""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..files.model_file import read_model
from ..files.reading import DataFile
from ..problem.ball import Ball
from ..rows.checks import ParameterError
from .console import Console
from .options import stated_kappa

Labels = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FileSamples:
    """The samples of a file; ``table`` is the file itself, unless that is svmlight text."""

    source: str
    X: Any
    y: Labels | None
    sample_weight: NDArray[Any] | None = None
    table: Any = None

    @property
    def labels(self) -> Labels:
        """The labels; ``ValueError`` if the file has none."""
        if self.y is None:
            raise ValueError(f"{self.source} has no column with labels: name it with --target")
        return self.y

    def rows(self, places: NDArray[np.intp]) -> FileSamples:
        """Some of the samples."""
        X, table = (
            each.iloc[places] if hasattr(each, "iloc") else each if each is None else each[places]
            for each in (self.X, self.table)
        )
        weights = None if self.sample_weight is None else self.sample_weight[places]
        return replace(self, X=X, y=self.labels[places], sample_weight=weights, table=table)

    def as_text(self, *, zero_based: bool) -> str:
        """The samples as CSV with all columns of the file, or as svmlight text."""
        if self.table is not None:
            return str(self.table.to_csv(index=False, lineterminator="\n"))
        from sklearn.datasets import dump_svmlight_file

        buffer = io.BytesIO()
        dump_svmlight_file(self.X, self.labels, buffer, zero_based=zero_based)
        return buffer.getvalue().decode()


@dataclass(frozen=True, eq=False)
class Asked:
    """A model, what its file notes for commands, and samples with its features."""

    model: Any
    notes: dict[str, Any]
    samples: FileSamples

    @property
    def classes(self) -> list[Any]:
        labels: list[Any] = self.model.classes_.tolist()
        return labels

    @property
    def positive(self) -> Any:
        """Of two classes, the one that decisions are about; None if there are more."""
        return self.notes.get("positive", self.classes[1]) if len(self.classes) == 2 else None


# --- for a fit --------------------------------------------------------------------------------


def read_training(arguments: argparse.Namespace) -> tuple[FileSamples, dict[str, Any]]:
    """The samples of a fit, and what the model file notes of them for other commands."""
    file = _data_file(arguments, arguments.data)
    notes = {"data": Path(file.name).name, "target": arguments.target}
    if file.kind == "svmlight":
        notes["zero_based"] = file.zero_based
        X, y = file.read_svmlight()
        samples = FileSamples(file.name, sp.csr_matrix(X), _whole(y))
    else:
        table = file.read_table(texts=arguments.categorical_features or ())
        samples = _split(file, table, arguments)
    classes = np.unique(samples.labels).tolist()
    if len(classes) < 2:
        raise ValueError(
            f"{file.name} has only the label {classes[0]!r:.60}, and a model needs two classes"
        )
    if arguments.positive is not None:
        if len(classes) > 2:
            raise ValueError(f"--positive is for two classes, and {file.name} has {len(classes)}")
        notes["positive"] = by_label({arguments.positive: None}, classes, "positive").popitem()[0]
    return samples, notes


def _split(file: DataFile, table: Any, arguments: argparse.Namespace) -> FileSamples:
    """A table as features, labels and weights."""
    names = list(table.columns)
    if arguments.target is None:
        raise ParameterError(
            "target",
            f"must name the column of {file.name} with the labels: it has "
            f"{', '.join(names[:8])}{', …' if len(names) > 8 else ''}",
        )
    taken = [file.find(arguments.target, names, "target")]
    if arguments.sample_weight is not None:
        taken.append(file.find(arguments.sample_weight, names, "sample_weight"))
    if arguments.features and arguments.drop:
        raise ValueError("--features and --drop exclude each other")
    taken += [file.find(name, names, "drop") for name in arguments.drop or ()]
    chosen = [file.find(name, names, "features") for name in arguments.features or names]
    features = [name for name in chosen if name not in taken]
    for name in arguments.categorical_features or ():
        table[name] = table[file.find(name, features, "categorical_features")].astype("category")
    if not features:
        raise ValueError(f"{file.name} has no feature: all columns have another use")
    labels = table[taken[0]]
    if labels.isna().any():
        row = int(labels.isna().to_numpy().argmax()) + 1
        raise ValueError(
            f"{file.name}: the label of row {row} is missing: fill it in, or leave out such rows"
        )
    return FileSamples(
        file.name, table[features], labels.to_numpy(), _weights(table, arguments), table
    )


def stated_ball(
    arguments: argparse.Namespace, classes: list[Any], ball: Ball | None
) -> Ball | None:
    """The ball that the options state; what they leave open is as in ``ball``."""
    if arguments.tolerate:
        ball = _tolerating(arguments.tolerate, classes)
    kappa = stated_kappa(arguments.kappa)
    if isinstance(kappa, dict):
        kappa = by_label(kappa, classes, "kappa")
    stated = vars(arguments) | {"kappa": kappa}
    pairs = {name: dict(stated.get(name) or ()) or None for name in ("feature_costs", "bounds")}
    changes = {name: stated.get(name) for name in ("epsilon", "kappa", "norm")} | pairs
    changes = {name: value for name, value in changes.items() if value is not None}
    return (ball or Ball()).replace(**changes) if changes else ball


def _tolerating(amounts: Sequence[tuple[str, float]], classes: list[Any]) -> Ball:
    given = dict(amounts)
    kinds: dict[str, Any] = {
        name: given.pop(name) for name in ("labels", "numbers", "categories") if name in given
    }
    of_classes = {name: given.pop(name) for name in list(given) if name.startswith("labels:")}
    if of_classes:
        shares = {name.removeprefix("labels:"): share for name, share in of_classes.items()}
        labels = dict.fromkeys(classes, kinds.get("labels", 0.0))
        kinds["labels"] = labels | by_label(shares, classes, "tolerate")
    return Ball.tolerating(**kinds, columns=given)


# --- for a model ------------------------------------------------------------------------------


def read_asked(arguments: argparse.Namespace, console: Console, data: str) -> Asked:
    """A model and the samples to ask it about; labels are read if they are there."""
    model, notes = read_model(arguments.model)
    if arguments.zero_based is None:
        arguments.zero_based = notes.get("zero_based")
    file = _data_file(arguments, data)
    if file.kind == "svmlight":
        X, y = file.read_svmlight(model.n_features_in_)
        return Asked(
            model, notes, FileSamples(file.name, sp.csr_matrix(X), _match(y, model, file.name))
        )
    target = arguments.target or notes.get("target")
    texts = text_columns(model)
    if target is not None and model.classes_.dtype.kind in "UO":
        texts = [*texts, target]
    exact = [name for name in (vars(arguments).get("id"),) if name is not None]
    table = file.read_table(texts, exact)
    names, labels = list(table.columns), None
    if arguments.target is not None:
        file.find(arguments.target, names, "target")
    if target in names:
        labels = _match(table[target].to_numpy(), model, file.name)
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        others = {target, arguments.sample_weight, *exact}
        X = table[[name for name in names if name not in others]]
        console.note(
            f"warning: {arguments.model} was fitted without feature names, so the columns of "
            f"{file.name} are used in their order"
        )
        X = X.to_numpy()
    else:
        X = table[[_feature(file, str(name), names) for name in known]]
    weights = _weights(table, arguments)
    return Asked(model, notes, FileSamples(file.name, X, labels, weights, table))


def _feature(file: DataFile, name: str, names: list[str]) -> str:
    try:
        return file.find(name, names, "a feature of the model")
    except ParameterError as error:
        raise ValueError(f"a feature of the model {error.problem}") from None


def text_columns(model: Any) -> list[str]:
    """The columns that a model takes as text."""
    encoding = model.encoding_
    columns = () if encoding is None else encoding.columns
    return [str(column.name) for column in columns if column.levels and column.kind == "text"]


def read_column(asked: Asked, name: str | None, parameter: str) -> Any:
    """A column of the table by its name, or None."""
    if name is None:
        return None
    if asked.samples.table is None:
        raise ValueError(f"{asked.samples.source} is svmlight text, whose columns have no names")
    file = DataFile(asked.samples.source)
    return asked.samples.table[file.find(name, list(asked.samples.table.columns), parameter)]


def decision_threshold(asked: Asked, arguments: argparse.Namespace) -> float:
    """The cut-off: as stated, or else that of the model file, or else one half."""
    threshold = arguments.threshold
    if threshold is None:
        return float(asked.notes.get("threshold", 0.5))
    if asked.positive is None:
        raise ValueError(f"--threshold is for two classes, and the model has {len(asked.classes)}")
    if not 0.0 < threshold < 1.0:
        raise ValueError(f"--threshold must lie between 0 and 1, got {threshold:g}")
    return float(threshold)


def costs_by_pair(
    stated: Sequence[tuple[str, float]] | None, classes: list[Any]
) -> dict[Any, float] | None:
    """Costs by pairs of labels, from names such as ``good:bad``."""
    if not stated:
        return None
    pairs = {f"{label}:{decision}": (label, decision) for label in classes for decision in classes}
    for name, _ in stated:
        if name not in pairs:
            raise ValueError(
                f"--cost must name a label and a decision of the model, such as "
                f"{classes[0]}:{classes[-1]}=1, got {name!r:.60}"
            )
    return {pairs[name]: cost for name, cost in stated}


def warn_of_fitted_rows(asked: Asked, console: Console) -> None:
    """Say so if rows that are called new have the name of those that the model was fitted to."""
    name = Path(asked.samples.source).name
    if name == asked.notes.get("data"):
        console.note(
            f"warning: the model was fitted to rows of {name}; if these rows are among them, the "
            "statements about new data do not hold"
        )


# --- labels and columns -----------------------------------------------------------------------


def by_label(stated: Mapping[str, Any], classes: list[Any], parameter: str) -> dict[Any, Any]:
    """What is stated by the text of a label, by label."""
    known = {_text(label): label for label in classes}
    for text in stated:
        if _text(text) not in known:
            raise ParameterError(
                parameter, f"must name one of the labels {', '.join(known)}, got {text!r:.60}"
            )
    return {known[_text(text)]: value for text, value in stated.items()}


def _match(labels: Labels, model: Any, source: str) -> Labels:
    """Labels of a file as those of the model; ``ValueError`` for one it does not know."""
    known = {_text(label): label for label in model.classes_.tolist()}
    texts = [_text(label) for label in labels.tolist()]
    for row, text in enumerate(texts):
        if text not in known:
            raise ValueError(
                f"{source}: the label {text!r:.60} in row {row + 1} is not a class of the model, "
                f"which has {', '.join(known)}"
            )
    return np.array([known[text] for text in texts], dtype=model.classes_.dtype)


def _text(label: Any) -> str:
    """A label as text; 1 and 1.0 are one label."""
    try:
        number = float(label)
    except ValueError:
        return str(label)
    return str(int(number)) if number.is_integer() and not isinstance(label, bool) else str(label)


def _whole(labels: NDArray[Any]) -> Labels:
    """Numbers as whole numbers, if all of them are."""
    whole = labels.astype(np.int64)
    return whole if (whole == labels).all() else labels


def _weights(table: Any, arguments: argparse.Namespace) -> Any:
    name = arguments.sample_weight
    return None if name is None else table[name].to_numpy()


def _data_file(arguments: argparse.Namespace, path: str) -> DataFile:
    given = vars(arguments)
    form = {name: given[name] for name in ("format", "delimiter", "decimal", "encoding")}
    return DataFile(path, **form, zero_based=bool(arguments.zero_based))
