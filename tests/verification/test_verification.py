"""``verify`` judges without the code that it judges; here it is judged, with fifty digits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import stated
from benchmarks.false_bounds import KINDS, Judge, judge_of
from benchmarks.problems import SOURCES, Generated
from sklearn.datasets import dump_svmlight_file

import domain_zoo
import drlogit
import zoo
from damaged import damaged_copies
from drlogit.cli import main
from drlogit.estimators.robust_classifier import result_of
from drlogit.problem.dual_point import DualPoint, Moves
from drlogit.problem.label_costs import FlipCosts
from drlogit.problem.proof import BrokenProofError, read_proof
from drlogit.verification.bounds import PanelSum, slack

mp.mp.dps = 50


def samples(seed, n_samples=40, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    y = np.sign(X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples) + 0.2)
    y[:2] = 1.0, -1.0
    return X, y


def proven(result, case, proof=None):
    """What ``verify`` says about a result of ``solve(**case)``."""
    by_sample = case["kappa"] if np.ndim(case["kappa"]) == 1 else None
    if isinstance(proof, DualPoint):
        result, proof = replace(result, dual=proof), None
    return drlogit.verify(
        result, case["X"], case["y"], proof, sample_weight=case.get("sample_weight"),
        kappa=by_sample,
    )  # fmt: skip


#: A problem whose features can be any number, and one with categories and bounds.
X, Y = samples(1)
PLAIN = {"X": X, "y": Y, "epsilon": 0.05, "kappa": 1.0}
DOMAINS = domain_zoo.generated(4, n_samples=30)
CASES = pytest.mark.parametrize("case", [PLAIN, DOMAINS], ids=["plain", "domains"])


@cache
def fit_of(plain):
    return stated.solve(**(PLAIN if plain else DOMAINS))


def fitted(case):
    return fit_of(case is PLAIN)


@cache
def least_value(plain):
    """What no bound may exceed: the value of a model, with fifty digits."""
    case = dict(PLAIN if plain else DOMAINS)
    best = stated.solve(**case, tol=1e-10)
    options = {"norm": "l1", "feature_costs": None, "fit_intercept": True}
    features, y = case.pop("X"), case.pop("y") > 0
    options |= {name: value for name, value in case.items() if value is not None}
    return Judge(Generated("", features, y, options)).least_value(best)


# --- with fifty digits ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_bounds_enclose_what_fifty_digits_say(kind, seed):
    problem = SOURCES[kind](1000 + seed)
    if problem is None:
        return
    case = {"X": problem.X, "y": problem.y, **problem.options}
    result = stated.solve(**case)
    found, judge = proven(result, case), judge_of(problem)
    assert found.ok, found.reason
    assert found.lower <= judge.least_value(stated.solve(**case, tol=1e-10))
    assert found.lower >= result.dual_objective - 2.0 * slack(result.dual_objective)
    assert found.upper <= result.objective + 2.0 * slack(result.objective)
    if result.converged and np.abs(result.coef).max() < 1e3:  # of the class
        assert judge.value(result) <= found.upper


def test_sums_are_within_their_errors():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 4)) * 10.0 ** rng.uniform(-8, 8, (300, 4))
    r = rng.standard_normal((2, 300))
    for first, last in ((A, -A[::-1] * (1.0 + 1e-15)), (sp.csr_array(A), A)):
        total = PanelSum(2, 4)
        for start, part in product(range(0, 300, 50), (first, last)):
            some = slice(start, start + 50)
            total.add(r[:, some], np.abs(r[:, some]), part[some])
        value, error = total.result(0)
        rows = [*(first.toarray() if sp.issparse(first) else first), *last]
        for k, j in product(range(2), range(4)):
            terms = zip(rows, [*r[k], *r[k]], strict=True)
            exact = sum(Fraction(x[j]) * Fraction(t) for x, t in terms)
            assert abs(Fraction(value[k, j]) - exact) <= Fraction(error[k, j])
            assert error[k, j] <= 2e-14 * np.abs([x[j] for x in rows]).sum()


def test_what_rounding_takes_from_a_sum_is_carried():
    total = PanelSum(1, 1)
    for value in (1e16, *[1.0] * 3000, -1e16):
        total.add(np.ones((1, 1)), np.ones((1, 1)), np.array([[value]]))
    value, error = total.result(0)
    assert abs(value[0, 0] - 3000.0) <= error[0, 0] <= 30.0


def test_gains_that_nearly_cancel_a_margin():
    """A bounded feature of 1e8 whose move cancels the margin: its gain is as exact as the bound."""
    rng = np.random.default_rng(1)
    far = np.where(rng.random(60) < 0.5, 1e8, 0.0)
    X = np.column_stack([far, rng.standard_normal(60)])
    y = np.where(far + X[:, 1] > 5e7, 1, -1)
    ends = np.array([0.0, -inf]), np.array([1e8, inf])
    case = {"X": X, "y": y, "epsilon": 0.1, "kappa": 2.0, "bounds": ends,
            "feature_costs": np.array([1e-8, 1.0])}  # fmt: skip
    result = stated.solve(**case)
    options = {"norm": "l1", "fit_intercept": True}
    options |= {name: value for name, value in case.items() if name not in ("X", "y")}
    found = proven(result, case)
    assert found.ok, found.reason
    assert Judge(Generated("", X, y > 0, options)).value(result) <= found.upper


# --- proofs that are wrong --------------------------------------------------------------------


def changed(point, count=400):
    """The point with one of its numbers changed, or all of an array."""
    rng = np.random.default_rng(0)
    whole = (lambda x: 0.5 + 0.0 * x, np.sqrt, lambda x: 1.0 - x, lambda x: 1.01 * x)
    for k in range(count):
        part = point if point.moves is None or k % 6 == 0 else point.moves
        names = (
            ("s", "flip_share") if part is point else ("sample", "flipped", "items", "share", "s")
        )
        name = names[k % len(names)]
        values = getattr(part, name).copy()
        if values.dtype == float and rng.random() < 0.05:
            values = rng.choice(whole)(values)
        else:
            place = rng.integers(values.size)
            value = values.ravel()[place]
            others = [0.5, 1.0 - value, value + 0.01, value - 0.01, 1.0 + value]
            if values.dtype != float:
                others = [not value] if values.dtype == bool else [value ^ 64, value ^ 128]
            values.ravel()[place] = rng.choice(others)
        new = replace(part, **{name: values})
        yield new if part is point else replace(point, moves=new)


@CASES
def test_no_change_of_a_proof_proves_anything_false(case):
    """Forged points are refused, or prove the very claim: whoever wrote it, that is a proof."""
    result, least, stood, tried = fitted(case), least_value(case is PLAIN), 0, 0
    for point in changed(result.dual):
        found = proven(result, case, point)
        assert found.lower <= least
        assert not found.ok or found.lower >= result.dual_objective - 1e-9
        stood, tried = stood + found.ok, tried + 1
    assert stood < 0.1 * tried


@CASES
def test_damaged_files_are_refused(case, tmp_path):
    path, result, rng = tmp_path / "proof.npz", fitted(case), np.random.default_rng(0)
    result.save_proof(path)
    contents = path.read_bytes()
    assert proven(result, case, path).ok
    for damaged in damaged_copies(contents, rng, 60):
        path.write_bytes(damaged)
        try:
            proof = read_proof(path)
        except BrokenProofError:
            assert not proven(result, case, path).ok
            continue
        np.testing.assert_array_equal(proof.s, result.dual.s)  # a bit that means nothing


@CASES
def test_every_way_to_fail_has_its_sentence(case, tmp_path):
    path, result = tmp_path / "proof.npz", fitted(case)
    result.save_proof(path)
    good = proven(result, case, path)
    assert good
    assert good.gap <= 1e-6
    assert "no linear model can promise less" in good.reason

    def refused(sentence, model=result, proof=path, **changes):
        found = proven(model, case | changes, proof)
        assert not found.ok
        assert sentence in found.reason
        assert "\n" not in found.reason

    refused("other coefficients or data", X=1.5 * case["X"] if case is PLAIN else case["X"][::-1])
    refused("other classes or samples", X=case["X"][:-1], y=case["y"][:-1], sample_weight=None)
    wide = replace(result.column_ball, epsilon=2.0 * result.column_ball.epsilon)
    refused("other coefficients", model=replace(result, column_ball=wide))
    refused("the dual point proves", proof=replace(result.dual, s=0.9 * result.dual.s))
    refused("the dual point proves 0 ", proof=replace(result.dual, s=1.0 + result.dual.s))
    refused("other classes or samples", proof=replace(result.dual, s=result.dual.s[1:]))
    refused("other coefficients", model=replace(result, objective=result.objective - 3e-9))
    refused("there is no proof", model=replace(result, dual=None), proof=None)
    path.write_text("not a proof")
    refused("cannot be read")
    with pytest.raises(ValueError, match="no dual point"):
        replace(result, dual=None).save_proof(path)
    with pytest.raises(ValueError, match="know its ball"):
        proven(replace(result, column_ball=None), case)
    with pytest.raises(ValueError, match="expected a fitted drlogit model, got tuple"):
        drlogit.verify((result.coef, result.intercept), case["X"], case["y"], path)
    with pytest.raises(FileNotFoundError):
        proven(result, case, tmp_path / "missing.npz")


def test_moves_are_within_the_domain():
    result = fitted(DOMAINS)
    moves = result.dual.moves
    for changes in (
        *({"share": share} for share in (moves.share + 1.0, -moves.share, moves.share[1:])),
        *({"sample": sample} for sample in (moves.sample + 30, moves.sample[::-1])),
    ):
        wrong = replace(result.dual, moves=replace(moves, **changes))
        assert "infeasible dual point" in proven(result, DOMAINS, wrong).reason
    for changes in (  # whatever was written: it proves nothing false
        {"items": np.zeros((moves.sample.size, 9), dtype=np.uint8)},
        {"items": np.full_like(moves.items, 255)},
        {"flipped": ~moves.flipped},
    ):
        wrong = replace(result.dual, moves=replace(moves, **changes))
        assert proven(result, DOMAINS, wrong).lower <= least_value(False)
    wrong = replace(result.dual, moves=replace(moves, s=moves.s + 1.0))
    assert "the dual point proves 0 " in proven(result, DOMAINS, wrong).reason
    certain = replace(result, column_ball=replace(result.column_ball, kappa=FlipCosts(inf)))
    assert "the dual point proves 0 " in proven(certain, DOMAINS).reason


def test_what_is_no_proof_of_two_classes_is_none_of_three():
    X, y = samples(3, 60)
    several = stated.solve(X, np.arange(60) % 3, epsilon=0.1, kappa=1.0)
    two = stated.solve(X, y, epsilon=0.1, kappa=1.0)
    for fit, own, other in ((two, y, several), (several, np.arange(60) % 3, two)):
        found = drlogit.verify(replace(fit, dual=other.dual), X, own)
        assert "about other classes" in found.reason


def test_a_bounded_feature_of_one_value_is_charged():
    """The adversary moves it, so that its equation is not that of the intercept."""
    rng = np.random.default_rng(0)
    X, y = np.column_stack([np.full(40, 3.0), rng.standard_normal(40)]), rng.integers(0, 2, 40)
    case = {"X": X, "y": y, "epsilon": 0.3, "kappa": inf,
            "bounds": (np.array([0.0, -inf]), np.array([9.0, inf]))}  # fmt: skip
    result = stated.solve(**case)
    assert proven(result, case).ok
    sample, none = np.arange(40), np.zeros(40)
    moves = Moves(sample, none > 0.0, np.full((40, 1), 64, np.uint8), none + 1.0, none + 0.5)
    balanced = replace(moves, share=np.where(y == 1, 0.5, 0.2))
    assert proven(result, case, DualPoint(none + 0.5, none, balanced)).lower == 0.0


@pytest.mark.parametrize("shown", [slice(1, 3), slice(0, 3)], ids=["some", "all"])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_group_that_stays_is_not_the_intercept_of_rows_without_it(shown, bounded):
    """Nor is one with a 1 in every row, if nothing can move within the domains."""
    rng = np.random.default_rng(2)
    levels = np.eye(3)[rng.integers(0, 3, 60)][:, shown]
    features = np.column_stack([levels, rng.normal([3.0, 1e8], 1.0, (60, 2))])
    n = levels.shape[1]
    case = {"X": features, "y": rng.integers(0, 2, 60), "epsilon": 0.05, "kappa": 1.0,
            "fit_intercept": False, "categories": [[*range(n)]],
            "feature_costs": np.array([inf] * n + [1.0, inf])}  # fmt: skip
    if bounded:
        case["bounds"] = np.array([-inf] * n + [0.0, -inf]), np.array([inf] * n + [9.0, inf])
    found = proven(stated.solve(**case), case)
    assert found.ok, found.reason


def test_a_matrix_of_feature_costs_has_no_proof():
    result = stated.solve(X, Y, epsilon=0.1, kappa=1.0, norm="l2", feature_costs=np.eye(3))
    given = replace(result, column_ball=replace(result.column_ball, costs=np.eye(3)))
    with pytest.raises(ValueError, match="a matrix of feature_costs has no proof"):
        drlogit.verify(given, X, Y)


# --- samples and models of every kind -----------------------------------------------------------


@CASES
@pytest.mark.parametrize("kind", ["csr", "wide csr", "memmap", "list"])
def test_samples_are_the_same_wherever_they_are(case, kind, tmp_path):
    features, labels = case["X"], case["y"]
    if kind == "csr":
        stored = sp.csr_array(features)
    elif kind == "wide csr":  # columns of zeros: too many to be dense
        empty = sp.csr_array((len(features), 1100))
        features = stored = sp.csr_array(sp.hstack([features, empty]))
        case = {"X": stored, "y": labels, "epsilon": 0.05, "kappa": 1.0}
    elif kind == "memmap":
        stored = zoo.mapped(features)
    else:
        stored = features.tolist()
    result = stated.solve(**case | {"X": stored})
    result.save_proof(tmp_path / "proof.npz")
    for each in (features, stored):
        found = proven(replace(result, dual=None), case | {"X": each}, tmp_path / "proof.npz")
        assert found.ok, found.reason


def test_columns_far_from_zero_and_all_levels_beside_an_intercept():
    rng = np.random.default_rng(3)
    group = rng.integers(4, size=200)
    levels, other = np.eye(4)[group], rng.standard_normal((200, 2))
    days = 20200101.0 + rng.integers(0, 1230, (200, 1))
    features = np.hstack([levels, other, days, 2.0 * days, np.ones((200, 1))])
    labels = np.sign(other[:, 0] + group - 1.5 + rng.standard_normal(200))
    costs = [inf] * 4 + [1.0, 1.0, inf, inf, inf]
    case = {"X": features, "y": labels, "epsilon": 0.05, "kappa": 1.0, "feature_costs": costs}
    result = stated.solve(**case)
    assert proven(result, case).ok
    assert proven(result, case | {"X": sp.csr_array(features)}).ok
    # A level that is no longer quite the rest: no proof, and no false one either.
    features[0, 0] = 1e-9
    assert "the dual point proves" in proven(result, case | {"X": features}).reason


def test_everything_that_is_fitted_can_be_proven(tmp_path):
    """Searches, pipelines, class weights: or a sentence says what is wanted."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    path, grid = tmp_path / "proof.npz", {"epsilons": 2, "cv": 2}
    labels = np.where(X[:, 0] > 0.3, "b", np.where(X[:, 1] > 0.0, "c", "a"))
    plain = stated.classifier(0.05)
    for weight in ("balanced", {-1: 3.0, 1: 1.0}):
        chosen = stated.search(**grid, class_weight=weight).fit(X, Y)
        chosen.save_proof(path, X, Y)
        assert drlogit.verify(chosen, X, Y, path).ok
        assert not drlogit.verify(result_of(chosen), X, Y, path).ok
    scaled = GridSearchCV(make_pipeline(StandardScaler(), plain), {}, cv=2).fit(X, Y)
    found = scaled.best_estimator_
    found[-1].save_proof(path, found[:-1].transform(X), Y)
    assert drlogit.verify(scaled, X, Y, path).ok
    assert not drlogit.verify(found[-1], X, Y, path).ok
    several = stated.classifier(0.05).fit(X, labels)
    several.save_proof(path, X, labels)
    assert drlogit.verify(several, X, labels, path).ok
    assert "or data" in drlogit.verify(several, 1.01 * X, labels, path).reason
    with pytest.raises(ValueError, match="a fitted drlogit model, got OneVsRestClassifier"):
        drlogit.verify(OneVsRestClassifier(plain).fit(X, labels), X, labels, path)


