"""Choose epsilon and kappa by cross-validation.

Fit a grid of radii and flip costs on every fold, take the pair with the smallest log-loss on the
held-out rows, and fit it to all rows. Cross-validation rewards robustness only where it helps on
data from the same source. If you expect a shift that the folds do not show, choose epsilon and
kappa by their meaning. The output ends with limits for new data, from cross-validation.

    drlogit tune data.csv --standardize -o model.json
    drlogit tune data.csv --epsilons 5 --kappas 0.5,1,inf --folds 10
    drlogit tune data.csv --one-standard-error --json
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

from ..estimators.class_recall import ClassRecall
from ..estimators.classifier_cv import FOLD_TOL, DRLogisticRegressionCV
from ..files.model_file import write_model
from ..problem.label_costs import kappa_text
from ..robustness.guarantees import guarantee
from ..robustness.limits import LEAST_ROWS
from . import options
from .asking import ModelAndSamples, read_column
from .console import DONE, NOT_CONVERGED, Console
from .outputs import explain_fit, explain_written, fit_record, table
from .training import Training, parameters, read_training, remark_on_order


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    add = options.group(parser)
    add(*options.DATA)
    add("-o --output MODEL", "file to write the model to (JSON)")
    add = options.group(parser, "search")
    add("--epsilons N|E,E", "number of radii for each kappa, or the radii", type=_grid, default=7)
    add("--kappas N|K,K", "number of flip costs, or the flip costs (a trailing comma makes a list "
        "of one); with --kappa: factors of it", type=_grid, default=2)  # fmt: skip
    add("--kappa LABEL=COST,...", "cost of flipping a label, by label", type=options.by_label)
    add("--folds N", "number of stratified folds", type=int, default=5)
    add("--shuffle", "draw the folds at random instead of in the order of the rows")
    add("--seed N", "seed of --shuffle; implies --shuffle", type=int)
    add("--parts COLUMN", "leave out each value of this column in turn (hospitals, years) instead "
        "of folds of rows; the column is not a feature")  # fmt: skip
    add("--one-standard-error", "take the largest radius within one standard error of the best")
    add("--scoring NAME", "score to maximise, a scikit-learn name (default: log-loss)")
    add("--jobs N", "number of processes", type=int)
    options.add_model_options(parser)
    options.add_data_options(parser)
    options.add_solver_options(parser)


def _grid(text: str) -> Any:
    """A number is how many, a list is which; ``0.5`` can only be a list of one."""
    try:
        return int(text)
    except ValueError:
        return options.numbers(text.rstrip(","))


_grid.__name__ = "number or list of numbers"


def run(arguments: Namespace, console: Console) -> int:
    """Run the command."""
    if arguments.parts is not None:
        arguments.drop = (*arguments.drop, arguments.parts)
    training, folds, parts = read_training(arguments, console), arguments.folds, None
    if folds < 2:
        raise ValueError(f"--folds must be at least 2, got {folds}")
    if arguments.parts is not None:
        folds, parts = _by_part(training, arguments)
    elif arguments.shuffle or arguments.seed is not None:
        folds = StratifiedKFold(folds, shuffle=True, random_state=arguments.seed or 0)
    else:
        remark_on_order(training, console)
    search = DRLogisticRegressionCV(
        arguments.epsilons, arguments.kappas, cv=folds, scoring=arguments.scoring,
        one_standard_error=arguments.one_standard_error, n_jobs=arguments.jobs,
        kappa=training.by_label(arguments.kappa),
        **parameters(arguments, training),
    )  # fmt: skip
    with console.progress("tune") as bar:
        search.on_fold = console.watcher(
            lambda done, total: bar(lambda: f"{done} of {total} folds")
        )
        search = training.fit(search)
    if search.at_grid_edge_:
        console.note(
            "the best radius is at the end of the grid, and the scores still improve there: try "
            "other radii with --epsilons"
        )
    if arguments.output is not None:
        write_model(search, arguments.output, training.origin)
    given, promised = training.samples, None
    if given.kappa is None and training.labels.size >= LEAST_ROWS:
        promised = guarantee(
            search,
            given.X,
            training.labels,
            sample_weight=given.weights,
            cv=folds,
            parts=parts,
        )
    recall = ModelAndSamples(search, training.origin, given).recall()
    record = fit_record(search, promised, recall, training, arguments.output) | {
        "scoring": arguments.scoring or "neg_log_loss",
        "score": search.best_score_,
        "cv_results": {k: v for k, v in search.cv_results_.items() if k != "params"},
    }
    console.answer(record, lambda: _text(search, promised, recall, arguments))
    proven = (search.cv_results_["max_gap"] <= max(arguments.tol, FOLD_TOL)).all()
    return DONE if proven and (search.dual_gap_ <= arguments.tol).all() else NOT_CONVERGED


def _by_part(training: Training, arguments: Namespace) -> tuple[list[Any], Any]:
    """Folds that leave each part out in turn, and the part of each sample."""
    if arguments.shuffle or arguments.seed is not None or arguments.data == "-":
        raise ValueError(
            "--parts needs a data file, not standard input, and excludes --shuffle and --seed"
        )
    asked = ModelAndSamples(None, {}, training.samples)
    named = [str(value) for value in read_column(asked, arguments, "parts")]
    parts = np.unique(named, return_inverse=True)[1]
    return list(LeaveOneGroupOut().split(parts, groups=parts)), parts


def _text(search: Any, promised: Any, recall: ClassRecall, arguments: Namespace) -> str:
    found = search.cv_results_
    losses = arguments.scoring is None
    order = np.argsort(found["rank_test_score"], kind="stable")[:8]
    if search.best_index_ not in order:
        order = np.append(order[:7], search.best_index_)
    rows = []
    for i in order:
        score = found["mean_test_score"][i]
        rows.append([
            "chosen" if i == search.best_index_ else "",
            f"{found['param_epsilon'][i]:.4g}",
            f"{found['param_kappa'][i]:.4g}",
            f"{found['flip_budget'][i]:.2%}" if "flip_budget" in found else "",
            f"{-score if losses else score:.5f}",
            f"{found['std_test_score'][i]:.5f}",
            f"{found['max_gap'][i]:.1e}",
        ])  # fmt: skip
    what = "log-loss" if losses else arguments.scoring
    return "\n".join([
        f"Best of {len(found['mean_test_score'])} pairs on {search.n_splits_} folds:",
        "",
        table(["", "epsilon", "kappa", "flips up to", what, "± (folds)", "largest gap"], rows),
        "",
        f"Chosen: epsilon = {search.epsilon_:.6g}, kappa = {kappa_text(search.kappa_)}. The final "
        "model on all rows:",
        *explain_fit(search.result_),
        *recall.lines(),
        *([] if promised is None else ["", str(promised)]),
        *explain_written(arguments.output),
    ])  # fmt: skip
