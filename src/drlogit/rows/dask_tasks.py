"""Tasks of Dask, and where they run: on a cluster, or by one of the schedulers in this process."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import dask
import numpy as np
from dask import delayed

from .reductions import Reduction, merge_reductions
from .threads import thread_count

Delayed: TypeAlias = Any

#: Reductions combined by one task of the tree.
_FAN_IN = 8


def unique(name: str) -> str:
    """A key, or the beginning of one, that no other task has."""
    return f"drlogit-{name}-{uuid.uuid4().hex[:16]}"


def task(function: Callable[..., Any], key: str, *arguments: Any) -> Delayed:
    """A call of a function, under this key."""
    return delayed(function, pure=False)(*arguments, dask_key_name=key)


def literal(value: Any, key: str) -> Delayed:
    """A value of this process, under this key."""
    return delayed(value, name=key, traverse=False)


def kept(tasks: Sequence[Delayed]) -> tuple[Delayed, ...]:
    """The same tasks, begun, whose results stay where they are for as long as anybody asks."""
    return tuple(dask.persist(*tasks, optimize_graph=False))


def fetched(tasks: Sequence[Delayed]) -> tuple[Any, ...]:
    """The results of tasks that are kept."""
    cluster = client()
    if cluster is None:
        return tuple(dask.compute(*tasks))
    from distributed import futures_of

    # Without another graph, which would take as long as the first.
    return tuple(cluster.gather(futures_of(list(tasks))))


def compute_each(
    function: Callable[..., Any], name: str, parts: Iterable[Delayed]
) -> tuple[Any, ...]:
    """A function of each part, in this process's hands."""
    return tuple(dask.compute(*for_each(function, name, parts)))


def for_each(function: Callable[..., Any], name: str, parts: Iterable[Delayed]) -> list[Delayed]:
    """A function of each part, as tasks."""
    label = f"{name}-{function.__name__.strip('_')}"
    return [task(function, f"{label}-{k}", part) for k, part in enumerate(parts)]


def tree(parts: list[Delayed], name: str) -> Delayed:
    """Reductions combined, a few at a time."""
    level = 0
    while len(parts) > 1:
        groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
        parts = [task(_combine, f"{name}-sum-{level}-{g}", *p) for g, p in enumerate(groups)]
        level += 1
    return parts[0]


def _combine(*parts: tuple[Reduction, ...]) -> tuple[Reduction, ...]:
    return reduce(merge_reductions, parts)


def client() -> Any:
    """The client of the cluster in use; None for Dask's schedulers in this process."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def workers_of(part: Delayed) -> list[str]:
    """Addresses of the workers that keep the result of a task."""
    cluster = client()
    return [] if cluster is None else sorted(cluster.who_has(part).get(part.key, ()))


def elsewhere(workers: list[str]) -> dict[str, Any]:
    """Annotations of a task that had better not run on these workers."""
    cluster = client()
    others = [] if cluster is None else sorted(set(cluster.nthreads()) - set(workers))
    return {"workers": others, "allow_other_workers": True} if others else {}


def groups_of(blocks: Sequence[Delayed]) -> list[list[int]]:
    """Numbers of the blocks that are visited by one task: a share of those on one worker."""
    cluster = client()
    homes: dict[str, list[int]] = defaultdict(list)
    if cluster is None:
        threads, homes["here"] = {"here": thread_count()}, list(range(len(blocks)))
    else:
        threads, places = cluster.nthreads(), cluster.who_has(list(blocks))
        for k, block in enumerate(blocks):
            homes[min(places.get(block.key, ()), default="")].append(k)
    return [
        share.tolist()
        for worker, members in sorted(homes.items())
        for share in np.array_split(members, min(threads.get(worker, 1), len(members)))
    ]
