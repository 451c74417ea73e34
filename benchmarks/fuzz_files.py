"""Do damaged and forged files end in one line, and is nothing false accepted?

    python -m benchmarks.fuzz_files --models 10000 --proofs 10000 --fits 6000

*Models*: entries of sound model files replaced by others of every kind, removed, exchanged or
repeated, with a digest that fits; or bytes turned over.  A file must be refused by a ``ValueError``
of one line, or give a model whose probabilities are numbers from 0 to 1, whose ball can be said,
and that can be audited and written again.  If ``verify`` accepts it with the proof of the sound
model, its bounds must hold.

*Proofs*: numbers, shapes, types and members of sound proofs changed, sizes that their headers do
not keep to, bytes turned over.  ``verify`` must answer in one line.  Whether it accepts the proof
or not, the lower bound must not exceed the value of the best model known, and the upper bound must
not be below the worst case of the model, both with fifty digits by code that shares nothing with
the library (``false_bounds.py``).

*Fits*: data on which rounding is large (columns far from zero next to a group that takes the place
of the intercept, weights over 24 orders of magnitude, separated classes).  ``verify`` must accept
every fit with its own dual point, and no lower bound may exceed an upper one.

Every mutant is determined by its number, so that a failure can be looked at again with ``--first``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import math
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd

import drlogit
from benchmarks import stated
from benchmarks.false_bounds import judge_of
from benchmarks.problems import Generated, awkward, domain_case
from drlogit.files.model_file import _digest

Rng = np.random.Generator


class Failure(Exception):  # noqa: N818
    """What must not happen: its name is what is counted."""


# --- what is sound -----------------------------------------------------------------------------


@dataclass
class Sound:
    """A problem with its fit, its judge, and the value of the best model that is known."""

    name: str
    problem: Generated
    result: drlogit.Result
    least: Any
    worst: Any  # of the fit

    @classmethod
    def of(cls, name: str, problem: Generated) -> Sound:
        judge, fits = judge_of(problem), [problem.solve(tol=tol) for tol in (1e-6, 1e-10)]
        return cls(name, problem, fits[0], min(map(judge.least_value, fits)), judge.value(fits[0]))

    def verify(self, result: drlogit.Result, proof: Path) -> drlogit.Verification:
        weights = self.problem.options.get("sample_weight")
        return drlogit.verify(result, self.problem.X, self.problem.y, proof, sample_weight=weights)


def sound_problems() -> list[Sound]:
    """Features that can be any number, categories and bounds, several classes."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((25, 3)) + np.array([0.0, 50.0, 0.0])
    y = X[:, 0] + rng.logistic(size=25) > 0.0
    costs = np.array([1.0, 0.5, np.inf])
    options = {"epsilon": 0.05, "kappa": 1.0, "norm": "l2", "feature_costs": costs}
    options |= {"fit_intercept": True}
    several = np.append([0, 1, 2], rng.integers(0, 3, 22))
    A, b, domains = domain_case(3)
    return [
        Sound.of("numbers", Generated("", X, y, options)),
        Sound.of("domains", Generated("", A, b > 0, domains)),
        Sound.of("classes", Generated("", X, several, options)),
    ]


def one_line(do: Callable[[], Any]) -> Any:
    """What is returned; None if it is refused in one line; ``Failure`` for anything else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # those are for users
            return do()
    except ValueError as error:
        text = str(error)
        if text.startswith("The feature names should match"):  # as scikit-learn says it
            return None
        if not text or "\n" in text or len(text) > 2000:
            raise Failure(f"not one line: {text!r:.200}") from error
        return None
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error!s:.200}") from error


# --- mutants of proofs -------------------------------------------------------------------------


def damaged(rng: Rng, contents: bytes) -> bytes:
    """A file with some bits turned over, perhaps cut off."""
    found = bytearray(contents)
    for _ in range(int(rng.integers(1, 6))):
        found[rng.integers(len(found))] ^= 1 << int(rng.integers(8))
    return bytes(found[: rng.integers(1, len(found))] if rng.random() < 0.3 else found)


def changed_numbers(rng: Rng, values: Any) -> Any:
    """An array with some of its entries, or all of them, changed."""
    values = np.array(values)
    if not values.size or values.dtype.kind not in "fiub":
        return values
    some = rng.random(values.shape) < rng.choice([1.0 / values.size, 0.1, 1.0])
    if values.dtype.kind != "f":
        new = {"b": ~values, "u": values ^ np.uint8(1 << rng.integers(8))}.get(
            values.dtype.kind, values + rng.integers(-2, 3)
        )
        return np.where(some, new, values).astype(values.dtype)
    tiny = rng.choice([1e-16, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1])
    forms: list[Callable[[Any], Any]] = [
        lambda x: x + tiny, lambda x: x - tiny, lambda x: x * (1 + tiny), lambda x: x * (1 - tiny),
        lambda x: 0.5 + 0.0 * x, lambda x: 0.0 * x, lambda x: 0.0 * x + 1.0, lambda x: 1.0 - x,
        lambda x: np.sqrt(np.abs(x)), lambda x: -x, lambda x: x * np.nan, lambda x: x + np.inf,
        lambda x: 0.0 * x + 5e-324, lambda x: np.nextafter(x, 2.0), lambda x: 1.0 + tiny + 0.0 * x,
        lambda x: rng.permuted(x), lambda x: rng.random(x.shape), lambda x: x * 1e300,
    ]  # fmt: skip
    return np.where(some, forms[rng.integers(len(forms))](values), values)


def changed_arrays(rng: Rng, arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a proof with numbers, shapes, types or members changed."""
    arrays, name = dict(arrays), str(rng.choice(list(arrays)))
    kind = rng.integers(12)
    if kind < 6:
        for each in {name, str(rng.choice(list(arrays)))} if kind < 2 else {name}:
            arrays[each] = changed_numbers(rng, arrays[each])
    elif kind == 6 and "moves_s" in arrays:  # masses that are more than the samples
        arrays["moves_share"] = arrays["moves_share"] * (1.0 + 10.0 ** rng.uniform(-16, 0))
    elif kind == 7 and "moves_s" in arrays:  # pieces twice, or in another order
        order = rng.integers(0, len(arrays["moves_s"]), len(arrays["moves_s"]))
        order = np.sort(order) if rng.random() < 0.8 else order
        for each in (key for key in arrays if key.startswith("moves_")):
            arrays[each] = arrays[each][order]
    elif kind == 8:
        del arrays[name]
    elif kind == 9:
        types = ["<f4", ">f8", "<i8", "|b1", "<c16", "<U3", "|S5"]
        with contextlib.suppress(Exception):
            arrays[name] = np.asarray(arrays[name]).astype(rng.choice(types))
    elif kind == 10:
        forms = [lambda x: x[:-1], lambda x: x[None], lambda x: x.ravel(), lambda x: x.T]
        with contextlib.suppress(Exception):
            arrays[name] = forms[rng.integers(4)](np.asarray(arrays[name]))
    else:
        factor = rng.uniform(0.9, 1.1)
        for each in {"s", "flip_share", "probabilities", "labels", "moves_s"} & arrays.keys():
            arrays[each] = np.clip(arrays[each] * factor, 0.0, 1.0)
    return arrays