def table(n=150):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "owner": rng.random(n) < 0.5,
            "income": rng.lognormal(size=n),
        }
    )
    score = frame["age"] / 20.0 + (frame["job"] == "b") - frame["owner"] + rng.logistic(size=n)
    return frame, np.where(score > 2.5, "yes", "no")


def test_models_of_tables(tmp_path):
    frame, y = table()
    frame.loc[:3, "income"] = np.nan
    model = stated.classifier(
        0.05, 2.0, feature_costs={"age": inf}, bounds={"income": (0.0, 50.0)},
        missing="median", class_weight="balanced",
    ).fit(frame, y)  # fmt: skip
    model.save_proof(tmp_path / "proof.npz", frame, y)
    assert drlogit.verify(model, frame, y, tmp_path / "proof.npz").ok
    assert "no proof" in drlogit.verify(model, frame, y).reason
    other = frame.assign(job=frame["job"].replace("a", "b"))
    assert not drlogit.verify(model, other, y, tmp_path / "proof.npz").ok
    # Where samples are few, equal ones are merged; those without weight are left out.
    few, labels, weights = frame.loc[[*range(5, 17)] * 2], np.tile(y[5:17], 2), np.arange(24.0) % 5
    model = stated.classifier(0.05, 2.0, categorical_features=["age", "job", "owner"])
    model.fit(few, labels, weights).save_proof(tmp_path / "few.npz", few, labels, weights)
    found = drlogit.verify(model, few, labels, tmp_path / "few.npz", sample_weight=weights)
    assert found.ok, found.reason


