"""Doing what has no row yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from .tasks import Obstacle, Results, Task
from .worker import WorkerDiedError

Say = Callable[[str], None]


def run(tasks: Sequence[Task], results: Results, say: Say) -> int:
    """Do the tasks that are not done, in order; how many that were.

    A task that is out of memory gives no row, so that it is tried again next time; the others go
    on.
    """
    count, started = 0, time.monotonic()
    told: set[Obstacle] = set()
    for index, task in enumerate(tasks, start=1):
        if task in results:
            continue
        head = f"{task.experiment} {index}/{len(tasks)} {task.data}"
        obstacle = task.obstacle(results)
        if obstacle:
            if obstacle not in told:
                told.add(obstacle)
                say(f"{head}: left out, {obstacle.long}")
            continue
        try:
            row = results.add(task, task.run(results))
        except (MemoryError, WorkerDiedError) as error:
            say(f"{head}: failed, {str(error) or 'out of memory'}")
            continue
        count += 1
        say(f"{head}: {task.line(row)} [{(time.monotonic() - started) / 60.0:.1f} min]")
    return count
