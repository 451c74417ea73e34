"""The same fit wherever the samples are: in memory, stored on a disk, on a worker of Dask.

    python -m benchmarks.places [--samples 2000000] [--features 20] [--repeat 3]

One thread each; the worker is a process of its own with Dask's settings as they come, and keeps X
and y before the clock starts: in arrays of its own, as if it had read them, and once more as the
client sent them, which mostly is at addresses that BLAS cannot read.  Processor time of both
processes and time on the wall, the least of a few runs in turns.  Rows go to
``benchmarks/results/places.jsonl``.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import drlogit
from benchmarks import stated

from . import store
from .environment import environment, thread_limits


def measured(
    X: np.ndarray[Any, Any], y: np.ndarray[Any, Any], folder: str, client: Client, repeat: int
) -> Iterator[store.Row]:
    """Rows for each ball: the fit in each place, in turns."""
    stored = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", X.dtype, X.shape)
    stored[:] = X
    chunk = -(-X.shape[0] // 8)
    sent = da.from_array(X, chunks=(chunk, -1)), da.from_array(y, chunks=chunk)
    there = client.persist([part.map_blocks(np.copy) for part in sent])
    sent = client.persist(list(sent))
    wait([there, sent])
    places = {"memory": (X, y), "stored": (stored, y), "Dask": sent, "Dask, own": there}

    def processor() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    for epsilon, kappa in ((0.02, 1.0), (0.02, math.inf)):
        options: dict[str, Any] = {"epsilon": epsilon, "kappa": kappa, "n_jobs": 1}
        best: dict[str, store.Row] = {}
        for _ in range(repeat):
            for place, (features, labels) in places.items():
                cpu, wall = processor(), time.perf_counter()
                result = stated.solve(features, labels, **options)
                wall, cpu = time.perf_counter() - wall, processor() - cpu
                before = best.get(place, {"cpu_seconds": math.inf, "seconds": math.inf})
                best[place] = {
                    "suite": "places", "data": str(X.shape), "place": place, "epsilon": epsilon,
                    "kappa": str(kappa), "cpu_seconds": min(cpu, before["cpu_seconds"]),
                    "seconds": min(wall, before["seconds"]), "visits": result.info["visits"],
                    "grams": result.info["grams"], "sample_grams": result.info["sample_grams"],
                    "objective": result.objective, "gap": result.gap,
                    "threads": 1, **environment(),
                }  # fmt: skip
        for row in best.values():
            yield {**row, "ratio": row["cpu_seconds"] / best["memory"]["cpu_seconds"],
                   "ratio_wall": row["seconds"] / best["memory"]["seconds"]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    X, y = drlogit.datasets.make_synthetic(arguments.samples, arguments.features, random_state=0)
    with (
        thread_limits(1),
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for row in measured(X, y, folder, client, arguments.repeat):
            store.append_rows(store.RESULTS / "places.jsonl", [row])
            print(
                f"{row['place']:10s} kappa {row['kappa']:4s} processor {row['cpu_seconds']:.2f} s "
                f"({row['ratio']:.2f} times memory), wall {row['seconds']:.2f} s "
                f"({row['ratio_wall']:.2f} times), {row['visits']} visits, {row['grams']:.2f} Gram "
                f"matrices, objective {row['objective']:.12f}, gap {row['gap']:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