def test_command_line(tmp_path, capsys):
    """Tables, svmlight text; exit code 4 where nothing is proven."""
    data, file, proof = (str(tmp_path / name) for name in ("d.csv", "m.json", "p.npz"))
    frame, y = table()
    frame.assign(y=y).to_csv(data, index=False)
    options = ["--target", "y", "--tolerate", "age=0", "--class-weight", "balanced"]
    assert main(["fit", data, *options, "--quiet", "-o", file, "--proof", proof]) == 0
    assert main(["verify", file, data, "--proof", proof]) == 0
    assert "proven: no linear model" in capsys.readouterr().out
    assert main(["verify", file, data, "--proof", data]) == 4
    assert "cannot be read" in capsys.readouterr().out
    frame.assign(y=y, owner=~frame["owner"]).to_csv(data, index=False)
    assert main(["verify", file, data, "--proof", proof, "--json"]) == 4
    assert "or data" in capsys.readouterr().out
    data = str(tmp_path / "d.svm")
    dump_svmlight_file(X, Y, data, zero_based=False)
    assert main(["fit", data, "--quiet", "-o", file, "--proof", proof]) == 0
    assert main(["verify", file, data, "--proof", proof]) == 0
    assert capsys.readouterr().out.count("proven") == 1


# --- fits of other kinds ------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize(
    "ball",
    [
        {"epsilon": 0.1, "kappa": 0.5, "norm": "l2"},
        {"epsilon": 0.1, "kappa": 0.5, "norm": "linf", "fit_intercept": False},
        {"epsilon": 1.0, "kappa": inf, "feature_costs": [inf, 1.0, 1.0]},
        *map(domain_zoo.generated, (24, 25, 27)),
    ],
)
def test_fits_that_were_stopped_are_proven(ball, most):
    """Their dual points are out of balance and out of budget."""
    case = PLAIN | ball
    found = proven(stated.solve(**case, max_iter=most), case)
    assert found.ok, found.reason