def packed(rng: Rng, arrays: dict[str, Any]) -> bytes:
    """An archive of arrays; now and then with a header that lies, or of another kind."""
    contents, kind = io.BytesIO(), rng.random()
    if kind < 0.9:
        np.savez_compressed(contents, **arrays)
        return contents.getvalue()
    method = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    chosen = str(rng.choice(list(arrays)))
    with zipfile.ZipFile(contents, "w", method[rng.integers(4)]) as archive:
        for name, values in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)
            raw = member.getvalue()
            if name == chosen:  # other sizes than there are
                for old in (b"(25,), }", b"(25, 3), }"):
                    new = (b"(%d,), }" % 10 ** int(rng.integers(1, 15))).ljust(len(old))
                    raw = raw.replace(old + b" " * (len(new) - len(old)), new)
                raw += b"\0" * int(rng.choice([0, 1, 8, 10**5, 3 * 10**7]))
            archive.writestr(f"{name}.npy", raw)
    return contents.getvalue()


def try_proof(rng: Rng, problems: list[Sound], folder: Path) -> str:
    """One mutant of a proof; says what became of it."""
    sound = problems[rng.integers(len(problems))]
    path = folder / "proof.npz"
    sound.result.save_proof(path)
    if rng.random() < 0.2:
        path.write_bytes(damaged(rng, path.read_bytes()))
    else:
        with np.load(path) as archive:
            arrays = dict(archive)
        for _ in range(int(rng.choice([1, 1, 2]))):
            with contextlib.suppress(TypeError, ValueError, LookupError):  # of no use together
                arrays = changed_arrays(rng, arrays)
        path.write_bytes(packed(rng, arrays))
    # What the model claims may be as false as what the proof is said to prove.
    claim = sound.result.dual_objective + float(rng.choice([0.0, 0.0, 1e-8, 1e-3, -1.0]))
    result = replace(sound.result, dual_objective=claim)
    verdict = one_line(lambda: sound.verify(result, path))
    if verdict is None:
        raise Failure("an error where a verdict was expected")
    if "\n" in verdict.reason or not verdict.reason:
        raise Failure(f"not one line: {verdict.reason!r:.200}")
    if not verdict.lower <= sound.least:
        raise Failure(f"{sound.name}: {verdict.lower} is above {mp.nstr(sound.least, 20)}")
    if not verdict.upper >= sound.worst:
        raise Failure(f"{sound.name}: {verdict.upper} is below the worst case")
    return "accepted" if verdict.ok else verdict.reason.partition(":")[0].partition(" proves")[0]


# --- mutants of model files --------------------------------------------------------------------


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


# --- fits of awkward data ------------------------------------------------------------------------


def try_fit(rng: Rng, sound: None, folder: Path) -> str:
    """One honest fit, which must be accepted."""
    case = awkward(rng)
    result = stated.solve(**case)
    by_sample = case["kappa"] if np.ndim(case["kappa"]) else None
    weights = case.get("sample_weight")
    verdict = drlogit.verify(
        result, case["X"], case["y"], sample_weight=weights, kappa=by_sample
    )  # fmt: skip
    if not verdict.ok or verdict.lower > verdict.upper:
        raise Failure(f"{result}: {verdict}")
    return "accepted"


def run(
    kind: str, count: int, first: int, attempt: Callable[[Rng, Any, Path], str], sound: Any
) -> int:
    """Try so many mutants; print what became of them, and every failure."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for k in range(first, first + count):
            try:
                outcomes[attempt(np.random.default_rng([k, len(kind)]), sound, Path(folder))] += 1
            except Failure as error:
                outcomes["FAILED"] += 1
                print(f"{kind} {k}: {error}", flush=True)
    print(f"{count} {kind}: " + ", ".join(f"{n} {each}" for each, n in outcomes.most_common()))
    return outcomes["FAILED"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for kind in ("models", "proofs", "fits"):
        parser.add_argument(f"--{kind}", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    failed = run("estimators", given.models, given.first, try_model, sound_models())
    failed += run("proofs", given.proofs, given.first, try_proof, sound_problems())
    failed += run("fits", given.fits, given.first, try_fit, None)
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
