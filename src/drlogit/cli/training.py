"""From the options of a command to the data and parameters of an estimator."""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.tables.text_columns import Remedies, identifies, remark_on_text
from ..estimators.tolerances import Tolerances, tolerances
from ..files.columns import FileSamples, Wanted
from ..files.reading import read_samples
from ..rows.arrays import FloatArray
from .console import Console
from .cost_files import read_costs
from .labels import choose_classes, find_label

#: What to do about text that is no category.
_REMEDIES = Remedies(
    "--categorical {name} takes it as a category all the same",
    "--numbers {name} reads it as numbers",
    "make days of it before, or leave it out with --drop {name}",
)

#: Options that need the features in memory.
_WHOLE_ONLY = (
    "features", "drop", "weights", "standardize", "delimiter", "categorical", "numbers", "bounds",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Training:
    """What a model is fitted to; ``codes`` are positions in ``classes``.

    ``names`` has something to call every feature by; ``costs`` are those that were stated, of one
    unit of each or, with ``--standardize``, of one standard deviation; ``origin`` is what a model
    file remembers.
    """

    X: Any
    codes: NDArray[np.intp]
    classes: list[Any]
    weights: FloatArray | None
    costs: FloatArray | None
    names: list[str]
    source: str
    origin: dict[str, Any]

    @property
    def positive(self) -> Any:
        """The class that probabilities are of, if there are two."""
        return self.classes[1] if len(self.classes) == 2 else None

    @property
    def labels(self) -> NDArray[Any]:
        """What an estimator is given: codes where the positive class would not sort last."""
        classes = np.array(self.classes)
        return classes[self.codes] if (classes[:-1] < classes[1:]).all() else self.codes

    @property
    def categorical(self) -> list[int] | None:
        """The columns of a frame that are categories, by position."""
        if not hasattr(self.X, "dtypes"):
            return None
        return [j for j, dtype in enumerate(self.X.dtypes) if dtype.kind not in "iuf"]

    def fit(self, estimator: Any) -> Any:
        """The estimator, fitted, with the classes as they are in the file."""
        estimator.fit(self.X, self.labels, sample_weight=self.weights)
        estimator.classes_ = np.array(self.classes)
        return estimator

    def positions(self, stated: Any, option: str, others: tuple[str, ...] = ()) -> Any:
        """What is stated by name of a column, by position; anything else as it is."""
        if not isinstance(stated, Mapping):
            return stated
        for name in stated:
            if name not in self.names:
                near = difflib.get_close_matches(name, [*others, *self.names[:1000]], n=1)
                meant = (
                    f": did you mean {near[0]}?" if near else "".join(f", nor {o}" for o in others)
                )
                raise ValueError(f"{option}: {name!r} is not a feature of {self.source}{meant}")
        return {self.names.index(name): value for name, value in stated.items()}


def fit_options(arguments: argparse.Namespace, training: Training) -> dict[str, Any]:
    """What an estimator wants to know besides the data, ε and κ."""
    costs: Any = training.costs
    if arguments.standardize:
        costs = "std" if costs is None else {j: (c, "std") for j, c in enumerate(costs.tolist())}
    return {
        "norm": arguments.norm,
        "fit_intercept": not arguments.no_intercept,
        "feature_costs": costs,
        "missing": arguments.missing,
        # What tells rows apart is gone, or was asked for.
        "categorical_features": training.categorical,
        "bounds": training.positions(arguments.bounds, "--bounds"),
        "class_weight": "balanced" if arguments.balanced else None,
        "solver": arguments.solver,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
    }


def tolerated(arguments: argparse.Namespace, training: Training) -> Tolerances:
    """``--tolerate`` with positions for names of columns."""
    if arguments.standardize or arguments.feature_costs or arguments.immovable:
        raise ValueError(
            "--tolerate states the costs: no --standardize, --feature-costs or --immovable with it"
        )
    stated, kinds = dict(arguments.tolerate), ("labels", "numbers", "categories")
    by_kind = {kind: stated.pop(kind) for kind in kinds if kind in stated}
    return tolerances(**by_kind, columns=training.positions(stated, "--tolerate", kinds))


def read_training(
    arguments: argparse.Namespace, console: Console, *, two_classes: bool = False
) -> Training:
    """Read the data of a command that fits a model."""
    by_block = getattr(arguments, "block_rows", None) is not None
    by_block |= "block_rows" in arguments and Path(arguments.data).suffix == ".npy"
    if by_block:
        samples = read_blocks(arguments, arguments.target, arguments.n_features)
    else:
        samples = _read_whole(arguments, console)
    assert samples.labels is not None
    found, codes = np.unique(samples.labels, return_inverse=True)
    labels = found.tolist()
    classes, codes = choose_classes(labels, codes, arguments.positive, samples.source)
    if two_classes and len(classes) != 2:
        shown = ", ".join(map(repr, classes[:6])) + (", …" if len(classes) > 6 else "")
        raise ValueError(
            f"{samples.source} has {len(classes)} classes ({shown}), and this command wants two: "
            "choose one against the rest with --positive LABEL"
        )
    against_rest = None
    if len(classes) != len(labels):
        against_rest = labels[find_label(arguments.positive, labels, samples.source)]
    training = Training(
        X=samples.X,
        codes=codes,
        classes=classes,
        weights=samples.weights,
        costs=read_costs(
            arguments.feature_costs, arguments.immovable, samples.names, samples.source
        ),
        names=samples.names,
        source=samples.source,
        origin={
            "data": Path(samples.source).name,
            "n_samples": int(codes.size),
            "target": samples.target,
            "positive_against_rest": against_rest,
            "standardized": bool(arguments.standardize),
            "zero_based": bool(arguments.zero_based),
            "balanced": bool(arguments.balanced),
            "numbers": list(arguments.numbers),
        },
    )
    _describe(training, samples, console)
    return training


def _read_whole(arguments: argparse.Namespace, console: Console) -> FileSamples:
    if arguments.features and arguments.drop:
        raise ValueError("--features and --drop exclude each other")
    wanted = Wanted(
        target=arguments.target,
        features=arguments.features,
        drop=arguments.drop,
        weights=arguments.weights,
        n_features=arguments.n_features,
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        zero_based=bool(arguments.zero_based),
        table=True,
        texts=arguments.categorical,
        numbers=arguments.numbers,
    )
    samples = read_samples(arguments.data, wanted, label_file=arguments.labels)
    for remark in samples.remarks:
        console.note(f"--numbers: {remark}")
    return _without_identifiers(samples, arguments, console)


def read_blocks(
    arguments: argparse.Namespace, target: Any, n_features: int | None, zero_based: Any = None
) -> FileSamples:
    """Samples whose features stay in their file."""
    from ..files.block_files import open_blocks

    for option in _WHOLE_ONLY:
        if vars(arguments).get(option):
            raise ValueError(f"--block-rows takes all columns as they are: no --{option} with it")
    if arguments.labels and Path(arguments.data).suffix != ".npy":
        raise ValueError(f"with --block-rows, {arguments.data} has its own labels: no --labels")
    X, y = open_blocks(
        arguments.data,
        target=arguments.labels or target,
        block_rows=arguments.block_rows,
        n_features=n_features,
        zero_based=bool(zero_based if arguments.zero_based is None else arguments.zero_based),
    )
    return FileSamples(X, y, None, X.feature_names, target, arguments.data)


def _without_identifiers(
    samples: FileSamples, arguments: argparse.Namespace, console: Console
) -> FileSamples:
    """Leave out text that names rows, and say what text looks like that is no category.

    By the rule of the estimators; columns that were asked for stay.
    """
    if not hasattr(samples.X, "dtypes"):
        return samples
    asked, kept = {*arguments.categorical, *(arguments.features or ())}, []
    for name, column in samples.X.items():
        levels: Counter[Any] = Counter()
        if name not in asked and hasattr(column.dtype, "categories"):
            levels = Counter(column.astype(object).where(column.notna(), None).tolist())
            remark = remark_on_text(name, levels, _REMEDIES)
            if remark is not None:
                console.note(remark)
        if not identifies(len(levels.keys() - {None}), levels.total()):
            kept.append(name)
    if not kept:
        raise ValueError(f"{samples.source} has no column left to be a feature, only identifiers")
    if len(kept) == samples.X.shape[1]:
        return samples
    return replace(samples, X=samples.X[kept], feature_names=kept)


def _describe(training: Training, samples: FileSamples, console: Console) -> None:
    """What was read, in a line, and which columns are categories."""
    n_samples, n_features = training.X.shape
    counts = np.bincount(training.codes, minlength=len(training.classes))
    shown = ", ".join(
        f"{label} ({count})"
        for label, count in list(zip(training.classes, counts, strict=True))[:6]
    )
    more = ", …" if len(training.classes) > 6 else ""
    column = f" in column {samples.target!r}" if samples.target is not None else ""
    positive = "" if training.positive is None else f"; positive class: {training.positive}"
    console.note(
        f"{samples.source}: {n_samples} samples, {n_features} features; "
        f"labels{column}: {shown}{more}{positive}"
    )
    levels = [
        f"{training.names[j]} ({training.X.iloc[:, j].nunique(dropna=False)} levels)"
        for j in training.categorical or ()
    ]
    if levels:
        shown = ", ".join(levels[:12]) + (f" and {len(levels) - 12} more" if levels[12:] else "")
        console.note(f"taken as categories: {shown}")
