"""Generated problems of every awkward kind: each must end certified, and keep the rules.

    python -m benchmarks.stress [--of numbers …] [--first 0] [--problems 600] [--judged 0] [--rules]

The kinds are those of ``problems.py``.  Prints one line per problem that was not certified, and
totals per kind.  Of so many certified problems as ``--judged`` says, the bound is compared with
values of models in fifty digits.  With ``--rules``, fits of samples in memory are held to these:

* no warning, no NaN; the status says how the fit ended; nothing that was handed over is changed;
* ``verify``, which shares no code with the certificate, comes to the same conclusion;
* one thread gives the same bits again; the objective does not depend on the order of the rows, on
  storage or on threads; from the model of a similar problem it is found again, up to ``tol``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

import drlogit

from .false_bounds import falsehoods
from .problems import NORMS, SOURCES, Generated

TOL = 1e-6


def strict(problem: Generated, **others: Any) -> drlogit.Result:
    """A fit in which every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return problem.solve(**others)


def digest(problem: Generated) -> Any:
    """Of everything that is handed over."""
    X = problem.X
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else X
    return joblib.hash((parts, problem.y, problem.options))


def check(problem: Generated) -> drlogit.Result:
    """Hold a fit to the rules, and to one of the comparisons, chosen by the data."""
    before = digest(problem)
    result = strict(problem)
    assert digest(problem) == before, "the input was changed"
    scalars = [result.lam, result.objective, result.dual_objective, result.gap]
    for numbers in (result.coef, result.intercept, result.flip_share, scalars):
        assert np.isfinite(numbers).all(), f"not finite: {result}"
    assert result.gap >= 0.0
    assert result.converged == (result.gap <= TOL), f"{result} does not say how it ended"
    by_sample = {"sample_weight": problem.options.get("sample_weight")}
    if np.ndim(kappa := problem.options["kappa"]):
        by_sample["kappa"] = kappa
    if np.abs(result.coef).max(initial=0.0) < 1e150:  # beyond, proofs are refused
        found = drlogit.verify(result, problem.X, problem.y, **by_sample)
        assert found.ok, f"{result} is not proven: {found.reason}"
    if result.converged:
        COMPARED[int(before[:8], 16) % len(COMPARED)](problem, result)
    return result


def same(problem: Generated, result: drlogit.Result, **others: Any) -> None:
    """Another fit of the same problem has the same value, if both are certified."""
    other = strict(problem, **others)
    difference = abs(other.objective - result.objective)
    assert not other.converged or difference <= TOL, f"objectives differ by {difference:.1e}"


def again(problem: Generated, result: drlogit.Result) -> None:
    one, other = (strict(problem, n_jobs=1) for _ in range(2))
    assert (one.coef == other.coef).all(), "a second run gives other bits"
    assert one.dual_objective == other.dual_objective, "a second run gives another bound"


def ordered(problem: Generated, result: drlogit.Result) -> None:
    order = np.random.default_rng(0).permutation(problem.y.size)
    options = problem.options
    moved = {k: options[k][order] for k in ("sample_weight", "kappa") if np.ndim(options.get(k))}
    X = sp.csr_array(problem.X)[order] if sp.issparse(problem.X) else problem.X[order]
    same(replace(problem, X=X, y=problem.y[order], options=options | moved), result)


def stored(problem: Generated, result: drlogit.Result) -> None:
    X = problem.X.toarray() if sp.issparse(problem.X) else np.asfortranarray(problem.X)
    same(replace(problem, X=X), result)


def threads(problem: Generated, result: drlogit.Result) -> None:
    same(problem, result, n_jobs=2)


def started(problem: Generated, result: drlogit.Result) -> None:
    """From the model of another radius, norm, or other weights."""
    rng, options = np.random.default_rng(problem.y.size), problem.options
    others = (
        {"epsilon": options["epsilon"] * 2.0 ** rng.uniform(-1.0, 1.0)},
        {"norm": rng.choice([norm for norm in NORMS if norm != options["norm"]])},
        {"sample_weight": rng.integers(1, 4, problem.y.size)},
    )
    # As on a path, where starts are taken on smaller data: it is said how far they are.
    start = replace(strict(problem, **others[rng.integers(3)]), info={"spread": 0.5})
    found = strict(problem, start=start)
    assert found.converged, f"lost from a start: {found}"
    assert abs(found.objective - result.objective) <= TOL, "from a start it differs"


COMPARED = (again, ordered, stored, threads, started)


def main() -> None:
    """Run the problems and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--of", choices=SOURCES, nargs="+", default=["numbers"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--judged", type=int, default=0)
    parser.add_argument("--tol", type=float, default=TOL)
    parser.add_argument("--rules", action="store_true")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    iterations: list[int] = []
    judged = false = broken = 0
    started = time.perf_counter()
    numbers = range(arguments.first, arguments.first + arguments.problems)
    for of, k in ((of, k) for of in arguments.of for k in numbers):
        problem = SOURCES[of](k)
        if problem is None or (of == "extreme" and not _both_weigh(problem)):
            continue
        options = problem.options
        try:
            held = arguments.rules and not problem.chunk
            result = check(problem) if held else problem.solve(tol=arguments.tol)
        except Exception as error:  # whatever it is, it is what we are looking for
            broken += 1
            print(f"BROKEN {of} {k}: {type(error).__name__}: {error}", flush=True)
            continue
        totals[problem.kind] += 1
        iterations.append(result.n_iter)
        if result.gap > arguments.tol:
            failed[problem.kind] += 1
            kappa = f"{options['kappa']:g}" if np.isscalar(options["kappa"]) else "many"
            print(
                f"{k:5d} {problem.kind:15s} {problem.X.shape} epsilon={options['epsilon']:g}"
                f" kappa={kappa} norm={options['norm']} intercept={options['fit_intercept']}"
                f" gap {result.gap:.1e} after {result.n_iter}: {result.status.name}",
                flush=True,
            )
        elif judged < arguments.judged:
            judged += 1
            dense = problem.X.toarray() if sp.issparse(problem.X) else problem.X
            false += bool(falsehoods(replace(problem, X=dense), result))
    print(
        f"{totals.total()} problems in {time.perf_counter() - started:.0f} s,"
        f" tol {arguments.tol:g}:"
        f" {totals.total() - failed.total()} certified, {false} of {judged} judged false;"
        f" {broken} rules broken;"
        f" iterations mean {np.mean(iterations):.2f}, 99 % {np.quantile(iterations, 0.99):.0f},"
        f" most {max(iterations)}"
    )
    for kind in sorted(totals):
        print(f"  {kind:15s} {totals[kind] - failed[kind]:4d} of {totals[kind]}")
    raise SystemExit(bool(false or broken))


def _both_weigh(problem: Generated) -> bool:
    """Other data are refused."""
    weights = problem.options.get("sample_weight", np.ones(problem.y.size))
    return all(weights[problem.y == label].any() for label in (-1, 1))


if __name__ == "__main__":
    main()
