"""Generated problems of every awkward kind: each must end certified, or refused in words.

    python -m benchmarks.torture [--seconds 600] [--seed 0]        # make stress

Hypothesis draws data (sizes, scales, duplicates, contradictions, subnormal numbers), their storage
(single precision, Fortran order, views, read-only, sparse in every format and disorder), weights,
costs, ε, κ and norm.  Every second problem is of the kind on which Newton steps go astray: nearly
separable, few samples for each coefficient, ε small.  For each problem:

* no warning, no NaN, no exception but a ``ValueError`` of one line;
* the certified gap is within ``tol``, or the status says in words that it is not;
* only features that agree but for rounding, or are next to nothing, may be said to be beyond what
  doubles can tell apart;
* what is left open so is not certified by the conic solver either, where that can be asked;
* nothing that was handed over is changed;
* the objective does not depend on the order of the rows, on storage or on threads, beyond ``tol``;
* a second run gives the same bits, with one thread;
* started from the model of a similar problem (another radius, flip cost, norm, other weights, fewer
  samples) it is certified as well; those that take an iteration more than from nothing, or two, are
  counted;
* the critical radius is finite, and that of the data in other units is the same in those units;
* from there on penalised coefficients are exactly zero, and a model without them is no worse;
* ``verify``, which shares no code with the certificate, comes to the same conclusion.

Besides: problems with categories and bounds (:mod:`benchmarks.domain_cases`), whose certificates
are verified likewise, worst-case distributions of generated models
(:mod:`benchmarks.worst_cases`), fits from many threads at once, and interrupts at random moments.
A problem that breaks a rule is shrunk by Hypothesis and printed; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

import drlogit
from benchmarks import stated
from benchmarks.domain_cases import domain_case
from benchmarks.environment import thread_limits
from benchmarks.judge import conic_solution
from benchmarks.worst_cases import WORST_CASES, WorstCase, check_worst_case, powers
from drlogit.dual.certify import certify

TOL = 1e-6
#: Problems of one round; between rounds the clock is looked at.
ROUND = 40

SHAPES = (
    "plain", "separable", "duplicated rows", "contradictory rows", "duplicated columns",
    "zero columns", "constant column", "sorted labels", "few positives", "subnormal",
    "nearly separable", "zero rows and columns", "columns in two units",
)  # fmt: skip

#: Where the features are such that doubles may not resolve them.
BEYOND = ("columns in two units", "subnormal")

STORAGES = (
    "C", "F", "float32", "rows reversed", "every second column", "read-only", "list", "csr", "csc",
    "coo", "csr, 64-bit indices", "csr, unsorted", "csr, duplicate entries",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What was drawn; the data follow from it."""

    seed: int
    n_samples: int
    n_features: int
    shape: str
    storage: str
    scale: float
    spread: float
    weights: str
    costs: str
    epsilon: float
    kappa: float
    norm: str
    fit_intercept: bool
    in_units: bool = True


#: Entries of X up to which the conic solver is asked about a problem left open.
CONIC_LIMIT = 100_000

#: Samples: few mostly, thousands now and then.
SIZES = st.one_of(st.integers(1, 12), st.integers(13, 300), st.integers(301, 5000))

CASES = st.builds(
    Case,
    seed=st.integers(0, 2**32 - 1),
    n_samples=SIZES,
    n_features=st.one_of(st.integers(1, 5), st.integers(6, 60)),
    shape=st.sampled_from(SHAPES),
    storage=st.sampled_from(STORAGES),
    scale=powers(-8, 8),
    spread=st.sampled_from((0.0, 0.0, 2.0, 6.0)),
    weights=st.sampled_from(("none", "none", "wide", "integer", "some zero")),
    costs=st.sampled_from(("none", "none", "wide", "some immovable", "all immovable")),
    epsilon=st.one_of(st.just(0.0), powers(-6, 1), powers(-3, 0)),
    kappa=st.one_of(st.just(np.inf), powers(-1.3, 1)),
    norm=st.sampled_from(("l1", "l2", "linf")),
    fit_intercept=st.booleans(),
    in_units=st.booleans(),
)


