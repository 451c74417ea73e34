"""From the options of a command to samples that an estimator can be fitted to."""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..datasets.known import read_data
from ..estimators.original_units import in_original_units
from ..estimators.tables.frames import ColumnTable, holds_levels, is_frame
from ..estimators.tolerances import Tolerances, tolerances
from ..estimators.training_data import balanced_weights
from ..files import strict_json
from ..files.columns import FileSamples, Wanted, tidy_labels
from ..files.limits import check_memory
from ..files.opening import format_of, not_utf8
from ..rows.arrays import FloatArray
from ..rows.checks import check_weights
from ..rows.pieces import digest_of_features
from .console import Console

#: Bytes that a letter of a file of costs can take once it is read.
_COST_BYTES = 64

#: Columns of more levels than this are identifiers if they have more than so many per row.
_FEW_LEVELS, _IDENTIFIES = 20, 0.5

#: Standard deviations that differ by more than this factor deserve a word.
_UNLIKE = 100.0

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
    stated = dict(arguments.tolerate)
    by_kind = {
        kind: stated.pop(kind) for kind in ("labels", "numbers", "categories") if kind in stated
    }
    for name in stated:
        if name not in training.names:
            raise ValueError(f"--tolerate: {name!r} is not a feature of {training.source}")
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
    arguments: argparse.Namespace, console: Console, *, two_classes: bool = False
) -> Training:
    """Read the data of a command that fits a model, and make them ready."""
    if _by_block(arguments, console):
        samples = _read_blocks(arguments)
    else:
        wanted = wanted_for_training(arguments)
        samples = read_data(arguments.data, wanted, label_file=arguments.labels)
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
    samples = _without_identifiers(samples, arguments, console)
    by_column = is_frame(samples.X) or vars(arguments).get("bounds") is not None
    costs: Any = read_costs(
        arguments.feature_costs, arguments.immovable, samples.names, samples.source
    )
    if by_column:
        costs = _costs_by_position(costs, samples, arguments)
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


def _costs_by_position(
    costs: FloatArray | None, samples: FileSamples, arguments: argparse.Namespace
) -> dict[int, Any] | None:
    """Costs of a table's columns: those stated, or with --standardize "std" where none is."""
    stated = {} if costs is None else dict(enumerate(costs.tolist()))
    if not arguments.standardize:
        return stated or None
    if arguments.feature_costs is not None:
        raise ValueError(
            "--standardize and --feature-costs exclude each other for tables with text, gaps or "
            "bounds: state the costs of one unit of each column"
        )
    return {
        j: np.inf if stated and np.isinf(stated[j]) else "std" for j in range(len(samples.names))
    }


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
    spread = {name: float(np.nanstd(c)) for name, c in pairs if c.dtype.kind == "f" and c.size}
    spread = {name: value for name, value in spread.items() if value > 0.0}
    if len(spread) > 1 and max(spread.values()) > _UNLIKE * min(spread.values()):
        low, high = min(spread, key=spread.__getitem__), max(spread, key=spread.__getitem__)
        console.note(
            f"standard deviations range from {spread[low]:.3g} ({low}) to {spread[high]:.3g} "
            f"({high}), and epsilon is in these units: --standardize measures in standard "
            "deviations"
        )


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


# --- labels ---------------------------------------------------------------------------------


def choose_classes(
    labels: list[Any], codes: NDArray[np.intp], positive: str | None, source: str
) -> tuple[list[Any], NDArray[np.intp]]:
    """The classes in order, and the class of each sample, from labels and positions among them.

    Of two classes the positive one comes second.  A positive label among more than two makes
    two classes: it, and "not" it.
    """
    if len(labels) < 2:
        raise ValueError(
            f"all {codes.size} labels of {source} are {labels[0]!r}; two classes are wanted"
        )
    if positive is None:
        if len(labels) > max(20, codes.size // 10):
            raise ValueError(
                f"{source} has {len(labels)} different labels in {codes.size} samples: is the "
                "column of the labels the right one? Name it with --target, or choose a label "
                "with --positive"
            )
        return labels, codes.astype(np.intp)
    chosen = find_label(positive, labels, source)
    codes = (codes == chosen).astype(np.intp)
    if len(labels) == 2:
        return [labels[1 - chosen], labels[chosen]], codes
    return [f"not {labels[chosen]}", str(labels[chosen])], codes


def find_label(text: str, classes: list[Any], source: str) -> int:
    """Position of a label given as text."""
    for position, label in enumerate(classes):
        if str(label) == text:
            return position
        if isinstance(label, int | float) and _as_number(text) == label:
            return position
    shown = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
    raise ValueError(f"no sample of {source} has the label {text!r}; its labels are {shown}")


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# --- feature costs --------------------------------------------------------------------------


def read_costs(
    file: str | os.PathLike[str] | None,
    immovable: tuple[str, ...],
    names: list[str],
    source: str,
) -> FloatArray | None:
    """The costs of moving features, from ``--feature-costs`` and ``--immovable``."""
    if file is None and not immovable:
        return None
    position = {name: j for j, name in enumerate(names)}
    costs = np.ones(len(names))
    if file is not None:
        given = _cost_file(Path(file))
        if isinstance(given, list):
            if len(given) != len(names):
                raise ValueError(f"{file} lists {len(given)} costs for {len(names)} features")
            given = dict(zip(names, given, strict=True))
        for name, cost in given.items():
            if name not in position:
                raise ValueError(f"{file}: {name!r} is not a feature of {source}")
            costs[position[name]] = _cost(cost, name, file)
    for name in immovable:
        if name not in position:
            raise ValueError(f"--immovable: {name!r} is not a feature of {source}")
        costs[position[name]] = np.inf
    return costs


def _cost_file(path: Path) -> Any:
    if path.suffix.lower() == ".json":
        try:
            given = strict_json.read(path)
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}") from None
        if not isinstance(given, list | dict):
            raise ValueError(f"{path} must hold a JSON object or list, got {given!r:.40}")
        return given
    check_memory(_COST_BYTES * path.stat().st_size, str(path))
    try:
        text = path.read_text("utf-8-sig")
        rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except csv.Error as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    if rows and len(rows[0]) == 2 and _as_number(rows[0][1]) is None:
        rows = rows[1:]  # a header
    for row in rows:
        if len(row) != 2:
            raise ValueError(f"{path}: a line must be name,cost, got {','.join(row)!r:.60}")
    return {name.strip(): cost.strip() for name, cost in rows}


def _cost(value: Any, name: str, file: str | os.PathLike[str]) -> float:
    try:
        cost = float(value)
    except (TypeError, ValueError, OverflowError):
        cost = np.nan
    if not cost > 0.0 or isinstance(value, bool):
        raise ValueError(
            f"{file}: the cost of {name!r} must be a positive number or inf, got {value!r:.40}"
        )
    return cost
