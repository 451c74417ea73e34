"""Do damaged and forged model files end in one line?

    python -m benchmarks.fuzz_models --count 10000

Entries of sound model files are replaced by others of every kind, removed, exchanged or repeated,
with a digest that fits; or bytes are turned over.  A file must be refused by a ``ValueError`` of
one line, or give a model whose probabilities are numbers from 0 to 1, whose ball can be said, and
that can be audited and written again.  If ``verify`` accepts it with the proof of the sound model,
its bounds must hold.  Every mutant is determined by its number, so that a failure can be looked at
again with ``--first``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import drlogit
from drlogit.files.model_file import _digest

from .fuzz_files import Failure, Rng, damaged, one_line, run

#: What a number, a text or a list in a file may have become.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 10**9, 10**400, 0.5, -0.0, 1e-320, 1e-15, 1e150, 1e308),
    *(-1e308, math.inf, -math.inf, math.nan, "", "x", "inf", "-inf", "nan", "by row", "l2"),
    *("tolerated", "a\nb", "=1+1", "ü" * 300, [], {}, [[]], [None], ["x"], [1], [1, 2, 3]),
    *([[1, 2], [3]], {"x": 1}, {"number": "inf"}, {"mapping": [[1, 2]]}, {"ball": {}}),
)


def sound_models() -> list[tuple[Any, Any, Any]]:
    """Fitted estimators with their data."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 30).astype(float),
            "job": rng.choice(["clerk", "driver", "none"], 30),
            "owner": rng.random(30) < 0.5,
            "code": rng.choice(["1", "2"], 30),
        }
    )
    y = np.where(rng.random(30) < 0.5, "yes", "no")
    X = rng.standard_normal((30, 3))
    several = np.append(["a", "b", "c"], rng.choice(["a", "b", "c"], 27))
    flips = drlogit.Ball(0.05, {"yes": 1.0, "no": math.inf}, bounds={"age": (0, 120)})
    tolerant = drlogit.Ball.tolerating(labels={"yes": 0.05, "no": 0.0}, columns={"age": 2.0})
    costs = drlogit.Ball(0.05, 2.0, norm="l1", feature_costs=[1.0, 2.0, np.inf])
    estimator = drlogit.DRLogisticRegression
    return [
        (estimator(ball=flips, missing="median").fit(frame, y), frame, y),
        (estimator(ball=tolerant, class_weight={"yes": 2, "no": 1}).fit(frame, y), frame, y),
        (estimator(ball=costs).fit(X, y), X, y),
        (estimator(0.05).fit(X, several), X, several),
        (estimator(0.05, missing="mean").fit(frame, several), frame, several),
        (estimator(0.0).fit(X, y == "yes"), X, y == "yes"),
    ]


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all entries of a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in entries:
        yield (*here, key)
        if isinstance(entry, dict | list):
            yield from places(entry, (*here, key))


def changed_document(rng: Rng, document: dict[str, Any]) -> dict[str, Any]:
    """A copy with one to three entries changed, and a digest that fits now and then does not."""
    document = copy.deepcopy(document)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        known = [path for path in places(document) if path[0] != "digest"]
        *path, key = known[rng.integers(len(known))]
        place: Any = document
        for step in path:
            place = place[step]
        other: Any = document
        for step in known[rng.integers(len(known))]:
            other = other[step]
        kind, value = rng.integers(8), place[key]
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, list):
            place.insert(int(rng.integers(len(place) + 1)), copy.deepcopy(value))
        elif kind == 2:
            place[key] = copy.deepcopy(other)
        elif kind == 3 and isinstance(value, float | int):
            place[key] = float(value) * float(rng.choice([-1.0, 0.0, 1.0 + 1e-12, 2.0, 1e300]))
        elif kind == 4 and isinstance(place, list):
            rng.shuffle(place)
        else:
            place[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    if rng.random() < 0.95:
        with contextlib.suppress(Exception):
            document["digest"] = _digest(document)
    return document


def try_model(rng: Rng, models: list[tuple[Any, Any, Any]], folder: Path) -> str:
    """One mutant of a model file; says what became of it."""
    k = int(rng.integers(len(models)))
    model, X, y = models[k]
    sound, path, proof = folder / f"sound-{k}.json", folder / "model.json", folder / f"{k}.npz"
    if not proof.exists():
        drlogit.save_model(model, sound)
        model.save_proof(proof, X, y)
    contents = sound.read_text("utf-8")
    if rng.random() < 0.1:
        path.write_bytes(damaged(rng, contents.encode()))
    else:  # NaN and Infinity as Python's own reader takes them
        path.write_text(json.dumps(changed_document(rng, json.loads(contents))), "utf-8")
    found = one_line(lambda: drlogit.load_model(path))
    if found is None:
        return "refused"
    probabilities = one_line(lambda: found.predict_proba(X))
    if probabilities is None:
        return "loaded, does not fit its data"
    sums = probabilities.sum(axis=1)
    if not ((probabilities >= 0.0) & (probabilities <= 1.0)).all() or not np.allclose(sums, 1.0):
        raise Failure("probabilities that are none")
    one_line(lambda: (str(found.ball_), repr(found)))
    one_line(lambda: str(drlogit.audit(found, X, y)))
    one_line(lambda: drlogit.save_model(found, folder / "again.json"))
    verdict = one_line(lambda: drlogit.verify(found, X, y, proof))
    if verdict is None or not verdict.ok:
        return "loaded, not verified"
    if verdict.lower > min(verdict.upper, drlogit.worst_case(found, X, y).value + 1e-9):
        raise Failure(f"a lower bound of {verdict.lower} above a model's value")
    return "verified"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    failed = run("estimators", arguments.count, arguments.first, try_model, sound_models())
    raise SystemExit(bool(failed))