@st.composite
def nearly_separable(draw: st.DrawFn) -> Case:
    """Half to six times as many samples as coefficients, a clear signal, ε small.

    The labels' noise is small against the margins, so coefficients grow until ε or κ stops them,
    and most samples lie where the log-loss has no curvature left.
    """
    n_features = round(draw(powers(0.0, 2.7)))
    n_samples = round(n_features * draw(powers(-0.3, 0.8)))
    return Case(
        seed=draw(st.integers(0, 2**32 - 1)),
        n_samples=min(max(n_samples, 3), 1000),
        n_features=n_features,
        shape=draw(st.sampled_from(("plain", "nearly separable", "zero rows and columns"))),
        storage="C",
        scale=1.0,
        spread=draw(st.sampled_from((0.0, 0.0, 3.0, 6.0))),
        weights=draw(st.sampled_from(("none", "none", "integer", "some zero"))),
        costs="none",
        epsilon=draw(powers(-5.0, -1.5)),
        kappa=draw(st.one_of(st.just(np.inf), powers(-1.0, 1.3), powers(-1.0, 1.3))),
        norm=draw(st.sampled_from(("l1", "l2", "linf"))),
        fit_intercept=draw(st.booleans()),
    )


def data(case: Case) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]]:
    """X (dense, double), y and the arguments of ``solve``."""
    rng = np.random.default_rng(case.seed)
    shape = (case.n_samples, case.n_features)
    X = rng.standard_normal(shape)
    if case.storage.startswith(("cs", "coo")):
        X *= rng.random(shape) < 0.3
    noise = rng.logistic(size=case.n_samples)
    noise *= {"separable": 0.0, "nearly separable": 0.1}.get(case.shape, 1.0)
    if case.shape == "zero rows and columns":
        X[:, rng.random(case.n_features) < 0.5] = 0.0
        X[rng.random(case.n_samples) < 0.3] = 0.0
    y = np.where(X @ rng.standard_normal(case.n_features) + noise > 0.0, 1, -1)
    half = case.n_samples // 2
    if case.shape in ("duplicated rows", "contradictory rows"):
        X[half : 2 * half] = X[:half]
        y[half : 2 * half] = y[:half] * (-1 if case.shape == "contradictory rows" else 1)
    elif case.shape in ("duplicated columns", "columns in two units"):
        X[:, case.n_features // 2 :] = X[:, :1]
    elif case.shape == "zero columns":
        X[:, rng.random(case.n_features) < 0.5] = 0.0
    elif case.shape == "constant column":
        X[:, 0] = 1.0
    elif case.shape == "sorted labels":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif case.shape == "few positives":
        y = np.where(rng.random(case.n_samples) < 0.02, 1, -1)
    units = 10.0 ** rng.uniform(-case.spread / 2, case.spread / 2, case.n_features)
    if case.shape == "duplicated columns":
        units = np.exp2(np.rint(np.log2(units)))  # copies without rounding
    X = X * case.scale * units
    if case.shape == "subnormal":
        X[rng.random(shape) < 0.2] *= 1e-310
    if case.storage == "float32":
        X = X.astype(np.float32).astype(np.float64)  # all storages hold the same numbers
    unit = case.scale if case.in_units else 1.0
    options: dict[str, Any] = {
        "epsilon": case.epsilon * unit, "kappa": case.kappa * unit, "norm": case.norm,
        "fit_intercept": case.fit_intercept,
    }  # fmt: skip
    if case.weights == "wide":
        options["sample_weight"] = 10.0 ** rng.uniform(-12, 0, case.n_samples)
    elif case.weights != "none":
        low = 0 if case.weights == "some zero" else 1
        options["sample_weight"] = rng.integers(low, 4, case.n_samples)
    if case.costs == "all immovable":
        options["feature_costs"] = np.full(case.n_features, np.inf)
    elif case.costs != "none":
        costs = 10.0 ** rng.uniform(-6, 6, case.n_features)
        if case.costs == "some immovable":
            costs = np.where(rng.random(case.n_features) < 0.3, np.inf, 1.0)
        options["feature_costs"] = costs
    return X, y, options


def stored(X: np.ndarray[Any, Any], storage: str, rng: np.random.Generator) -> Any:
    """The same numbers in another form."""
    if storage == "F":
        return np.asfortranarray(X)
    if storage == "float32":
        return X.astype(np.float32)
    if storage == "rows reversed":
        return X[::-1].copy()[::-1]
    if storage == "every second column":
        return np.repeat(X, 2, axis=1)[:, ::2]
    if storage == "list":
        return X.tolist()
    if storage == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if storage in ("csr", "csc", "coo"):
        return getattr(sp, f"{storage}_array")(X)
    if storage.startswith("csr,"):
        return disordered(sp.csr_array(X), storage, rng)
    return X


def disordered(matrix: Any, storage: str, rng: np.random.Generator) -> Any:
    """A CSR matrix with long indices, columns out of order, or entries in two parts."""
    indices, indptr, values = matrix.indices, matrix.indptr, matrix.data
    if storage == "csr, 64-bit indices":
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    elif storage == "csr, unsorted":
        order = np.concatenate(
            [start + rng.permutation(stop - start) for start, stop in pairwise(indptr)]
        )
        indices, values = indices[order], values[order]
    else:  # halves add up without rounding
        indices, values = np.repeat(indices, 2), np.repeat(0.5 * values, 2)
        indptr = 2 * indptr
    result = sp.csr_array((values, indices, indptr), shape=matrix.shape)
    result.has_canonical_format = False
    result.has_sorted_indices = storage != "csr, unsorted"
    return result


def digest(*values: Any) -> str:
    """Of everything handed over."""
    total = hashlib.sha256()
    for value in values:
        if sp.issparse(value) and value.format == "coo":
            parts = [value.data, value.row, value.col]
        elif sp.issparse(value):
            parts = [value.data, value.indices, value.indptr]
        else:
            parts = [np.asarray(value)]
        for part in parts:
            total.update(str((part.dtype, part.shape)).encode() + part.tobytes())
    return total.hexdigest()


def bits(result: drlogit.Result) -> bytes:
    """All numbers of a result."""
    scalars = [result.intercept, result.lam, result.objective, result.dual_objective]
    return b"".join(np.asarray(v).tobytes() for v in (result.coef, scalars, result.flip_share))


@dataclass
class Totals:
    """What happened so far."""

    ended: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    open_cases: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    slower: list[str] = field(default_factory=list)
    checks: Counter[str] = field(default_factory=Counter)

    def leave(self, result: drlogit.Result, case: Case, line: str) -> str:
        """Take note of a result that is not certified: how it ended."""
        if case.shape in BEYOND:
            return "beyond the class"
        self.open_cases.append(line)
        return "not certified"


def solve(X: Any, y: Any, options: dict[str, Any]) -> drlogit.Result:
    """A fit in which every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return stated.solve(X, y, tol=TOL, **options)


def conic_certifies(X: Any, y: Any, options: dict[str, Any]) -> bool:
    """Whether somebody else can do it; what cvxpy and Clarabel warn of is no concern of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = conic_solution(X, y, tol=TOL, **options)
            problem = stated.problem(X, y, **options)
            model = problem.join(found.coef, found.intercept)
            return certify(problem, model, point=problem.rows.scatter(found.flip_share)).gap <= TOL
        except (ValueError, ArithmeticError):  # as cvxpy's: data or result not finite
            return False


def check(case: Case, totals: Totals) -> None:
    """Solve a case and hold the answer to the rules."""
    rng = np.random.default_rng(case.seed)
    dense, y, options = data(case)
    X = stored(dense, case.storage, rng)
    arrays = [X, y, *(v for v in options.values() if isinstance(v, np.ndarray))]
    before = digest(*arrays)
    try:
        result = solve(X, y, options)
    except ValueError as error:
        message = str(error)
        assert message, "a refusal says why"
        assert "\n" not in message, f"a refusal takes one line: {message!r}"
        few = np.unique(y).size < 2 or not _both_classes_weigh(y, options)
        assert few, f"refused without a reason: {message}"
        totals.ended["refused"] += 1
        totals.refusals[message.partition(",")[0]] += 1
        return
    assert digest(*arrays) == before, "the input was changed"
    numbers = np.concatenate(
        [result.coef, result.flip_share,
         [result.intercept, result.lam, result.objective, result.dual_objective, result.gap]]
    )  # fmt: skip
    assert np.isfinite(numbers).all(), f"not finite: {result}"
    assert result.gap >= 0.0
    assert result.converged == (result.gap <= TOL), f"{result} does not say how it ended"
    if not result.converged:
        line = f"gap {result.gap:.1e}, {result.status.name}: {case}"
        totals.ended[totals.leave(result, case, line)] += 1
        if dense.size <= CONIC_LIMIT and conic_certifies(X, y, options):
            totals.given_up.append(line)
        return
    totals.ended["certified"] += 1
    check_proof(result, X, y, options)
    # One comparison for each case: together they would take most of the time.
    kinds = ("again", "order", "storage", "threads", "critical radius", "start")
    kind = kinds[int(digest(repr(case))[:4], 16) % len(kinds)]
    totals.checks[kind] += 1
    if kind == "critical radius":
        check_critical_radius(dense, y, options, case, totals)
        return
    if kind == "start":
        check_start(result, dense, y, options, totals, rng)
        return
    if kind == "again":
        assert bits(solve(X, y, options)) == bits(result), "a second run gives other bits"
        return
    if kind == "order":
        order = rng.permutation(y.size)
        moved = dict(options)
        if "sample_weight" in moved:
            moved["sample_weight"] = moved["sample_weight"][order]
        other = solve(dense[order], y[order], moved)
    elif kind == "storage":
        other = solve(dense, y, options)
    else:
        other = solve(X, y, options | {"n_jobs": 2})
    if other.converged:
        difference = abs(other.objective - result.objective)
        assert difference <= TOL, f"{kind}: objectives differ by {difference:.1e}"
    else:
        line = f"gap {other.gap:.1e}, {other.status.name}, after {kind}: {case}"
        totals.leave(other, case, line)


def check_start(
    cold: drlogit.Result,
    X: np.ndarray[Any, Any],
    y: np.ndarray[Any, Any],
    options: dict[str, Any],
    totals: Totals,
    rng: np.random.Generator,
) -> drlogit.Result:
    """The fit from the model of a similar problem, beside the one from nothing."""
    like = dict(options)
    rows = np.arange(y.size)
    changed = ("epsilon", "kappa", "norm", "sample_weight", "samples")[rng.integers(5)]
    if changed in ("epsilon", "kappa"):
        like[changed] = like[changed] * 2.0 ** rng.uniform(-1.0, 1.0)
    elif changed == "norm":
        like[changed] = rng.choice([norm for norm in ("l1", "l2", "linf") if norm != like["norm"]])
    elif changed == "sample_weight":
        like[changed] = rng.integers(1, 4, y.size)
    else:
        rows = np.sort(rng.permutation(rows)[: 1 + 4 * y.size // 5])
        weights = like.pop("sample_weight", np.ones(y.size))[rows]
        if not all(weights[y[rows] == label].any() for label in (-1, 1)):
            return cold
        like["sample_weight"] = weights
    start = solve(X[rows], y[rows], like)
    # As on a path, where starts are taken on smaller data: it is said how far they are.
    start = replace(start, info={"spread": 0.5})
    found = solve(X, y, {**options, "start": start})
    assert found.converged, f"lost from a start of another {changed}: {found}"
    difference = abs(found.objective - cold.objective)
    assert difference <= TOL, f"from a start of another {changed}: differs by {difference:.1e}"
    if found.n_iter > cold.n_iter:
        totals.slower.append(f"{cold.n_iter} iterations, {found.n_iter} by another {changed}")
    return found


def check_proof(result: drlogit.Result, X: Any, y: Any, options: dict[str, Any]) -> None:
    """Who shares no code with the certificate must come to the same conclusion."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = drlogit.verify(result, X, y, sample_weight=options.get("sample_weight"))
    assert found.ok, f"{result} is not proven: {found.reason}"


def check_critical_radius(
    X: np.ndarray[Any, Any],
    y: np.ndarray[Any, Any],
    options: dict[str, Any],
    case: Case,
    totals: Totals,
) -> None:
    """``epsilon_max`` of a case: in other units, and what the model is from there on."""
    model = {name: value for name, value in options.items() if name != "epsilon"}
    unit = 2.0**12 * 1.1
    size = float(np.abs(X).max(initial=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limit = stated.epsilon_max(X, y, **model)
        other = stated.epsilon_max(unit * X, y, **{**model, "kappa": unit * model["kappa"]}) / unit
    assert np.isfinite(limit), f"epsilon_max is {limit}"
    assert limit <= 0.5 * model["kappa"] * (1.0 + 1e-5), f"epsilon_max {limit} is above kappa / 2"
    # Sums that cancel are known to the rounding of their terms.
    costs = np.asarray(model.get("feature_costs", 1.0))
    noise = 1e-13 * size * float(np.where(np.isinf(costs), 0.0, costs).max(initial=0.0))
    assert abs(other - limit) <= 1e-4 * limit + noise, f"in other units {other}, not {limit}"
    radius = max(2.0 * limit, 1e-3 * size)
    if radius == 0.0:
        return
    above = solve(X, y, {**options, "epsilon": radius})
    if not above.converged:
        line = f"gap {above.gap:.1e}, {above.status.name}, at {radius:.4g}: {case}"
        totals.leave(above, case, line)
        return
    penalised = ~np.isinf(costs) if costs.ndim else np.ones(X.shape[1], dtype=bool)
    found = above.coef[penalised]
    assert not found.any(), f"{np.abs(found).max():.1e} at {radius:.4g}, critical is {limit:.4g}"


def _both_classes_weigh(y: np.ndarray[Any, Any], options: dict[str, Any]) -> bool:
    weights = options.get("sample_weight", np.ones(y.size))
    return all(weights[y == label].any() for label in (-1, 1))


def check_distribution(case: WorstCase, totals: Totals) -> None:
    """Hold a worst-case distribution to its ball and its supremum."""
    check_worst_case(case)
    totals.checks["worst case"] += 1


def check_domains(number: int, totals: Totals) -> None:
    """Hold a problem with domains to the rules, as far as they do not depend on storage."""
    X, y, options = domain_case(number)
    result = solve(X, y, options)
    assert result.gap >= 0.0
    assert result.converged == (result.gap <= TOL), f"{result} does not say how it ended"
    check_proof(result, X, y, options)
    totals.checks["with domains"] += 1
    if not result.converged:
        totals.open_cases.append(f"gap {result.gap:.1e}, {result.status.name}, domains: {number}")


def rounds(
    totals: Totals,
    first_seed: int,
    deadline: float,
    cases: st.SearchStrategy[Any],
    check: Callable[[Any, Totals], None],
) -> None:
    """Rounds of generated cases until the time is up."""
    number = first_seed
    while time.monotonic() < deadline:

        @hypothesis_seed(number)
        @settings(max_examples=ROUND, deadline=None, database=None, print_blob=False,
                  report_multiple_bugs=False, suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(cases)
        def attempt(case: Any) -> None:
            if time.monotonic() < deadline:
                check(case, totals)

        try:
            attempt()
        except Exception as error:  # whatever it is, it is what we are looking for
            notes = " ".join(getattr(error, "__notes__", []))
            totals.broken.append(f"{type(error).__name__}: {error} {notes}")
            print(f"BROKEN {totals.broken[-1]}", flush=True)
        number += 1


def small(seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """A problem that takes some milliseconds."""
    X, y = drlogit.datasets.make_synthetic(400, 12, random_state=seed)
    return X, y, {"epsilon": 0.05, "kappa": 1.0, "norm": ("l1", "l2", "linf")[seed % 3]}


def concurrent(totals: Totals) -> None:
    """Fits from eight threads at once give the bits that they give alone."""
    problems = [small(seed) for seed in range(24)]
    alone = [bits(stated.solve(X, y, **options)) for X, y, options in problems]
    with ThreadPoolExecutor(8) as pool:
        together = pool.map(lambda p: bits(stated.solve(p[0], p[1], **p[2])), problems)
        for k, found in enumerate(together):
            totals.checks["concurrent"] += 1
            if found != alone[k]:
                totals.broken.append(f"concurrent fit {k} differs from the one alone")


def interrupted(totals: Totals) -> None:
    """Ctrl-C at random moments changes neither the data nor the next fit."""
    if not hasattr(signal, "setitimer"):
        return  # not on Windows
    X, y = drlogit.datasets.make_synthetic(20_000, 40, random_state=0)
    options: dict[str, Any] = {"epsilon": 0.05, "kappa": 1.0}
    before, expected = digest(X, y), bits(stated.solve(X, y, **options))
    started = time.perf_counter()
    stated.solve(X, y, **options)
    length = time.perf_counter() - started
    rng = np.random.default_rng(0)
    previous = signal.signal(signal.SIGALRM, _as_ctrl_c)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(0.02, 0.98)) * length)
            try:
                stated.solve(X, y, **options)
            except KeyboardInterrupt:
                totals.checks["interrupted"] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    if digest(X, y) != before:
        totals.broken.append("an interrupt left the data changed")
    if bits(stated.solve(X, y, **options)) != expected:
        totals.broken.append("an interrupt changed the fits after it")


def _as_ctrl_c(*_: Any) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.torture", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.seconds
    totals = Totals()
    with thread_limits(1):
        concurrent(totals)
        interrupted(totals)
        part = time.monotonic() + 0.1 * arguments.seconds
        rounds(totals, 1000 * arguments.seed, part, WORST_CASES, check_distribution)
        part = time.monotonic() + 0.2 * arguments.seconds
        rounds(totals, 1000 * arguments.seed, part, st.integers(0, 2**32 - 1), check_domains)
        fits = st.one_of(CASES, nearly_separable())
        rounds(totals, 1000 * arguments.seed, deadline, fits, check)
    print(f"{totals.ended.total()} problems: " + ", ".join(
        f"{count} {name}" for name, count in totals.ended.most_common()))  # fmt: skip
    print("refused: " + "; ".join(f"{n} × {m}" for m, n in totals.refusals.most_common()))
    print("compared: " + ", ".join(f"{n} {m}" for m, n in totals.checks.most_common()))
    for line in totals.slower:
        print(f"SLOWER FROM A START {line}")
    for line in totals.open_cases:
        print(f"NOT CERTIFIED {line}")
    for line in totals.given_up:
        print(f"CERTIFIED BY CONIC {line}")
    print(
        f"{len(totals.broken)} rules broken, {len(totals.open_cases)} fits not certified,"
        f" {len(totals.given_up)} of them certified by the conic solver"
    )
    sys.exit(1 if totals.broken or totals.given_up else 0)


if __name__ == "__main__":
    main()
