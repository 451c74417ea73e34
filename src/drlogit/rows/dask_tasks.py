"""Tasks of Dask, on a cluster or by one of the schedulers in this process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import dask
from dask import delayed

from .reductions import Reduction, merge_reductions

Delayed: TypeAlias = Any

#: Reductions combined by one task of the tree.
_FAN_IN = 8


def unique(name: str) -> str:
    """A key, or the beginning of one, that no other task has."""
    return f"drlogit-{name}-{uuid.uuid4().hex[:16]}"


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """A call of a function."""
    name = getattr(function, "__name__", "task").strip("_<>")
    return delayed(function, pure=False)(*arguments, dask_key_name=unique(name))


def literal(value: Any) -> Delayed:
    """A value of this process."""
    return delayed(value, name=unique("value"), traverse=False)


def kept(tasks: Iterable[Delayed]) -> tuple[Delayed, ...]:
    """The same tasks, begun, whose results stay where they are for as long as anybody asks."""
    return tuple(dask.persist(*tasks, optimize_graph=False))


def fetched(tasks: Sequence[Delayed]) -> tuple[Any, ...]:
    """The results of tasks that are kept."""
    try:
        from distributed import futures_of, get_client

        cluster = get_client()
    except (ImportError, ValueError):  # a scheduler in this process
        return tuple(dask.compute(*tasks))
    # Without another graph, which would take as long as the first.
    return tuple(cluster.gather(futures_of(list(tasks))))


def combined(parts: list[Delayed]) -> Delayed:
    """Reductions combined in a tree, a few at a time."""
    while len(parts) > 1:
        parts = [task(_combine, *parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
    return parts[0]


def _combine(*parts: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return reduce(merge_reductions, parts)
