"""From the options of a command to samples that an estimator can be fitted to."""

from __future__ import annotations

import argparse
import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.original_units import in_original_units
from ..estimators.tables.frames import ColumnTable, holds_levels, is_frame
from ..estimators.tolerances import Tolerances, tolerances
from ..estimators.training_data import balanced_weights
from ..estimators.unlike_units import unlike_units
from ..files.columns import FileSamples, Wanted, tidy_labels
from ..files.opening import format_of
from ..files.reading import read_samples
from ..rows.arrays import FloatArray
from ..rows.checks import check_weights
from ..rows.pieces import digest_of_features
from .console import Console
from .cost_files import read_costs
from .labels import choose_classes, find_label

#: Columns of more levels than this are identifiers if they have more than so many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: Options that need the features in memory.
_WHOLE_ONLY = ("features", "drop", "weights", "standardize", "delimiter", "categorical", "bounds")


@dataclass(frozen=True, eq=False)
class Training:
    """What a model is fitted to.

    ``codes`` are positions in ``classes``.  ``feature_names`` is None where features only have
    numbers; ``names`` has something to call them by either way.  ``costs`` are in the units of X,
    which a ``scaler`` has made if there is one.  ``origin`` is what a model file remembers,
    ``digest`` that of the features as they were read, if they are numbers and a proof names it.
    """

    X: Any
    codes: NDArray[np.intp]
    classes: list[Any]
    weights: FloatArray | None
    costs: Any
    feature_names: list[str] | None
    names: list[str]
    source: str
    scaler: Any = None
    origin: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def n_fits(self) -> int:
        """How many fits there are: one per class, or one for two classes."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def positive(self) -> Any:
        """The class that probabilities are of, if there are two."""
        return self.classes[1] if self.n_fits == 1 else None

    @property
    def targets(self) -> list[NDArray[np.bool_]]:
        """What each fit tells from the rest: a class, or only the second of two."""
        wanted = [1] if len(self.classes) == 2 else range(len(self.classes))
        return [self.codes == code for code in wanted]

    def fit(self, estimator: Any) -> Any:
        """The estimator, fitted, as a model of the data as they were read.

        Two classes go by numbers, of which the second is the positive one whatever its label is.
        """
        classes = np.array(self.classes)
        labels = self.codes if len(self.classes) == 2 else classes[self.codes]
        estimator.fit(self.X, labels, sample_weight=self.weights)
        if self.scaler is not None:
            estimator = in_original_units(estimator, self.scaler)
        estimator.classes_ = classes
        if self.feature_names is not None:
            estimator.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return estimator


def fit_options(arguments: argparse.Namespace, training: Training) -> dict[str, Any]:
    """What everybody who fits a model wants to know besides the data, ε and κ."""
    options = {
        "norm": arguments.norm,
        "fit_intercept": not arguments.no_intercept,
        "feature_costs": training.costs,
        "solver": arguments.solver,
        "tol": arguments.tol,
        "max_iter": arguments.max_iter,
    }
    if "missing" in arguments:
        options["missing"] = arguments.missing
        options["bounds"] = _bounds_by_position(arguments.bounds, training)
    return options


def _bounds_by_position(bounds: Any, training: Training) -> Any:
    """``--bounds`` with positions for names."""
    if not isinstance(bounds, dict):
        return bounds
    for name in bounds:
        if name not in training.names:
            raise ValueError(f"--bounds: {name!r} is not a feature of {training.source}")
    return {training.names.index(name): ends for name, ends in bounds.items()}


def tolerated(arguments: argparse.Namespace, training: Training) -> Tolerances:
    """``--tolerate`` with positions for names of columns."""
    if arguments.standardize or arguments.feature_costs or arguments.immovable:
        raise ValueError(
            "--tolerate states the costs: no --standardize, --feature-costs or --immovable with it"
        )
    stated, kinds = dict(arguments.tolerate), ("labels", "numbers", "categories")
    by_kind = {kind: stated.pop(kind) for kind in kinds if kind in stated}
    for name in stated:
        if name not in training.names:
            near = difflib.get_close_matches(name, [*kinds, *training.names[:1000]], n=1)
            meant = f": did you mean {near[0]}?" if near else ", nor labels, numbers or categories"
            raise ValueError(f"--tolerate: {name!r} is not a feature of {training.source}{meant}")
    columns = {training.names.index(name): amount for name, amount in stated.items()}
    return tolerances(**by_kind, columns=columns)


def wanted_for_training(arguments: argparse.Namespace) -> Wanted:
    """Which columns of the file to read."""
    if arguments.features and arguments.drop:
        raise ValueError("--features and --drop exclude each other")
    return Wanted(
        target=arguments.target,
        features=arguments.features,
        drop=arguments.drop,
        weights=arguments.weights,
        n_features=arguments.n_features,
        format=arguments.format,
        header=arguments.header,
        delimiter=arguments.delimiter,
        zero_based=bool(arguments.zero_based),
        table="categorical" in arguments,
        texts=vars(arguments).get("categorical", ()),
    )


def read_training(
    arguments: argparse.Namespace,
    console: Console,
    *,
    two_classes: bool = False,
    fold_by_fold: bool = False,
) -> Training:
    """Read the data of a command that fits a model, and make them ready.

    With ``fold_by_fold``, standard deviations are left to who fits.
    """
    if _by_block(arguments, console):
        samples = _read_blocks(arguments)
    else:
        wanted = wanted_for_training(arguments)
        samples = read_samples(arguments.data, wanted, label_file=arguments.labels)
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
    weights = _checked_weights(samples.weights, codes, classes, balanced=arguments.balanced)
    samples = _without_identifiers(_named(samples, arguments), arguments, console)
    by_column = fold_by_fold or is_frame(samples.X) or vars(arguments).get("bounds") is not None
    costs: Any = read_costs(
        arguments.feature_costs, arguments.immovable, samples.names, samples.source
    )
    if by_column:
        costs = _costs_by_position(costs, len(samples.names), standardize=arguments.standardize)
    training = Training(
        X=samples.X,
        codes=codes,
        classes=classes,
        weights=weights,
        costs=costs,
        feature_names=samples.feature_names,
        names=samples.names,
        source=samples.source,
        origin={
            "data": Path(samples.source).name,
            "n_samples": int(codes.size),
            "target": samples.target,
            "positive_against_rest": (
                None
                if len(classes) == len(labels)
                else labels[find_label(arguments.positive, labels, samples.source)]
            ),
            "standardized": bool(arguments.standardize),
            "zero_based": bool(arguments.zero_based),
            "balanced": bool(arguments.balanced),
        },
        digest=(
            digest_of_features(samples.X)
            if getattr(arguments, "proof", None) and not is_frame(samples.X)
            else ""
        ),
    )
    _describe(training, samples, console)
    _advise(training, arguments, console)
    return (
        _standardized(training, arguments) if arguments.standardize and not by_column else training
    )


def _by_block(arguments: argparse.Namespace, console: Console) -> bool:
    """Whether to leave the features in their file: on demand, or where it is too large."""
    from ..files.block_files import is_large

    path = Path(arguments.data)
    if "block_rows" not in arguments or not path.is_file():
        return False
    if arguments.block_rows is not None or path.suffix == ".npy":
        return True
    if format_of(path, arguments.format) not in ("svmlight", "parquet") or not is_large(path):
        return False
    without_target = path.suffix in (".parquet", ".pq") and arguments.target is None
    if without_target or any(vars(arguments).get(option) for option in (*_WHOLE_ONLY, "labels")):
        return False
    console.note(f"{path} is read block by block, for want of memory; see --block-rows")
    return True


def _read_blocks(arguments: argparse.Namespace) -> FileSamples:
    """Samples whose features stay in their file."""
    from ..files.block_files import open_blocks

    for option in _WHOLE_ONLY:
        if vars(arguments).get(option):
            raise ValueError(f"--block-rows takes all columns as they are: no --{option} with it")
    if arguments.labels and Path(arguments.data).suffix != ".npy":
        raise ValueError(f"with --block-rows, {arguments.data} has its own labels: no --labels")
    X, y = open_blocks(
        arguments.data,
        target=arguments.labels or arguments.target,
        block_rows=arguments.block_rows,
        n_features=arguments.n_features,
        zero_based=bool(arguments.zero_based),
    )
    return FileSamples(
        X=X,
        labels=tidy_labels(y, arguments.data),
        weights=None,
        feature_names=X.feature_names,
        target=arguments.target,
        source=arguments.data,
    )


def _describe(training: Training, samples: FileSamples, console: Console) -> None:
    n_samples, n_features = training.X.shape
    counts = np.bincount(training.codes, minlength=len(training.classes))
    shown = ", ".join(
        f"{label} ({count})"
        for label, count in list(zip(training.classes, counts, strict=True))[:6]
    )
    more = ", …" if len(training.classes) > 6 else ""
    column = f" in column {samples.target!r}" if samples.target is not None else ""
    console.note(
        f"{samples.source}: {n_samples} samples, {n_features} features; "
        f"labels{column}: {shown}{more}"
        + (f"; positive class: {training.positive}" if training.n_fits == 1 else "")
    )


def _without_identifiers(
    samples: FileSamples, arguments: argparse.Namespace, console: Console
) -> FileSamples:
    """Leave out text that names rows: next to nothing can be learnt from a level that occurs once.

    Columns that were asked for stay.
    """
    if not isinstance(samples.X, ColumnTable):
        return samples
    asked = {*arguments.categorical, *(arguments.features or ())}
    left_out = {}
    for name, column in zip(samples.X.names, samples.X.arrays, strict=True):
        if holds_levels(column, name) and name not in asked:
            n_levels = len(set(column.tolist()))
            if n_levels > max(_FEW_LEVELS, _IDENTIFIES * len(samples.X)):
                left_out[name] = n_levels
    if not left_out:
        return samples
    kept = [
        (name, column)
        for name, column in zip(samples.X.names, samples.X.arrays, strict=True)
        if name not in left_out
    ]
    if not kept:
        raise ValueError(f"{samples.source} has no column left to be a feature, only identifiers")
    shown = ", ".join(f"{name} ({count} different texts)" for name, count in left_out.items())
    console.note(
        f"left out, as it tells rows apart: {shown}; --categorical takes it as a category all the "
        "same"
    )
    names, arrays = zip(*kept, strict=True)
    return replace(samples, X=ColumnTable(names, arrays), feature_names=list(names))


def _named(samples: FileSamples, arguments: argparse.Namespace) -> FileSamples:
    """Numbers that are encoded, as gaps may be filled one day, under the names of their columns."""
    filled = vars(arguments).get("missing", "error") != "error"
    if not filled or samples.feature_names is None or not isinstance(samples.X, np.ndarray):
        return samples
    return replace(samples, X=ColumnTable(samples.feature_names, list(samples.X.T)))


def _costs_by_position(costs: FloatArray | None, n_columns: int, *, standardize: bool) -> Any:
    """Costs of one unit of each column or, with --standardize, of one standard deviation."""
    if not standardize:
        return None if costs is None else dict(enumerate(costs.tolist()))
    stated = np.ones(n_columns) if costs is None else costs
    return {j: (cost, "std") for j, cost in enumerate(stated.tolist())}


def _advise(training: Training, arguments: argparse.Namespace, console: Console) -> None:
    """A line about the columns that are categories, and one about units that differ much."""
    if isinstance(training.X, ColumnTable):
        pairs = [*zip(training.X.names, training.X.arrays, strict=True)]
    elif isinstance(training.X, np.ndarray):
        pairs = [*zip(training.names, training.X.T, strict=True)]
    else:
        return
    levels = [
        f"{name} ({len(set(column.tolist()))} levels)"
        for name, column in pairs
        if holds_levels(column, name)
    ]
    if levels:
        shown = ", ".join(levels[:12]) + (f" and {len(levels) - 12} more" if levels[12:] else "")
        console.note(f"taken as categories: {shown}")
    given = vars(arguments)
    if any(given.get(option) for option in ("standardize", "feature_costs", "tolerate")):
        return
    numbers = [(name, c) for name, c in pairs if c.dtype.kind == "f" and not np.isnan(c).all()]
    spread = np.array([np.nanstd(column) for _, column in numbers])
    found = unlike_units([name for name, _ in numbers], spread)
    if found is not None:
        console.note(f"{found}: --standardize measures in standard deviations")


def _standardized(training: Training, arguments: argparse.Namespace) -> Training:
    """Features of standard deviation 1 and, if they are dense, mean 0."""
    from sklearn.preprocessing import StandardScaler

    center = not arguments.no_intercept and not sp.issparse(training.X)
    scaler = StandardScaler(with_mean=center)
    X = scaler.fit_transform(training.X, sample_weight=training.weights)
    return replace(training, X=X, scaler=scaler)


def _checked_weights(
    weights: FloatArray | None, codes: NDArray[np.intp], classes: list[Any], *, balanced: bool
) -> FloatArray | None:
    if weights is None:
        return balanced_weights(codes, None, len(classes)) if balanced else None
    check_weights(weights, codes.size)
    totals = np.bincount(codes, weights, minlength=len(classes))
    if not totals.all():
        missing = classes[int(np.flatnonzero(totals == 0.0)[0])]
        raise ValueError(f"--weights: no sample of class {missing!r} has a positive weight")
    return balanced_weights(codes, weights, len(classes)) if balanced else weights
