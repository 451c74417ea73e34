"""Files that commands write, and how fits and numbers are told in words."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..problem.result import Result, Status

#: Options and arguments that name files to write, and files to read.
_OUTPUTS = {
    "output": "-o",
    "proof": "--proof",
    "holdout_out": "--holdout-out",
}
_INPUTS = ("data", "model", "others", "new")


def check_outputs(arguments: argparse.Namespace) -> None:
    """Find out before the work that an outcome cannot be written, or would destroy something."""
    given = vars(arguments)
    taken: dict[str, str] = {}  # which file it is, and what it is for
    for name in _INPUTS:
        named = given.get(name) or ()
        for path in [named] if isinstance(named, str) else named:
            taken[os.path.realpath(path)] = "an input file"
    for name, option in _OUTPUTS.items():
        path = given.get(name)
        if path is None or (name, given.get("command")) == ("proof", "verify"):  # which reads it
            continue
        place = os.path.realpath(path)
        if os.path.isdir(place) or not os.path.isdir(os.path.dirname(place)):
            raise ValueError(f"{option} {path} must be a file in an existing folder")
        if not os.access(place if os.path.exists(place) else os.path.dirname(place), os.W_OK):
            raise ValueError(f"{option} {path} cannot be written to")
        if place in taken:
            raise ValueError(f"{option} {path} would overwrite {taken[place]}: name another file")
        taken[place] = f"the file of {option}"
    page = given.get("output") if arguments.command in ("audit", "demo") else None
    if page is not None and Path(page).suffix.lower() not in (".html", ".htm", ""):
        raise ValueError(f"-o {page} must be a web page: name a file that ends in .html")


def explain_fit(result: Result) -> list[str]:
    """How sure the outcome of a fit is."""
    lines = [
        f"  worst-case log-loss   {result.objective:.7f}",
        f"  no model is below     {result.dual_objective:.7f}",
        f"  gap                   {result.gap:.1e}, after {result.n_iter} iterations "
        f"({result.solver}, {result.solve_time:.3f} s)",
    ]
    if result.info.get("as_numbers"):
        lines.append("  categories and bounds count as numbers, so this is an upper bound")
    if not result.converged:
        raised = "--max-iter, or --tol" if result.status is Status.MAX_ITER else "--tol"
        lines.append(f"  not converged         {result.status}; increase {raised}")
    return lines


def explain_written(*files: str | None) -> list[str]:
    """Which files there are now."""
    written = ", ".join(name for name in files if name is not None)
    return ["", f"Written: {written}"] if written else []


def certificate_record(result: Result) -> dict[str, Any]:
    """How sure the outcome of a fit is, for a script."""
    return {
        "objective": result.objective,
        "dual_bound": result.dual_objective,
        "gap": result.gap,
        "lambda": result.lam,
        "converged": result.converged,
        "status": result.status.name,
        "n_iter": result.n_iter,
        "solver": result.solver,
        "solve_seconds": result.solve_time,
    }


def guarantee_record(found: Any) -> dict[str, Any]:
    """A guarantee for a script, with what it assumes."""
    return {**asdict(found), "assumed": str(found).rpartition("Assumed: ")[2]}


def fit_record(
    model: Any, promised: Any, recall: Any, training: Any, written: str | None
) -> dict[str, Any]:
    """A fitted model for a script: its data, certificate, recall and guarantee, if there is one."""
    return {
        "model": written,
        **training.record,
        "epsilon": model.epsilon_,
        "kappa": model.kappa_,
        "norm": model.norm,
        "fits": [certificate_record(model.result_)],
        **recall.record,
        **({} if promised is None else {"guarantee": guarantee_record(promised)}),
    }
