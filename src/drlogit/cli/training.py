"""From the options of a command to the data and parameters of an estimator."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.tables.frames import columns_of, is_frame, listed, rows_of
from ..estimators.tables.text_columns import remark_on_text, tells_rows_apart
from ..estimators.tolerances import tolerances
from ..files.columns import FileSamples, Wanted, near_names
from ..files.reading import read_samples
from ..files.values import keyed_by_label
from .console import Console


@dataclass(frozen=True, eq=False)
class Training:
    """What a model is fitted to; ``origin`` is what a model file remembers of it."""

    samples: FileSamples
    origin: dict[str, Any]

    @property
    def labels(self) -> NDArray[Any]:
        return np.asarray(self.samples.labels)

    @cached_property
    def classes(self) -> list[Any]:
        found: list[Any] = np.unique(self.labels).tolist()
        return found

    @property
    def positive(self) -> Any:
        """The class that probabilities are of, if there are two."""
        return self.origin.get("positive", self.classes[1]) if len(self.classes) == 2 else None

    @property
    def record(self) -> dict[str, Any]:
        """The data for a script."""
        return {"data": self.origin, "classes": self.classes, "positive": self.positive}

    @property
    def categorical(self) -> list[int] | None:
        """The columns of a frame that are categories, by position."""
        X = self.samples.X
        if not is_frame(X):
            return None
        given = enumerate(zip(self.samples.names, columns_of(X), strict=True))
        return [j for j, (name, c) in given if c.holds_levels]

    def fit(self, estimator: Any) -> Any:
        """The estimator, fitted."""
        given = self.samples
        return estimator.fit(given.X, self.labels, sample_weight=given.weights, kappa=given.kappa)

    def by_label(self, stated: Any) -> Any:
        """What is stated by label as text, by label."""
        return keyed_by_label(stated, self.classes, self.samples.source)

    def split(self, share: float, seed: int) -> tuple[Training, Training]:
        """The samples without a share of each class, and that share; a seed gives one split."""
        from sklearn.model_selection import train_test_split

        seen, unseen = train_test_split(
            np.arange(self.labels.size), test_size=share, stratify=self.labels, random_state=seed
        )
        return self._part(np.sort(seen)), self._part(np.sort(unseen))

    def _part(self, rows: NDArray[np.intp]) -> Training:
        given, names = self.samples, ("X", "labels", "weights", "kappa")
        there = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
        samples = replace(given, **{name: rows_of(there[name], rows) for name in there})
        return Training(samples, {**self.origin, "n_samples": rows.size})

    def positions(self, stated: Any, option: str, others: tuple[str, ...] = ()) -> Any:
        """What is stated by name of a column, by position; anything else as it is."""
        if not isinstance(stated, Mapping):
            return stated
        names = self.samples.names
        for name in stated.keys() - {*names}:
            near = near_names(name, [*others, *names])
            meant = f"did you mean {near[0]}?" if near else f"it has {listed([*others, *names])}"
            raise ValueError(f"{option}: {self.samples.source} has no feature {name!r}; {meant}")
        return {names.index(name): value for name, value in stated.items()}


def parameters(arguments: argparse.Namespace, training: Training) -> dict[str, Any]:
    """What an estimator wants to know besides the data, ε and κ."""
    return {
        "norm": arguments.norm,
        "fit_intercept": not arguments.no_intercept,
        "feature_costs": _costs(arguments, training),
        "missing": arguments.missing,
        # What tells rows apart is gone, or was asked for.
        "categorical_features": training.categorical,
        "bounds": training.positions(arguments.bounds, "--bounds"),
        "class_weight": "balanced" if arguments.balanced else None,
        "solver": arguments.solver,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
        "max_time": arguments.max_time,
    }


def _costs(arguments: argparse.Namespace, training: Training) -> Any:
    """``--feature-costs``, ``--immovable`` and ``--standardize`` as ``feature_costs``."""
    stated = training.positions(arguments.feature_costs or {}, "--feature-costs")
    stated |= training.positions(dict.fromkeys(arguments.immovable, np.inf), "--immovable")
    if not arguments.standardize:
        return stated or None
    every = dict.fromkeys(range(len(training.samples.names)), 1.0) | stated
    return {j: (cost, "std") for j, cost in every.items()} if stated else "std"


def tolerated(arguments: argparse.Namespace, training: Training) -> dict[str, Any]:
    """``--tolerate`` as ``epsilon``, ``kappa`` and ``feature_costs``."""
    options = ("epsilon", "kappa", "kappa_column", "feature_costs", "immovable")
    clash = [name for name in options if name in arguments.stated]
    clash += ["standardize"] if arguments.standardize else []
    if "labels" not in arguments.tolerate and "kappa_column" in clash:
        clash.remove("kappa_column")  # nothing else is said of labels
    if clash:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in clash)
        raise ValueError(
            f"--tolerate determines epsilon, kappa and all costs, so it excludes {named}: use one "
            "or the other"
        )
    stated, kinds = dict(arguments.tolerate), ("labels", "numbers", "categories")
    by_kind = {kind: stated.pop(kind) for kind in kinds if kind in stated}
    columns = training.positions(stated, "--tolerate", kinds)
    return dict(tolerances(**by_kind, columns=columns).parameters)


# --- reading --------------------------------------------------------------------------------


def read_training(arguments: argparse.Namespace, console: Console) -> Training:
    """Read the data of a command that fits a model."""
    if arguments.features and arguments.drop:
        raise ValueError("--features and --drop exclude each other")
    samples = read_samples(arguments.data, Wanted.stated(vars(arguments)))
    samples = _without_identifiers(samples, arguments, console)
    origin = {
        "data": Path(samples.source).name,
        "n_samples": int(samples.X.shape[0]),
        "target": samples.target,
        "zero_based": bool(arguments.zero_based),
    }
    training = Training(samples, origin)
    if arguments.positive is not None:
        (positive,) = training.by_label({arguments.positive: None})
        if len(training.classes) > 2:
            raise ValueError(
                f"--positive needs two classes, got {len(training.classes)} in {samples.source}"
            )
        origin["positive"] = positive
    n_classes, size = len(training.classes), training.labels.size
    if n_classes < 2:
        raise ValueError(
            f"{samples.source} has only the label {training.classes[0]!r:.60} in column "
            f"{samples.target!r}, and a model needs two: name the column of labels with --target"
        )
    if n_classes > max(20, size // 10):
        raise ValueError(
            f"{samples.source} has {n_classes} different labels in {size} rows, so "
            f"{samples.target!r} is probably not the column with the labels: name it with --target"
        )
    _describe(training, console)
    return training


def _without_identifiers(
    samples: FileSamples, arguments: argparse.Namespace, console: Console
) -> FileSamples:
    """Leave out text that names rows, and say what text looks like that is no category.

    By the rule of the estimators; columns that were asked for stay.
    """
    if not is_frame(samples.X):
        return samples
    asked, kept = {*arguments.categorical, *(arguments.features or ())}, []
    for column in columns_of(samples.X):
        if column.name in asked or not column.holds_levels:
            kept.append(column.name)
            continue
        remark = remark_on_text(column.name, column.counts)
        if remark is not None:
            console.note(remark)
        if not tells_rows_apart(column.counts):
            kept.append(column.name)
    if not kept:
        raise ValueError(
            f"{samples.source} has no feature: all columns look like row identifiers. Name those "
            "to keep with --categorical"
        )
    if len(kept) == samples.X.shape[1]:
        return samples
    return replace(samples, X=samples.X[kept], feature_names=kept)


def _describe(training: Training, console: Console) -> None:
    """What was read, in a line, and which columns are categories."""
    samples, classes = training.samples, training.classes
    counts = [f"{label} ({np.sum(training.labels == label)})" for label in classes]
    column = f" in column {samples.target!r}" if samples.target is not None else ""
    positive = "" if training.positive is None else f"; positive class: {training.positive}"
    if training.positive is not None and "positive" not in training.origin:
        positive += " (change it with --positive)"
    console.note(
        f"{samples.source}: {samples.X.shape[0]} rows, {samples.X.shape[1]} features; "
        f"labels{column}: {listed(counts)}{positive}"
    )
    folded = Counter(str(label).casefold() for label in classes)
    alike = [str(label) for label in classes if folded[str(label).casefold()] > 1]
    if alike:
        console.note(
            f"warning: the labels {listed(sorted(alike, key=str.casefold), 4)} differ only in "
            "upper and lower case: spell them alike if they are one class"
        )
    levels = [
        f"{samples.names[j]} ({samples.X.iloc[:, j].nunique(dropna=False)} levels)"
        for j in training.categorical or ()
    ]
    if levels:
        console.note(f"categories: {listed(levels, 12)}")
