"""How new rows differ from reference rows, as far as it concerns a model.

**Columns.**  Number j must move by the Wasserstein distance ``W₁ⱼ`` between its two distributions,
category g must change in a share ``TV_g`` of the rows.  By Jensen's inequality
``‖(c_j W₁ⱼ)_j‖ + Σ_g c_g TV_g`` is a lower bound on the transport distance of the two samples:
where it is larger than ε, the new rows lie outside of the ball around the reference rows.

**The loss.**  A change of the loss has two parts (DISDE: Cai, Namkoong and Yadlowsky 2023,
arXiv:2303.02011).  The scores have another distribution, or labels differ at equal scores.
Reweighting the reference rows to the new distribution of scores separates them:

    loss_new - loss_ref  =  (weighted loss_ref - loss_ref)  +  (loss_new - weighted loss_ref).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from scipy.stats import wasserstein_distance

from ..problem.ball import Ball
from ..problem.domains import dense_columns
from ..problem.features import Feature
from ..problem.norms import get_norm
from ..rows.arrays import FloatArray, Matrix
from ..rows.warn import warn
from .adversary import Adversary
from .words import percent, rounded, warning_once, wrapped

#: Bins of scores with equal shares of the pooled rows, to which reference rows are reweighted.
_BINS = 8

#: A column has left its range if more than this share of the new rows, and more than chance would
#: put there, lie outside of the range of the reference rows.
_OUTSIDE = 0.05

#: The number of columns in the plot.
_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Shift:
    """How new rows differ from reference rows, for one model; ``str()`` says it in words.

    Attributes
    ----------
    columns : pandas.DataFrame
        A row for each column, those that moved most radii first.  ``moved`` is the distance of its
        two distributions in its own units, for a category the share of rows that must change;
        ``by_chance`` is that of two samples of the same population, on average; ``radii`` is what
        the move costs, as a multiple of ε; ``outside`` is the share of new rows beyond the range,
        or the levels, of the reference rows.
    distance : float
        A lower bound on the transport distance of the two samples, in radii: above 1, the new rows
        lie outside of the ball.  NaN for a cost matrix or ε = 0.  Columns that cannot be wrong are
        left out.
    by_chance : float
        The same for two samples of one population with as many rows, on average.
    ball : Ball
        In plain numbers.
    loss_ref, loss_new : float
        Mean log-losses; ``loss_new`` is None without labels.
    loss_covered : float
        The largest log-loss within the ball around the reference rows.
    from_rows, from_answers : float or None
        The parts of ``loss_new - loss_ref`` that come from another distribution of the scores and
        from other labels at equal scores.  Without labels ``loss_ref + from_rows`` estimates the
        loss; None if no reference rows have scores like the new ones.
    beyond : float
        The share of new rows whose scores lie where there is no reference row; the two parts say
        nothing about these.
    n_ref, n_new : int
        Rows.
    """

    columns: Any = field(repr=False)
    distance: float
    by_chance: float
    ball: Ball
    loss_ref: float
    loss_new: float | None
    loss_covered: float
    from_rows: float | None
    from_answers: float | None
    beyond: float
    n_ref: int
    n_new: int

    def __str__(self) -> str:
        return wrapped([*self._where(), *self._losses()])

    @property
    def left(self) -> dict[str, str]:
        """The columns that left the range of the reference rows, and in which share of the rows."""
        chance = 4.0 * 2.0 / (self.n_ref + 1)
        found = zip(self.columns["column"], self.columns["outside"], strict=True)
        most = max(_OUTSIDE, chance)
        return {str(name): percent(share, -1.0) for name, share in found if share > most}

    def _where(self) -> Iterator[str]:
        if math.isnan(self.distance):
            yield "How far the new rows are from the ball is not known for these costs."
        else:
            said = "The new rows lie outside of the ball"
            if self.distance <= 1.0:
                said = "The columns do not show that the new rows lie outside of the ball"
            chance = ", so that chance explains it" if self.distance <= self.by_chance else ""
            yield (
                f"{said}: they are at least {self.distance:.3g} radii from the reference rows. "
                "Samples of one population with as many rows are about "
                f"{self.by_chance:.3g} apart{chance}."
            )
        if self.left:
            each = ", ".join(f"{name} in {share}" for name, share in self.left.items())
            yield (
                f"Outside of the range of the reference rows: {each} of the new rows. Check the "
                "units and the meaning of these columns first: until then, nothing below can be "
                "put down to the labels."
            )
        some = self.columns[self.columns["moved"] > self.columns["by_chance"]].head(5)
        each = ", ".join(
            f"{r.column} by {r.moved:.3g} ({r.radii:.3g} radii)" for r in some.itertuples()
        )
        if each:
            yield f"Moved most: {each}."

    def _losses(self) -> Iterator[str]:
        yield (
            f"The log-loss is {self.loss_ref:.4g} on {self.n_ref} reference rows. The ball around "
            f"these covers a loss up to {rounded(self.loss_covered, -1.0)}."
        )
        if self.loss_new is not None:
            covers = "covers" if self.loss_new <= self.loss_covered else "does not cover"
            yield f"It is {self.loss_new:.4g} on {self.n_new} new rows, which the ball {covers}."
        if self.from_rows is not None and self.from_answers is not None:
            why = " because labels differ" if not self.left else ""
            yield (
                f"It changed by {self.from_rows + self.from_answers:+.4f}: {self.from_rows:+.4f} "
                "because the scores have another distribution, and "
                f"{self.from_answers:+.4f}{why} at equal scores."
            )
        elif self.from_rows is not None:
            yield (
                f"On the {self.n_new} new rows it is about {self.loss_ref + self.from_rows:.4g}, "
                "if labels at equal scores are as before; without labels this cannot be seen."
            )
        if self.beyond > 0.0:
            share = percent(self.beyond, -1.0)
            yield f"{share} of the new rows have scores that no reference row has."

    def plot(self, *, ax: Any = None) -> Any:
        """Draw how far the columns moved; returns the axes.  Needs matplotlib."""
        import matplotlib.pyplot as plt

        shown = self.columns.head(_SHOWN)[::-1]
        ax = plt.subplots(figsize=(7.0, 1.0 + 0.35 * len(shown)))[1] if ax is None else ax
        ax.barh(shown["column"].astype(str), shown["radii"], color="#0072B2")
        ax.axvline(1.0, color="0.3", linestyle="--", linewidth=1.0)
        ax.set_xlabel("distance in radii of the ball")
        return ax


@warning_once
def measure_shift(
    model: Any,
    X_ref: Any,
    y_ref: ArrayLike,
    X_new: Any,
    y_new: ArrayLike | None = None,
    *,
    ball: Ball | None = None,
) -> Shift:
    """Measure how new rows differ from reference rows, as far as it concerns a model.

    Parameters
    ----------
    model : estimator, Result or tuple (coef, intercept)
        As in :func:`drlogit.worst_case`.
    X_ref, y_ref
        Labelled reference rows of the population of the fit, preferably not the rows of the fit.
    X_new, y_new
        New rows.  Without labels their loss can only be estimated.
    ball : Ball, optional
        By default that of the fit.

    Returns
    -------
    Shift
        ``.columns`` says which columns moved; ``str()`` is a summary in words.

    Warns
    -----
    UserWarning
        If a column has left the range of the reference rows.

    Examples
    --------
    >>> import drlogit, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 2))
    >>> y = (X[:, 0] + rng.logistic(size=600) > 0).astype(int)
    >>> model = drlogit.DRLogisticRegression(epsilon=0.05).fit(X[:200], y[:200])
    >>> moved = drlogit.measure_shift(model, X[200:400], y[200:400], X[400:], 1 - y[400:])
    >>> bool(moved.from_answers > 0.0 and moved.loss_new > moved.loss_covered)
    True
    """
    reference = Adversary.of(model, X_ref, y_ref, ball)
    log_loss, epsilon = reference.metric("log_loss"), reference.ball.epsilon or 0.0
    # Without labels any will do: the losses are not used.
    some = np.resize(reference.classes, np.shape(X_new)[0]) if y_new is None else y_new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the new rows have beyond the range is said below
        new = Adversary.of(model, X_new, some, reference.ball)
    columns, distance, by_chance = _moved(reference, reference.table.matrix, new.table.matrix)
    weights, beyond = score_weights(_one_score(reference.scores), _one_score(new.scores))
    loss_ref = float(reference.losses.mean())
    weighted = None if weights is None else float(weights @ reference.losses)
    loss_new = None if y_new is None else float(new.losses.mean())
    found = Shift(
        columns=columns,
        distance=distance,
        by_chance=by_chance,
        ball=reference.ball,
        loss_ref=loss_ref,
        loss_new=loss_new,
        loss_covered=reference.value(log_loss, epsilon),
        from_rows=None if weighted is None else weighted - loss_ref,
        from_answers=None if weighted is None or loss_new is None else loss_new - weighted,
        beyond=beyond,
        n_ref=len(reference.codes),
        n_new=len(new.codes),
    )
    if found.left:
        warn(
            f"columns left the range of the reference rows: {', '.join(found.left)}; check their "
            "units before you read anything else",
        )
    return found


def _moved(adversary: Adversary, old: Matrix, new: Matrix) -> tuple[Any, float, float]:
    """A frame with a row for each column, the least distance in radii, and that by chance."""
    import pandas as pd

    old, new = (sp.csc_array(each) if sp.issparse(each) else each for each in (old, new))
    plain, epsilon = adversary.plain, adversary.ball.epsilon
    assert epsilon is not None
    # A cost matrix has no such bound; moving one column alone costs the root of its diagonal.
    together = np.ndim(plain.costs) == 2
    costs = np.sqrt(np.diagonal(plain.costs)) if together else plain.costs
    used = [feature for feature in adversary.table.features.each if feature.columns.size]
    moves = np.array([_distances(feature, old, new) for feature in used]).reshape(-1, 3)
    is_category = np.array([feature.is_category for feature in used], dtype=bool)
    price = np.array([costs[feature.columns[0]] for feature in used])
    paid = np.where(moves > 0.0, price[:, None], 0.0) * moves
    records = {
        "column": [feature.name for feature in used],
        "kind": np.where(is_category, "category", "number"),
        "moved": moves[:, 0],
        "by_chance": moves[:, 1],
        "radii": paid[:, 0] / (epsilon or math.nan),
        "outside": moves[:, 2],
    }
    frame = pd.DataFrame(records).sort_values("radii", ascending=False, ignore_index=True)
    if together or not epsilon:
        return frame, math.nan, math.nan
    norm, paid = get_norm(plain.norm).value, np.where(np.isfinite(paid), paid, 0.0)
    found = [norm(each[~is_category]) + each[is_category].sum() for each in paid.T]
    return frame, float(found[0] / epsilon), float(found[1] / epsilon)


def _distances(feature: Feature, old: Matrix, new: Matrix) -> tuple[float, float, float]:
    """How far a column moved, how far by chance, and the share of new rows outside the range."""
    here, there = (dense_columns(each, feature.columns) for each in (old, new))
    chance = math.sqrt(2.0 / math.pi * (1.0 / len(here) + 1.0 / len(there)))
    if feature.is_category:
        # A row without any of the levels has a level of its own.
        here, there = (np.column_stack([x, 1.0 - x.sum(axis=1)]) for x in (here, there))
        shares = here.mean(axis=0), there.mean(axis=0)
        both = 0.5 * (shares[0] + shares[1])
        moved = 0.5 * float(np.abs(shares[1] - shares[0]).sum())
        by_chance = 0.5 * chance * float(np.sqrt(np.maximum(both * (1.0 - both), 0.0)).sum())
        return moved, by_chance, float(shares[1][shares[0] <= 0.0].sum())
    one, other = here[:, 0], there[:, 0]
    pooled = np.sort(np.concatenate([one, other]))
    below = np.arange(1, pooled.size) / pooled.size
    by_chance = chance * float(np.sqrt(below * (1.0 - below)) @ np.diff(pooled))
    outside = float(np.mean((other < one.min()) | (other > one.max())))
    return float(wasserstein_distance(one, other)), by_chance, outside


def score_weights(reference: FloatArray, new: FloatArray) -> tuple[FloatArray | None, float]:
    """Weights of reference rows that give their scores the distribution of the new ones, by bins.

    Also the share of new rows in bins without reference rows.  The weights sum to one; they are
    None if no bin has rows of both.
    """
    edges = np.quantile(np.concatenate([reference, new]), np.linspace(0.0, 1.0, _BINS + 1)[1:-1])
    here, there = np.searchsorted(edges, reference), np.searchsorted(edges, new)
    p, q = (np.bincount(bins, minlength=_BINS) / bins.size for bins in (here, there))
    weights = q[here] / p[here]
    total = float(weights.sum())
    return weights / total if total > 0.0 else None, float(q[p == 0.0].sum())


def _one_score(scores: FloatArray) -> FloatArray:
    """One number for each row: the log-odds of two classes, the confidence of several."""
    if scores.ndim == 1:
        return scores
    return np.asarray(scores.max(axis=1) - logsumexp(scores, axis=1))
