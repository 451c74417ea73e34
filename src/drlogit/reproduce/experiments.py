"""Which tasks make up each table and figure, in full and quick."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from . import paper
from .accuracy import DRLR, MODELS, PLAIN, RLR, Model, Trial
from .curves import METHODS as CURVES
from .curves import Curve
from .data import synthetic
from .speed import (
    ADAPTIVE,
    CLARABEL,
    CONSTANT,
    INTERIOR_POINT,
    IPOPT,
    PUBLISHED_ADAPTIVE,
    PUBLISHED_CONSTANT,
    Method,
    Speed,
)
from .tasks import Task


class Extent(NamedTuple):
    """How much of an experiment is done; seconds are those of the processor.

    ``limit`` is for one run, ``budget`` for all trials of a method on a data set, begun before it
    is used up.
    """

    data: tuple[str, ...]
    trials: int
    limit: float = 0.0
    budget: float = 0.0


SIZES = tuple(synthetic(*size) for size in paper.TABLE_1)

#: Of Figure 3; the paper does not say which sizes its six panels have.
PANELS = tuple(
    synthetic(*size)
    for size in ((100, 10), (500, 10), (1000, 50), (3000, 50), (5000, 100), (10000, 100))
)

SYNTHETIC_METHODS = (
    INTERIOR_POINT, ADAPTIVE, CONSTANT, PUBLISHED_ADAPTIVE, PUBLISHED_CONSTANT, CLARABEL, IPOPT
)  # fmt: skip
REAL_METHODS = (INTERIOR_POINT, ADAPTIVE, CONSTANT, PUBLISHED_ADAPTIVE, CLARABEL, IPOPT)

FULL = {
    "table1": Extent(SIZES, paper.TRIALS, limit=60.0, budget=20.0),
    "table2": Extent(tuple(paper.TABLE_2), 3, limit=120.0, budget=6.0),
    "figure3": Extent(PANELS, 1),
    "table3": Extent(tuple(paper.TABLE_3), paper.TRIALS),
    "table4": Extent(tuple(paper.TABLE_4), 3, limit=40.0, budget=6.0),
}
QUICK = {
    "table1": Extent(SIZES[:6], 3, limit=3.0, budget=1.0),
    "table2": Extent(tuple(paper.TABLE_2)[:3], 1, limit=3.0, budget=1.0),
    "figure3": Extent(PANELS[:3], 1),
    "table3": Extent(("a1a", "a2a", "mnist-0v3"), 2),
    "table4": Extent(("mushrooms", "phishing", "w1a", "w2a"), 1, limit=3.0, budget=1.0),
}

#: Iterations of a curve in Figure 3.
ITERATIONS, QUICK_ITERATIONS = 2000, 300

#: Trials of Table 3 go in rounds, so that a run stopped early knows something of every set.
_ROUND = 10


def table1(quick: bool) -> list[Task]:
    """Synthetic data of twelve sizes; every trial is another sample."""
    return _speed("table1", SYNTHETIC_METHODS, quick)


def table2(quick: bool) -> list[Task]:
    """UCI Adult in nine sizes."""
    return _speed("table2", REAL_METHODS, quick)


def table4(quick: bool) -> list[Task]:
    """The other real data sets."""
    return _speed("table4", REAL_METHODS, quick)


def figure2(quick: bool) -> list[Task]:
    """The times of Tables 1 and 2, drawn."""
    return table1(quick) + table2(quick)


def figure3(quick: bool) -> list[Task]:
    """Convergence at fixed λ."""
    iterations = QUICK_ITERATIONS if quick else ITERATIONS
    extent = _extent("figure3", quick)
    return [Curve("figure3", data, method, iterations) for data in extent.data for method in CURVES]


def table3(quick: bool) -> list[Task]:
    """Test accuracy, with the searches that trials need before the first of them."""
    extent = _extent("table3", quick)
    tasks: dict[Task, None] = {}
    for begin in range(0, extent.trials, _ROUND):
        for data in extent.data:
            for number in range(begin, min(begin + _ROUND, extent.trials)):
                for model in models_of(data, quick):
                    trial = Trial("table3", data, model.name, model.strengths, model.kappas, number)
                    tasks.update(dict.fromkeys((*trial.searches, trial)))
    return list(tasks)


def models_of(data: str, quick: bool) -> Sequence[Model]:
    """The models of Table 3; a quick run does not search where a search takes minutes."""
    return (PLAIN, RLR, DRLR) if quick and data.startswith("mnist") else MODELS


#: In the order of the page.
EXPERIMENTS: dict[str, Callable[[bool], list[Task]]] = {
    "table1": table1,
    "table2": table2,
    "figure2": figure2,
    "figure3": figure3,
    "table3": table3,
    "table4": table4,
}


def tasks_of(names: Iterable[str], quick: bool) -> list[Task]:
    """The tasks of some experiments, each once."""
    return list(dict.fromkeys(task for name in names for task in EXPERIMENTS[name](quick)))


def _extent(name: str, quick: bool) -> Extent:
    return (QUICK if quick else FULL)[name]


def _speed(name: str, methods: Sequence[Method], quick: bool) -> list[Task]:
    """Methods take turns within a trial, so that all meet the same disturbances."""
    extent = _extent(name, quick)
    return [
        Speed.of(name, data, method, trial, extent.limit, extent.budget)
        for data in extent.data
        for trial in range(extent.trials)
        for method in methods
    ]
