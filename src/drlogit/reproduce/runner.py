"""Doing what has no row yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from .tasks import Results, Task

Say = Callable[[str], None]


def run(tasks: Sequence[Task], results: Results, say: Say) -> int:
    """Do the tasks that are not done, in order; how many that were.

    A failure of one task is not a row, so it is tried again next time, and it does not keep
    the others from being done.
    """
    count, started, left_out = 0, time.monotonic(), {}
    for index, task in enumerate(tasks, start=1):
        if task in results:
            continue
        obstacle = task.obstacle(results)
        if obstacle:
            if obstacle not in left_out:
                left_out[obstacle] = task
                say(f"{task.experiment} {task.data}: left out, {obstacle}")
            continue
        row = results.add(task, task.run(results))
        count += 1
        minutes = (time.monotonic() - started) / 60.0
        say(
            f"{task.experiment} {index}/{len(tasks)} {task.data}: {task.line(row)} "
            f"[{minutes:.1f} min]"
        )
    return count
