"""What is solved: the data sets and settings of every suite."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import scipy.sparse as sp

from drlogit.datasets import make_synthetic

from .paper import datasets, published
from .paper.datasets import size_of, synthetic

#: Every real data set of the paper.
PAPER = (*published.TABLE_2, *published.TABLE_4)

#: Both N and n are large here.
WIDE = ("farm-ads", "news20")

NORMS = ("l1", "l2", "linf")
#: (ε, κ): the paper's, large, small, and labels beyond doubt.
RADII = ((0.1, 1.0), (0.3, 7.0), (0.01, 0.25), (0.001, math.inf))


@dataclass(frozen=True)
class Case:
    """One problem, and who is to solve it side by side.

    ``repeats`` counts the timed runs after a warm-up; 1 means a single run without one, for
    cases where time is not the question.  ``memory`` measures each competitor's peak in a
    process of its own instead of timing them together.
    """

    suite: str
    data: str
    competitors: tuple[str, ...]
    epsilon: float = 0.1
    kappa: float = 1.0
    norm: str = "l1"
    tol: float = 1e-6
    fit_intercept: bool = True
    storage: str = ""
    repeats: int = 5
    memory: bool = False

    def __post_init__(self) -> None:
        if not self.storage:
            object.__setattr__(self, "storage", given_storage(self.data))

    @property
    def settings(self) -> dict[str, Any]:
        """The fields that say which problem this is; a row repeats them."""
        names = "suite data storage epsilon kappa norm tol fit_intercept".split()
        return {name: getattr(self, name) for name in names}


def given_storage(data: str) -> str:
    """How a data set is stored unless asked for otherwise."""
    return "dense" if data.startswith(("mnist-", "synthetic-")) else "csr"


@functools.lru_cache(maxsize=1)  # cases of one data set follow each other
def load(data: str, storage: str) -> tuple[Any, Any]:
    """X and y by name; every competitor gets these very objects."""
    if data.startswith("synthetic-"):
        X, y = make_synthetic(*size_of(data), random_state=0)
    else:
        X, y = datasets.load(data)
    if storage == "csr" and not sp.issparse(X):
        X = sp.csr_matrix(X)
    return X, y


def paper(quick: bool) -> Iterable[Case]:
    """The paper's data sets against a plain fit."""
    for data in ("a1a", "w1a", "mushrooms", "phishing") if quick else PAPER:
        yield Case("paper", data, ("scikit-learn", "drlogit"))


def references(quick: bool) -> Iterable[Case]:
    """Other exact solvers of the same problem."""
    full = (synthetic(3000, 100), synthetic(10000, 100), "a9a")
    for data in (synthetic(500, 10), "a1a") if quick else full:
        yield Case("references", data, ("drlogit", "conic", "ipopt"))


def certified(quick: bool) -> Iterable[Case]:
    """The gap and the iterations it takes, over data sets, norms, radii and tolerances."""
    sets = ("a1a", "w1a") if quick else PAPER
    for data, norm, (epsilon, kappa), tol in product(sets, NORMS, RADII, (1e-6, 1e-8)):
        yield Case("certified", data, ("drlogit",), epsilon, kappa, norm, tol, repeats=1)


def scaling(quick: bool) -> Iterable[Case]:
    """Growing N, growing n."""
    tall = [10**k for k in range(2, 5 if quick else 7)]
    broad = (10, 30) if quick else (10, 30, 300, 1000)
    sizes = [(n_samples, 100) for n_samples in tall] + [(10_000, n) for n in broad]
    for size in sizes:
        yield Case("scaling", synthetic(*size), ("scikit-learn", "drlogit"))


def memory(quick: bool) -> Iterable[Case]:
    """How much memory a fit needs beside its data."""
    full = (synthetic(1_000_000, 100), synthetic(100_000, 100), "mnist-0v3")
    for data in (synthetic(100_000, 100),) if quick else full:
        yield Case("memory", data, ("scikit-learn", "drlogit"), repeats=1, memory=True)


def wide(quick: bool) -> Iterable[Case]:
    """More features than a dense factor can hold."""
    for data in WIDE[:1] if quick else WIDE:
        for epsilon, kappa in RADII[:1] if quick else RADII:
            yield Case("wide", data, ("scikit-learn", "drlogit"), epsilon, kappa, repeats=3)


SUITES: dict[str, Callable[[bool], Iterable[Case]]] = {
    "paper": paper,
    "references": references,
    "certified": certified,
    "scaling": scaling,
    "memory": memory,
    "wide": wide,
}


def select(
    suite: str,
    *,
    quick: bool = False,
    only: Iterable[str] = (),
    repeats: int | None = None,
) -> list[Case]:
    """The cases of a suite, those of some data sets only, repeated as asked."""
    wanted = set(only)
    # Data sets asked for by name come from the full suite, however quick the rest.
    cases = list(SUITES[suite](quick and not wanted))
    if wanted:
        cases = [case for case in cases if case.data in wanted]
    if repeats is not None:
        cases = [replace(case, repeats=min(case.repeats, repeats)) for case in cases]
    return cases