def test_plain_fits_flip_no_label_even_without_weight() -> None:
    """The last sample counts for nothing and lies further out than any λ of a separated fit."""
    X = np.array([[1.0, 0.5], [-1.0, 0.3], [1.2, -1.0], [-0.7, -0.2], [50.0, 1.0]])
    y, weights = np.array([1, -1, 1, -1, 1]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    fit = stated.solve(X, y, epsilon=0.0, kappa=1.0, sample_weight=weights)
    assert not fit.flip_share.any()
    assert drlogit.verify(fit, X, y, sample_weight=weights).ok


# --- several classes ------------------------------------------------------------------------------


BY_LABEL = {0: 1.0, 1: inf, 2: 0.0}
BY_SAMPLE = np.random.default_rng(0).choice([0.0, 0.5, 2.0, inf], 80)


def three_classes():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 4))
    return X, (X[:, :3] + rng.gumbel(size=(80, 3))).argmax(axis=1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kappa", [1.0, inf, BY_LABEL, BY_SAMPLE])
@pytest.mark.parametrize("more", [{}, {"feature_costs": [1.0, 2.0, inf, 1.0]}])
def test_proofs_of_several_classes(norm, kappa, more, tmp_path):
    X, y = three_classes()
    X[:, 1] += 1e4
    weights = np.linspace(0.5, 2.0, y.size)
    fit = stated.solve(X, y, epsilon=0.05, kappa=kappa, norm=norm, sample_weight=weights, **more)
    fit.save_proof(tmp_path / "p.npz")
    again = kappa if np.ndim(kappa) == 1 else None
    data = (X, y, tmp_path / "p.npz")
    found = drlogit.verify(fit, *data, sample_weight=weights, kappa=again)
    assert found, found.reason
    if again is not None:
        assert not drlogit.verify(fit, *data, sample_weight=weights, kappa=0.5 * again)
    assert found.gap <= fit.gap + 4.0 * slack(fit.objective)
    assert found.lower <= fit.objective


def test_other_labels_are_other_data(tmp_path):
    """Labels 1 and 2 exchanged: neither bound is what the fit claims."""
    X, y = three_classes()
    fit = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    fit.save_proof(tmp_path / "p.npz")
    exchanged = np.array([0, 2, 1])[y]
    assert drlogit.verify(fit, X, y, tmp_path / "p.npz")
    found = drlogit.verify(fit, X, exchanged, tmp_path / "p.npz")
    assert not found
    assert "or data" in found.reason


def test_flips_spend_the_radius():
    """All labels at random, as the predictions: only what that costs speaks against it."""
    X, y = three_classes()
    fit = stated.solve(X, y, epsilon=0.05, kappa=1.0)
    even = np.full((y.size, 3), 1.0 / 3.0)
    constant = replace(fit, coef=np.zeros((3, 4)), intercept=np.zeros(3))  # promises log 3
    forged = replace(constant, dual=replace(fit.dual, probabilities=even, labels=even))
    assert drlogit.verify(forged, X, y).lower <= fit.objective


@pytest.mark.parametrize("part", ["probabilities", "labels", "flow"])
def test_what_is_no_proof(part):
    X, y = three_classes()
    fit = stated.solve(X, y, epsilon=0.02, kappa=inf, norm="l2")
    good = getattr(fit.dual, part)
    for wrong in (good[:-1], good + 0.1, -good, np.full_like(good, np.nan)):
        spoiled = replace(fit, dual=replace(fit.dual, **{part: wrong}))
        found = drlogit.verify(spoiled, X, y)
        assert not found
        assert found.lower <= fit.objective


@pytest.mark.parametrize(("scale", "shift"), [(1e-3, 0.0), (1.0, 100.0)])
def test_what_a_wrong_dual_point_costs_does_not_depend_on_units(scale, shift):
    """The class of models is about deviations of free columns, small ones too."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1.0, 1.0, 0.3] + [0.0, 0.0, 5.0]
    y = X @ [1.0, -1.0, 0.5] + rng.logistic(size=60) > 2.5
    found = []
    for a, b in ((1.0, 0.0), (scale, shift)):
        Z = X * [1.0, 1.0, a] + [0.0, 0.0, b]
        costs = np.array([1.0, np.inf, np.inf])
        result = stated.solve(Z, y, epsilon=0.05, norm="l2", feature_costs=costs)
        s = result.dual.s + 1e-5 * (np.arange(60) < 7)
        wrong = replace(result, dual=replace(result.dual, s=s), dual_objective=0.0)
        found.append(drlogit.verify(wrong, Z, y).lower)
    assert 0.1 < found[0] < result.dual_objective - 1e-3
    assert found[1] == pytest.approx(found[0], abs=1e-6)
