"""Parts left out in turn: models, promises from past shifts, and their theorems.

    DRLOGIT_DATA=… python -m benchmarks.parts [fits | promises | simulated | bounds | null]

*fits*: every part of a table is left out in turn; models are fitted to the others and judged on it.
*promises*: does what :func:`drlogit.radius_from_parts` promises from the other parts hold there?
*simulated*: the same in simulated families of places, for models that are fixed beforehand and for
models that are fitted without each part.  *bounds*: covering radii and column sums against exact
transport distances.  *null*: how often the permutation test alarms where nothing shifted.

The tables are those of ``$DRLOGIT_DATA/shift`` and the adult table, cut into parts by place, time,
course or occupation.  Nothing was chosen by the results on the four *fresh* cuts.  Tolerances are
the same everywhere: 2 % of labels, a tenth of a standard deviation, 5 % of a category.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneGroupOut

import drlogit

from . import store
from .shift import COIN, encoded, parts_of

DECLARED = drlogit.tolerances(labels=0.02, numbers=0.1, categories=0.05)
TABLE: dict[str, Any] = {"categorical_features": "from_dtype", "missing": "median"}
#: Rows to fit to, rows of a part, and parts of a table, at most.
ROWS, PER_PART, PARTS = 1500, 500, 10

Parts = dict[str, pd.DataFrame]


def robust() -> Any:
    return drlogit.DRLogisticRegression(**DECLARED.parameters, **TABLE)


# --- tables in parts ------------------------------------------------------------------------


def _whole(name: str) -> pd.DataFrame:
    parts = parts_of(Path(os.environ["DRLOGIT_DATA"]) / "shift" / f"{name}.csv.bz2")
    return pd.concat([rows.assign(part=part) for part, rows in parts.items()])


def _by(frame: pd.DataFrame, column: str, least: int) -> Parts:
    return {str(k): g.drop(columns=column) for k, g in frame.groupby(column) if len(g) >= least}


def _blocks(frame: pd.DataFrame, rows: int) -> Parts:
    frame = frame.drop(columns="part")
    pieces = np.array_split(np.arange(len(frame)), max(round(len(frame) / rows), 1))
    return {f"block {i:02d}": frame.iloc[piece] for i, piece in enumerate(pieces)}


def _adult(part: str, without: str) -> Parts:
    names = (
        "age workclass fnlwgt education education_num marital occupation relationship race sex "
        "gain loss hours country y"
    ).split()
    path = Path(os.environ["DRLOGIT_DATA"]) / "uci" / "adult.data.bz2"
    frame = pd.read_csv(path, header=None, names=names, skipinitialspace=True, na_values="?")
    frame["y"] = (frame["y"] == ">50K").astype(int)
    frame["country"] = np.where(frame["country"] == "United-States", "US", "other")
    frame[["gain", "loss"]] = np.log1p(frame[["gain", "loss"]])
    frame[["workclass", "occupation"]] = frame[["workclass", "occupation"]].fillna("unknown")
    return _by(frame.drop(columns=["fnlwgt", without]), part, 400)


def _occupancy() -> Parts:
    frame = _whole("occupancy")
    return {
        f"{part} {name}": rows
        for part in ("train", "door-closed", "door-open")
        for name, rows in _blocks(frame[frame["part"] == part], 1440).items()
    }


def _schooling() -> Parts:
    frame = _whole("employment-ma").drop(columns="part")
    return _by(frame[frame["SCHL"].astype(int) >= 12], "SCHL", 1000)


def _ages() -> Parts:
    frame = _whole("employment-ma").drop(columns="part")
    frame = frame[frame["AGEP"].between(18, 77)]
    return _by(
        frame.assign(band=(frame["AGEP"] // 5).astype(int)).drop(columns="AGEP"), "band", 1000
    )


def _courses() -> Parts:
    frame = _whole("oulad")
    frame["part"] = frame["part"].astype(str) + frame.pop("code_module")
    return _by(frame, "part", 250)


def _hours() -> Parts:
    frame = _whole("electricity").drop(columns="part")
    frame["hour"] = (frame.pop("period") * 11.999).astype(int)
    return _by(frame, "hour", 500)


TABLES: dict[str, Callable[[], Parts]] = {
    "heart": lambda: _by(_whole("heart-hospitals"), "part", 100),
    "communities": lambda: _by(_whole("communities"), "part", 100),
    "employment-years": lambda: _by(_whole("employment-ma"), "part", 100),
    "employment-schooling": _schooling,
    "occupancy-days": _occupancy,
    "weather-blocks": lambda: _blocks(_whole("weather"), 726),
    "electricity-months": lambda: _blocks(_whole("electricity"), 1461),
    "oulad-courses": _courses,
    "adult-occupations": lambda: _adult("occupation", "education"),
}
FRESH: dict[str, Callable[[], Parts]] = {
    "adult-education": lambda: _adult("education", "education_num"),
    "employment-ages": _ages,
    "oulad-regions": lambda: _by(_whole("oulad").drop(columns="part"), "region", 400),
    "electricity-hours": _hours,
}


def capped(parts: Parts, seed: int) -> Parts:
    """At most PARTS parts, drawn at random, of at most PER_PART rows each."""
    names = sorted(name for name, rows in parts.items() if rows["y"].nunique() > 1)
    rng = np.random.default_rng(seed)
    kept = sorted(rng.permutation(len(names))[:PARTS])
    return {
        names[i]: parts[names[i]].sample(min(PER_PART, len(parts[names[i]])), random_state=seed)
        for i in kept
    }


def pooled(parts: Parts, without: str) -> tuple[pd.DataFrame, pd.Series, np.ndarray[Any, Any]]:
    """Rows, labels and parts of all but one part, at most ROWS rows."""
    others = {name: rows for name, rows in parts.items() if name != without}
    each = max(ROWS // len(others), 20)
    some = {name: rows.iloc[:each] for name, rows in others.items()}
    frame = pd.concat(some.values())
    group = np.repeat(list(some), [len(rows) for rows in some.values()])
    return frame.drop(columns="y"), frame["y"], group


def judged(p: np.ndarray[Any, Any], y: pd.Series) -> dict[str, float]:
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return {"loss": log_loss(y, p, labels=[0, 1]), "error": float(((p > 0.5) != (y == 1)).mean())}


# --- models ---------------------------------------------------------------------------------


def fits(name: str, parts: Parts, seed: int) -> Iterator[store.Row]:
    for part in parts:
        X, y, group = pooled(parts, part)
        there = parts[part]
        Z, z = there.drop(columns="y"), there["y"]
        folds = list(LeaveOneGroupOut().split(X, y, group))
        ridge: dict[str, Any] = {"scoring": "neg_log_loss", "max_iter": 1000}
        by_rows = encoded(X, LogisticRegressionCV(**ridge)).fit(X, y)
        models = {
            "plain": encoded(X, LogisticRegression(C=1e4, max_iter=2000)).fit(X, y),
            "ridge, tuned by rows": by_rows,
            "ridge, tuned by parts": encoded(X, LogisticRegressionCV(cv=folds, **ridge)).fit(X, y),
            "ridge by rows, mixed with coin flips": by_rows,
            "robust, declared": robust().fit(X, y),
            "robust, tuned by parts": drlogit.DRLogisticRegressionCV(
                feature_costs=DECLARED.feature_costs, cv=LeaveOneGroupOut(), **TABLE
            ).fit(X, y, groups=group),
        }
        for method, model in models.items():
            p = model.predict_proba(Z)[:, 1]
            if "coin" in method:
                p = (1.0 - COIN) * p + 0.5 * COIN
            yield {"table": name, "seed": seed, "part": part, "method": method, **judged(p, z)}


def summary(rows: pd.DataFrame) -> str:
    """Mean and standard error over tables, the worst part, and differences paired by table."""
    tables = rows.groupby(["method", "table"])[["loss", "error"]].mean()
    by_part = rows.groupby(["method", "table", "part"])["loss"].mean()
    worst = by_part.groupby(level=["method", "table"]).max()
    reference = tables.loc["ridge, tuned by parts"]
    worst_reference = worst.loc["ridge, tuned by parts"]
    lines = [
        "| model | log-loss | less ridge by parts | worst part, mean over tables | "
        "less ridge by parts | worst of all | error |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in rows["method"].unique():
        own, bad = tables.loc[method], worst.loc[method]
        lines.append(
            f"| {method} | {_mean(own['loss'])} | {_mean(own['loss'] - reference['loss'], '+.3f')} "
            f"| {bad.mean():.3f} | {_mean(bad - worst_reference, '+.3f')} | {bad.max():.2f} | "
            f"{_mean(own['error'])} |"
        )
    return "\n".join(lines)


def _mean(values: pd.Series, form: str = ".3f") -> str:
    return f"{values.mean():{form}} ± {values.std() / np.sqrt(len(values)):.3f}"


# --- promises -------------------------------------------------------------------------------


def promises(name: str, parts: Parts, seed: int) -> Iterator[store.Row]:
    K = len(parts) - 1
    for part in parts:
        X, y, group = pooled(parts, part)
        there = parts[part]
        Z, z = there.drop(columns="y"), there["y"]
        order = np.random.default_rng(seed).permutation(len(y))
        held, seen = np.split(order, [len(y) // 5])
        model = robust().fit(X.iloc[seen], y.iloc[seen])
        reference = X.iloc[held], y.iloc[held]
        found = judged(model.predict_proba(Z)[:, 1], z)
        for level in (0.8, 0.9):
            nominal = min(level, K / (K + 1))
            radius = drlogit.radius_from_parts(robust(), X, y, group, nominal, random_state=seed)
            place = int(np.ceil(nominal * (K + 1) - 1e-9))
            yield {
                "table": name, "seed": seed, "part": part, "level": level, "nominal": nominal,
                **found, "radius": radius.radius,
                "plain": radius.promise(model, *reference).loss,
                "weighted": radius.promise(model, *reference, Z).loss,
                "error_promise": radius.promise(model, *reference).error,
                "losses": float(np.sort(radius.table["loss"])[place - 1]),
            }  # fmt: skip


def promises_summary(rows: pd.DataFrame) -> str:
    lines = [
        "| level | nominal | promise | held | mean excess |",
        "|---|---|---|---|---|",
    ]
    for level, own in rows.groupby("level"):
        for kind, word in (
            ("plain", "radius"),
            ("weighted", "radius, reweighted by unlabelled rows"),
            ("losses", "conformal on the losses"),
        ):
            held = (own["loss"] <= own[kind]).groupby(own["table"]).mean()
            excess = (own[kind] - own["loss"]).groupby(own["table"]).mean()
            nominal = own.groupby("table")["nominal"].mean().mean()
            lines.append(
                f"| {level} | {nominal:.2f} | {word} | {_mean(held, '.2f')} | {_mean(excess)} |"
            )
        error = (own["error"] <= own["error_promise"]).groupby(own["table"]).mean()
        lines.append(f"| {level} | | error | {_mean(error, '.2f')} | |")
    return "\n".join(lines)


# --- simulated places -----------------------------------------------------------------------

_BETA, _OFFSET = np.array([1.5, -1.0, 0.8, 0.5, 0.0, 0.0]), -0.3
#: Standard deviations of a place's means, intercept and slopes, and its largest label noise.
REGIMES = {
    "means": (0.5, 0.0, 0.0, 0.0),
    "intercept": (0.0, 0.7, 0.0, 0.0),
    "slopes": (0.0, 0.0, 0.4, 0.0),
    "labels": (0.0, 0.0, 0.0, 0.2),
    "mixed": (0.3, 0.4, 0.25, 0.1),
}


def place(rng: np.random.Generator, regime: str, n: int) -> tuple[Any, Any]:
    means, offset, slopes, wrong = REGIMES[regime]
    X = means * rng.standard_normal(_BETA.size) + rng.standard_normal((n, _BETA.size))
    beta = _BETA + slopes * rng.standard_normal(_BETA.size)
    score = X @ beta + _OFFSET + offset * rng.standard_normal()
    y = (score + rng.logistic(size=n) > 0).astype(int)
    return X, np.where(rng.random(n) < wrong * rng.random(), 1 - y, y)


def simulated(seed: int, n: int = 120) -> Iterator[store.Row]:
    """One family of places: K past ones and the next, for each K."""
    rng = np.random.default_rng(seed)
    regime = list(REGIMES)[seed % len(REGIMES)]
    estimator = drlogit.DRLogisticRegression(0.05, 2.5)
    for K, level in ((4, 0.8), (9, 0.9), (19, 0.95)):
        places = [place(rng, regime, n) for _ in range(K + 3)]
        X, y = (np.concatenate([p[i] for p in places[:K]]) for i in (0, 1))
        group = np.repeat(np.arange(K), n)
        new = places[K]
        # Fixed beforehand: fitted to one more place, measured around another.
        fixed = drlogit.DRLogisticRegression(0.05, 2.5).fit(*places[K + 1])
        reference = places[K + 2]
        exact = drlogit.radius_from_parts(fixed, X, y, group, level, reference=reference)
        order = rng.permutation(len(y))
        held, seen = np.split(order, [len(y) // 5])
        final = drlogit.DRLogisticRegression(0.05, 2.5).fit(X[seen], y[seen])
        left = drlogit.radius_from_parts(estimator, X, y, group, level, random_state=seed)
        for how, radius, model, ref in (
            ("fixed", exact, fixed, reference),
            ("left out", left, final, (X[held], y[held])),
        ):
            met = judged(model.predict_proba(new[0])[:, 1], pd.Series(new[1]))
            for weighted in (False, True):
                promise = radius.promise(model, *ref, new[0] if weighted else None)
                yield {
                    "seed": seed, "regime": regime, "K": K, "nominal": level, "how": how,
                    "weighted": weighted, "loss_held": met["loss"] <= promise.loss + 1e-12,
                    "error_held": met["error"] <= promise.error + 1e-12,
                    "excess": promise.loss - met["loss"],
                }  # fmt: skip


def simulated_summary(rows: pd.DataFrame) -> str:
    keys = ["K", "nominal", "how", "weighted"]
    found = rows.groupby(keys)[["loss_held", "error_held", "excess"]].mean()
    found["n"] = rows.groupby(keys).size()
    found["se"] = np.sqrt(found["loss_held"] * (1.0 - found["loss_held"]) / found["n"])
    return str(found.round(3))


# --- theorems -------------------------------------------------------------------------------


def bounds(seed: int = 0) -> Iterator[store.Row]:
    """Covering radii and column sums beside exact transport distances, on all pairs of parts."""
    for path in sorted((Path(os.environ["DRLOGIT_DATA"]) / "shift").glob("*.csv.bz2")):
        parts = parts_of(path)
        for here, first in parts.items():
            for there, other in parts.items():
                if here == there or first["y"].nunique() < 2:
                    continue
                first = first.sample(min(1000, len(first)), random_state=seed)
                n = min(200, len(first) // 3, len(other))
                ref, train = first.iloc[:n], first.iloc[n:]
                new = other.sample(n, random_state=seed)
                if train["y"].nunique() < 2:
                    continue
                yield from _pair(path.name.split(".")[0], here, there, train, ref, new)


def _pair(
    name: str, here: str, there: str, train: pd.DataFrame, ref: pd.DataFrame, new: pd.DataFrame
) -> Iterator[store.Row]:
    X, y = train.drop(columns="y"), train["y"]
    A, B = ref.drop(columns="y"), new.drop(columns="y")
    model = robust().fit(X, y)
    costs = {"feature_costs": DECLARED.feature_costs}
    plain = drlogit.DRLogisticRegression(1e-4 * model.epsilon_, model.kappa_, **costs, **TABLE)
    plain.fit(X, y)
    for kind, one in (("robust", model), ("nearly plain", plain)):
        found = drlogit.shift(one, A, ref["y"], B, new["y"], epsilon=0.1)
        worst = drlogit.worst_case_loss(one, A, ref["y"], epsilon=found.epsilon, kappa=one.kappa_)
        W = _transport(one, A, B, ref["y"].to_numpy(), new["y"].to_numpy())
        labels = one.kappa_ * abs(ref["y"].mean() - new["y"].mean())
        yield {
            "table": name, "here": here, "there": there, "model": kind, "W": W,
            "epsilon": found.epsilon, "distance": found.features["cost"].sum() + labels,
            "off": abs(worst - found.loss_new) if found.epsilon > 0.0 else 0.0,
        }  # fmt: skip


def _transport(model: Any, A: Any, B: Any, a: Any, b: Any) -> float:
    """The exact distance between two samples of equal size: an assignment."""
    from drlogit.estimators.training_data import matrix_of

    P, Q = (np.asarray(getattr(M, "toarray", lambda M=M: M)()) for M in
            (matrix_of(model, A), matrix_of(model, B)))  # fmt: skip
    groups = [list(map(int, group)) for group in model.categories_ or []]
    grouped = {j for group in groups for j in group}
    costs = np.asarray(model.feature_costs_)
    D = model.kappa_ * (a[:, None] != b)
    for j in range(P.shape[1]):
        if j not in grouped:
            D = D + costs[j] * np.abs(P[:, j][:, None] - Q[:, j])
    for group in groups:
        one, other = (
            np.where(M[:, group].any(axis=1), M[:, group].argmax(axis=1), -1) for M in (P, Q)
        )
        D = D + costs[group[0]] * (one[:, None] != other)
    rows, columns = linear_sum_assignment(D)
    return float(D[rows, columns].mean())


def bounds_summary(rows: pd.DataFrame) -> str:
    share, columns = rows["epsilon"] / rows["W"], rows["distance"] / rows["W"]
    return (
        f"{len(rows)} pairs and models: |V(ε*) - loss| <= {rows['off'].max():.1e}; ε*/W at most "
        f"{share.max():.3f}, median {share.median():.3f}; columns and labels / W at most "
        f"{columns.max():.6f}, median {columns.median():.3f}"
    )


def null(draws: int) -> str:
    """Alarms of the test where both samples come from one part, and where the loss rose."""
    alarms, same, seen, harmful = 0, 0, 0, 0
    for name, make in TABLES.items():
        parts = capped(make(), 0)
        for part, rows in parts.items():
            X, y, _ = pooled(parts, part)
            model = robust().fit(X, y)
            for draw in range(draws):
                mixed = rows.sample(frac=1.0, random_state=draw)
                half = len(mixed) // 2
                found = _shifted(model, mixed.iloc[:half], mixed.iloc[half:])
                alarms, same = alarms + (found.p_value <= 0.05), same + 1
            past = pd.concat([X, y], axis=1).sample(min(500, len(X)), random_state=0)
            found = _shifted(model, past, rows)
            if found.loss_new - found.loss_ref > 0.1:
                seen, harmful = seen + (found.p_value <= 0.05), harmful + 1
        print(name, f"alarms {alarms} of {same}; harmful {seen} of {harmful}", flush=True)
    return (
        f"alarms without a shift: {alarms} of {same}; where the loss rose by more than 0.1: {seen} "
        f"of {harmful}"
    )


def _shifted(model: Any, ref: pd.DataFrame, new: pd.DataFrame) -> Any:
    (X, y), (Z, z) = ((rows.drop(columns="y"), rows["y"]) for rows in (ref, new))
    return drlogit.shift(model, X, y, Z, z)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("fits", "promises", "simulated", "bounds", "null"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="the four fresh cuts")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "null":
        print(null(options.seeds))
        return
    found: list[store.Row] = []
    if options.what == "simulated":
        for seed in range(options.seeds):
            found += simulated(seed)
        text = simulated_summary(pd.DataFrame(found))
    elif options.what == "bounds":
        found += bounds()
        text = bounds_summary(pd.DataFrame(found))
    else:
        run, tell = (fits, summary) if options.what == "fits" else (promises, promises_summary)
        for name, make in (FRESH if options.fresh else TABLES).items():
            for seed in range(options.seeds):
                found += run(name, capped(make(), seed), seed)
            print(name, len(found), flush=True)
        text = tell(pd.DataFrame(found))
    out = options.out or store.RESULTS / f"parts-{options.what}{'-fresh' * options.fresh}.jsonl"
    out.unlink(missing_ok=True)
    store.append_rows(out, found)
    print(text)


if __name__ == "__main__":
    main()
