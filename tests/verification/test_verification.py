"""``verify`` judges without the code that it judges; here it is judged, with fifty digits."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from types import ModuleType

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import drlogit
import fenced
from damaged import damaged_copies
from drlogit.cli import main
from drlogit.dual import bound, certify, pair, sums
from drlogit.problem.ball import Ball
from drlogit.problem.problem import build_problem
from drlogit.problem.proof import Proof
from drlogit.verification.instance import Instance, exact_sum, sums_by_key
from drlogit.verification.proof_file import BrokenProofError, read_proof

mp.mp.dps = 50


def samples(seed, n_samples=40, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    y = np.sign(X @ rng.standard_normal(n_features) + rng.standard_normal(n_samples) + 0.2)
    y[:2] = 1.0, -1.0
    return X, y


def tiny(seed):
    """Problems of all kinds that fifty digits can do."""
    rng = np.random.default_rng(seed)
    X, y = samples(seed, int(rng.integers(4, 14)), int(rng.integers(1, 4)))
    if seed % 10 == 4:  # with an intercept; without one, that is another problem
        X += 1e6
    if seed % 7 == 3:
        X[:, 0] = 1000.0 * np.rint(X[:, 0])
    options = {
        "epsilon": 0.0 if seed % 11 == 5 else float(10.0 ** rng.uniform(-3, 0)),
        "kappa": (1.0, inf, 0.3)[seed % 3],
        "norm": ("l1", "l2", "linf")[(seed // 3) % 3],
        "fit_intercept": seed % 2 == 0,
    }
    if seed % 4 == 1:
        costs = rng.uniform(0.5, 2.0, X.shape[1])
        costs[rng.random(costs.size) < 0.5] = inf
        options["feature_costs"] = costs
    if seed % 3 == 2:
        options["sample_weight"] = rng.uniform(0.0, 3.0, y.size)
    return X, y, options


class Exact:
    """(P) and (D) with fifty digits, straight from their formulas."""

    def __init__(self, X, y, options):
        self.epsilon, self.kappa = mp.mpf(options["epsilon"]), mp.mpf(options["kappa"])
        self.norm = options["norm"]
        costs = options.get("feature_costs", np.ones(X.shape[1])).tolist()
        rows = [[mp.mpf(v) * int(t) for v in row] for row, t in zip(X.tolist(), y, strict=True)]
        if options["fit_intercept"]:
            rows = [[*row, mp.mpf(int(t))] for row, t in zip(rows, y, strict=True)]
            costs = [*costs, inf]
        self.Z, self.costs, self.y = rows, costs, y
        self.intercept = options["fit_intercept"]
        weights = [mp.mpf(v) for v in options.get("sample_weight", np.ones(y.size)).tolist()]
        self.w = [v / mp.fsum(weights) for v in weights]
        self.free = [j for j, c in enumerate(costs) if c == inf or self.epsilon == 0]

    def length(self, values, norm):
        if norm == "l1":
            return mp.fsum(map(abs, values))
        if norm == "linf":
            return max(map(abs, values), default=mp.mpf(0))
        return mp.sqrt(mp.fsum(v * v for v in values))

    def primal(self, coefficients):
        """The promise of a model, at the best of the λ where the objective can bend."""
        v = [mp.mpf(c) for c in coefficients]
        u = [mp.fsum(z * c for z, c in zip(row, v, strict=True)) for row in self.Z]
        plain = mp.fsum(w * mp.log1p(mp.exp(-m)) for w, m in zip(self.w, u, strict=True))
        if self.epsilon == 0:
            return plain
        dual = {"l1": "linf", "linf": "l1", "l2": "l2"}[self.norm]
        kept = [j for j in range(len(v)) if j not in self.free]
        least = self.length([v[j] / mp.mpf(self.costs[j]) for j in kept], dual)
        if self.kappa == mp.inf:
            return plain + self.epsilon * least
        return plain + min(
            self.epsilon * lam
            + mp.fsum(
                w * max(m - self.kappa * lam, mp.mpf(0)) for w, m in zip(self.w, u, strict=True)
            )
            for lam in [least, *(m / self.kappa for m in u if m / self.kappa > least)]
        )

    def dual(self, s, a):
        """The bound of (s, a): scaled into the ball, and charged for its equations."""
        s, a = [mp.mpf(v) for v in s.tolist()], [mp.mpf(v) for v in a.tolist()]
        g = self.sums(s, a)
        columns = range(len(g))
        mean = [mp.mpf(0)] * len(g)
        if self.intercept:
            mean = [
                mp.fsum(w * z for w, z in zip(self.w, self.column(j), strict=True))
                for j in columns[:-1]
            ]
            g = [*(v - m * g[-1] for v, m in zip(g[:-1], mean, strict=True)), g[-1]]
            mean.append(mp.mpf(0))
        kept = [j for j in columns if j not in self.free]
        spent = self.length([g[j] * mp.mpf(self.costs[j]) for j in kept], self.norm)
        flips = mp.fsum(w * t for w, t in zip(self.w, a, strict=True))
        spent += self.kappa * flips if flips else 0
        charge = mp.mpf(0)
        for j in self.free:
            square = mp.fsum(
                w * (z - mean[j]) ** 2 for w, z in zip(self.w, self.column(j), strict=True)
            )
            charge += mp.mpf(bound.ADMITTED) * abs(g[j]) / mp.sqrt(square) if square else 0
        factor = min(mp.mpf(1), self.epsilon / spent) if spent else mp.mpf(1)
        value = mp.fsum(w * entropy(t) for w, t in zip(self.w, s, strict=True))
        return factor * (value - charge)

    def column(self, j):
        """Without labels."""
        return [row[j] * int(t) for row, t in zip(self.Z, self.y, strict=True)]

    def sums(self, s, a):
        parts = [w * (p - q) for w, p, q in zip(self.w, s, a, strict=True)]
        return [
            mp.fsum(r * row[j] for r, row in zip(parts, self.Z, strict=True))
            for j in range(len(self.costs))
        ]


def entropy(s):
    return -s * mp.log(s) - (1 - s) * mp.log1p(-s) if 0 < s < 1 else mp.mpf(0)


def check_with_fifty_digits(seed):
    """lower ≤ (exact bound) ≤ optimum ≤ (exact promise) ≤ upper, and next to nothing is lost."""
    X, y, options = tiny(seed)
    result = drlogit.solve(X, y, **options)
    found = drlogit.verify(result, X, y, sample_weight=options.get("sample_weight"))
    exact = Exact(X, y, options)
    coefficients = result.coef.tolist() + [result.intercept] * options["fit_intercept"]
    promise = exact.primal(coefficients)
    value = max(exact.dual(result.dual.s, result.dual.flip_share), mp.mpf(0))
    assert value <= promise
    assert promise <= found.upper <= promise + mp.mpf("1e-11")
    assert found.lower <= value
    assert found.lower <= promise
    assert found.ok, found.reason
    return float(value - found.lower), float(found.upper - promise)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_agree_with_fifty_digits(seed):
    lost, _ = check_with_fifty_digits(seed)
    assert lost <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_disturbed_points_prove_nothing_false(seed):
    """With weights over twelve orders, at points that were disturbed."""
    X, y, options = tiny(seed)
    rng = np.random.default_rng(seed)
    X = np.column_stack([X, rng.standard_normal(y.size)])
    options |= {"sample_weight": 10.0 ** rng.uniform(-12, 0, y.size), "feature_costs": None}
    if seed % 2:
        options["feature_costs"] = np.where(np.arange(X.shape[1]) < 2, inf, 1.0)
    else:
        options["epsilon"] = 0.0
    result = drlogit.solve(X, y, **options)
    weights = options["sample_weight"]
    exact = Exact(X, y, {k: v for k, v in options.items() if v is not None})
    for size in (0.0, 1e-16, 1e-12, 1e-3):
        s = np.clip(result.dual.s * (1.0 + size * rng.standard_normal(y.size)), 0.0, 1.0)
        point = Proof(s[None], result.dual.flip_share[None], ("",), ("",), "")
        found = drlogit.verify(result, X, y, point, sample_weight=weights, tol=-1.0)
        assert found.lower <= max(exact.dual(s, result.dual.flip_share), 0)


def test_sums_are_within_their_errors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * 10.0 ** rng.uniform(-8, 8, (300, 4))
    r, v = rng.standard_normal(300), rng.standard_normal(4)
    for matrix in (X, sp.csr_array(X)):
        given = Instance(
            matrix, np.ones(300), np.ones(300), Ball(0.1, 1.0, "l1"), np.ones(300), v, 1e9 / 3.0
        )
        shift = given.shift
        found, _ = given.columns(r, np.abs(r), 0)
        for j in range(4):
            exact = sum(
                (Fraction(x) - Fraction(shift[j])) * Fraction(t)
                for x, t in zip(X[:, j], r, strict=True)
            )
            assert abs(Fraction(found.value[j]) - exact) <= Fraction(found.error[j])
        for i in range(0, 300, 37):
            u = sum(Fraction(x) * Fraction(t) for x, t in zip(X[i], v, strict=True))
            u += Fraction(1e9 / 3.0)
            assert abs(Fraction(given.margins.value[i]) - u) <= Fraction(given.margins.error[i])


def test_sums_are_rounded_once():
    rng = np.random.default_rng(0)
    for wide in range(8):
        x = rng.standard_normal(3000) * 10.0 ** rng.uniform(-40 * wide, 10 * wide, 3000)
        x = np.concatenate([x, -x[::-1] * (1.0 + 1e-15)])
        assert exact_sum(x) == math.fsum(x.tolist())
        keys = rng.integers(5, size=x.size)
        for key, total in enumerate(sums_by_key(keys, x, 5)):
            assert total == math.fsum(x[keys == key].tolist())


X, Y = samples(1)
BALL = {"epsilon": 0.05, "kappa": 1.0}


@pytest.fixture(scope="module")
def fitted():
    return drlogit.solve(X, Y, **BALL)


def test_every_way_to_fail_has_its_sentence(fitted, tmp_path):
    path = tmp_path / "proof.npz"
    fitted.save_proof(path, X, Y)
    good = drlogit.verify(fitted, X, Y, path)
    assert good.ok
    assert good.lower <= fitted.objective
    assert good.gap <= 1e-6
    assert "no linear model can promise less" in good.reason

    def refused(sentence, model=fitted, features=X, labels=Y, proof=path, **ball):
        found = drlogit.verify(model, features, labels, proof, **ball)
        assert not found.ok
        assert found.lower == 0.0
        assert sentence in found.reason
        assert "\n" not in found.reason

    other = X.copy()
    other[3, 1] = np.nextafter(other[3, 1], 9.0)
    refused("other data", features=other)
    refused("other data", labels=np.where(np.arange(Y.size) == 5, -Y, Y))
    refused("other data", features=X[:-1], labels=Y[:-1])
    refused("other data", sample_weight=np.ones(Y.size))
    refused("wrong ball", epsilon=0.06)
    refused("wrong ball", norm="l2")
    refused("wrong ball", feature_costs=[1.0, 2.0, 1.0])
    refused("other coefficients", model=replace(fitted, coef=fitted.coef * (1.0 + 1e-15)))
    refused("no proof", model=replace(fitted, dual=None), proof=None)

    def proof(**changes):
        return replace(fitted.proof(), **changes)

    out = fitted.dual.s[None].copy()
    out[0, 3] = 1.5
    refused("infeasible dual point: s", proof=proof(s=out))
    flips = np.ones_like(out)
    refused("labels are flipped", proof=proof(flip_share=flips, ball=""), kappa=inf)
    weak = drlogit.verify(fitted, X, Y, proof(s=np.full_like(out, 0.5)))
    assert not weak.ok
    assert "infeasible dual point: it breaks" in weak.reason
    assert 0.0 <= weak.lower < fitted.objective
    low = drlogit.verify(fitted, X, Y, replace(fitted.proof(), s=0.9 * out.clip(0.0, 1.0)))
    assert not low.ok
    assert "not the" in low.reason
    boast = drlogit.verify(replace(fitted, objective=fitted.objective - 1e-9), X, Y, path)
    assert not boast.ok
    assert "other coefficients" in boast.reason
    with pytest.raises(ValueError, match="no dual point"):
        replace(fitted, dual=None).save_proof(path)
    with pytest.raises(ValueError, match="epsilon and kappa"):
        drlogit.verify((fitted.coef, fitted.intercept), X, Y, path)


def test_class_weights_are_counted(tmp_path):
    model = drlogit.DRLogisticRegression(**BALL, class_weight={-1: 3.0, 1: 1.0}).fit(X, Y)
    model.save_proof(tmp_path / "proof.npz", X, Y)
    assert drlogit.verify(model, X, Y, tmp_path / "proof.npz").ok
    plain = (model.coef_, model.intercept_)
    found = drlogit.verify(plain, X, Y, tmp_path / "proof.npz", **BALL)
    assert "other data" in found.reason


def test_where_every_label_can_be_flipped_the_least_lambda_is_best():
    features = (Y * (1.0 + np.abs(X[:, 0])))[:, None]
    found = drlogit.verify((np.ones(1), 0.0), features, Y, epsilon=0.3, kappa=0.2)
    u = Y * features[:, 0]  # all above κλ, with λ = 1
    assert found.upper == pytest.approx(0.3 + np.mean(np.log1p(np.exp(-u)) + u - 0.2), abs=1e-12)


def test_a_plain_model_is_judged_by_its_gap(fitted, tmp_path):
    fitted.save_proof(tmp_path / "proof.npz")
    plain = (fitted.coef, fitted.intercept)
    assert drlogit.verify(plain, X, Y, tmp_path / "proof.npz", **BALL).ok
    tight = drlogit.verify(plain, X, Y, tmp_path / "proof.npz", **BALL, tol=1e-14)
    assert not tight.ok
    assert "a gap of 1e-14" in tight.reason


def test_tampered_proofs_are_refused(fitted, tmp_path):
    path = tmp_path / "proof.npz"
    fitted.save_proof(path, X, Y)
    contents, rng = path.read_bytes(), np.random.default_rng(0)
    for damaged in damaged_copies(contents, rng, 60):
        path.write_bytes(damaged)
        try:
            proof = read_proof(path)
        except BrokenProofError:
            assert not drlogit.verify(fitted, X, Y, path).ok
            continue
        assert proof.digest == fitted.proof(proof.data[0]).digest  # a bit that means nothing
    # Proofs that are whole, but wrong: with a digest of their own.
    for _ in range(40):
        s, a = fitted.dual.s[None].copy(), fitted.dual.flip_share[None].copy()
        i = int(rng.integers(s.size))
        if rng.random() < 0.5:
            s[0, i] = rng.random()
        else:
            a[0, i] = 1.0 - np.rint(a[0, i])
        found = drlogit.verify(fitted, X, Y, Proof(s, a, ("",), ("",), ""))
        assert not found.ok
        assert found.lower <= fitted.objective


@pytest.mark.parametrize("kind", ["csr", "float32", "blocks", "memmap", "dask", "list"])
def test_samples_are_the_same_wherever_they_are(kind, tmp_path):
    narrow = X.astype(np.float32)
    wide = narrow.astype(np.float64)
    result = drlogit.solve(wide, Y, **BALL)
    result.save_proof(tmp_path / "proof.npz", wide, Y)
    stored, labels = wide, Y
    if kind == "csr":
        stored = sp.csr_array(wide)
    elif kind == "float32":
        stored = narrow
    elif kind == "blocks":
        stored = drlogit.RowBlocks.from_array(wide, 7)
    elif kind == "memmap":
        np.save(tmp_path / "x.npy", wide)
        stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "list":
        stored = wide.tolist()
    else:
        da = pytest.importorskip("dask.array")
        stored, labels = da.from_array(wide, chunks=(11, 2)), da.from_array(Y, chunks=11)
        own = drlogit.solve(stored, labels, **BALL)
        own.save_proof(tmp_path / "own.npz", stored, labels)
        assert drlogit.verify(own, wide, Y, tmp_path / "own.npz").ok
    found = drlogit.verify(result, stored, labels, tmp_path / "proof.npz")
    assert found.ok, found.reason


def test_all_levels_of_a_category_beside_an_intercept():
    rng = np.random.default_rng(3)
    group = rng.integers(4, size=200)
    levels = np.eye(4)[group]
    other = rng.standard_normal((200, 2))
    features = np.hstack([levels, other, 1e5 + rng.integers(50, size=(200, 1))])
    labels = np.sign(other[:, 0] + group - 1.5 + rng.standard_normal(200))
    costs = [inf] * 4 + [1.0, 1.0, inf]
    result = drlogit.solve(features, labels, **BALL, feature_costs=costs)
    assert drlogit.verify(result, features, labels).ok
    # A level that is no longer quite the rest: no proof, and no false one either.
    features[0, 0] = 1e-9
    found = drlogit.verify(result, features, labels)
    assert not found.ok
    assert "equations of free" in found.reason


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-700])
def test_immovable_features_whose_squares_are_no_doubles(unit):
    """Beside one that is there twice."""
    X, y = samples(3)
    X = np.column_stack([X, 2.0 * X[:, 2]])
    options = {"epsilon": 0.05, "kappa": inf, "feature_costs": [inf, 1.0, inf, inf]}
    result = drlogit.solve(X, y, **options)
    X[:, 0] *= unit
    coef = result.coef / [unit, 1.0, 1.0, 1.0]
    assert drlogit.verify(replace(result, coef=coef), X, y).ok


@pytest.mark.parametrize("factor", [1.0, -2.0, 3.0])
def test_immovable_features_in_two_units(factor):
    kind = np.rint(2.0 * X[:, :1])
    features = np.hstack([kind, X[:, 1:], factor * kind])
    costs = [inf, 1.0, 1.0, inf]
    result = drlogit.solve(features, Y, **BALL, feature_costs=costs)
    assert drlogit.verify(result, features, Y).ok


def test_estimators_and_files(tmp_path, capsys):
    model = drlogit.DRLogisticRegression(**BALL).fit(X, Y)
    solved = drlogit.solve(X, Y, **BALL)
    solved.save_proof(tmp_path / "proof.npz", X, Y)
    assert drlogit.verify(model, X, Y, tmp_path / "proof.npz").ok
    data, file, proof = (str(tmp_path / name) for name in ("d.csv", "m.json", "p.npz"))
    table = np.column_stack([5.0 * X[:, 0] + 400.0, X[:, 1:], Y])
    np.savetxt(data, table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    options = ["--standardize", "--balanced", "--immovable", "b", "--epsilon", "0.05", "--quiet"]
    assert main(["fit", data, *options, "-o", file, "--proof", proof]) == 0
    assert main(["verify", file, data, "--proof", proof]) == 0
    assert "proven: no linear model" in capsys.readouterr().out
    table[0, 0] += 1.0
    np.savetxt(data, table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    assert main(["verify", file, data, "--proof", proof, "--json"]) == 4
    assert "other data" in capsys.readouterr().out
    assert main(["verify", file, data, "--proof", data]) == 4
    assert "cannot be read" in capsys.readouterr().out


def test_everything_that_is_fitted_can_be_proven(tmp_path):
    """Searches, pipelines, several classes: or a sentence says what to ask instead."""
    path, grid = tmp_path / "proof.npz", {"epsilons": 2, "cv": 2}
    labels = np.where(X[:, 0] > 0.3, "b", np.where(X[:, 1] > 0.0, "c", "a"))
    plain = drlogit.DRLogisticRegression(0.05)
    chosen = drlogit.DRLogisticRegressionCV(**grid, class_weight="balanced").fit(X, Y)
    chosen.save_proof(path, X, Y)
    assert drlogit.verify(chosen, X, Y, path).ok
    scaled = GridSearchCV(make_pipeline(StandardScaler(), plain), {}, cv=2).fit(X, Y)
    found = scaled.best_estimator_
    found[-1].save_proof(path, found[:-1].transform(X), Y)
    assert drlogit.verify(scaled, X, Y, path).ok
    assert "other data" in drlogit.verify(found[-1], X, Y, path).reason
    several = drlogit.DRLogisticRegressionCV(**grid).fit(X, labels)
    several.save_proof(path, X, labels)
    assert all(drlogit.verify(several, X, labels, path, of_class=label).ok for label in "abc")
    with pytest.raises(ValueError, match="of_class must be one of 'a', 'b', 'c', got None"):
        drlogit.verify(several, X, labels, path)
    with pytest.raises(ValueError, match="of_class is for models of several classes"):
        drlogit.verify(chosen, X, Y, of_class=1)
    with pytest.raises(ValueError, match="of_class is for models of several classes"):
        drlogit.verify(chosen.results_[0], X, Y, of_class=1)
    apart = OneVsRestClassifier(plain).fit(X, labels)
    with pytest.raises(ValueError, match=r"verify estimators_\[k\]"):
        drlogit.verify(apart, X, labels, path)
    apart.estimators_[1].save_proof(path, X, labels == "b")
    assert drlogit.verify(apart.estimators_[1], X, labels == "b", path).ok


def test_files_in_blocks(tmp_path, capsys):
    data, file, proof = (str(tmp_path / name) for name in ("d.svm", "m.json", "p.npz"))
    dump_svmlight_file(X, Y, data, zero_based=False)
    assert main(["fit", data, "--block-rows", "11", "--quiet", "-o", file, "--proof", proof]) == 0
    for options in ([], ["--block-rows", "7"]):
        assert main(["verify", file, data, "--proof", proof, *options]) == 0
    assert (
        main(["verify", file, data, "--proof", proof, "--block-rows", "7", "--weights", "w"]) == 1
    )
    assert "no --weights" in capsys.readouterr().err


def test_several_classes(tmp_path, capsys):
    data, file, proof = (str(tmp_path / name) for name in ("d.csv", "m.json", "p.npz"))
    classes = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.4, 0.4])
    np.savetxt(data, np.column_stack([X, classes]), delimiter=",", header="a,b,c,y", comments="")
    assert main(["fit", data, "--quiet", "-o", file, "--proof", proof]) == 0
    assert main(["verify", file, data, "--proof", proof]) == 0
    assert capsys.readouterr().out.count("proven (class") == 3


#: The modules of the certificate, in the order of their imports.
CERTIFICATE = bound, sums, pair, certify

#: What a careless hand could do to the certificate: what stood there, and what stands there now.
MUTANTS = {
    "1e-9 more": ("value = factor * kept", "value = 1e-9 + factor * kept"),
    "1e-9 less promised": ("return lam, value + _rounding(problem, size, value)\n\n\ndef primal_w",
                           "return lam, value - 1e-9\n\n\ndef primal_w"),
    "no scaling": ("factor = 1.0 if used <= epsilon else epsilon / used * _STRICTLY",
                   "factor = 1.0"),
    "half of the norm": ("used = coordinates.used(sums.gradient, rounding) +",
                         "used = 0.5 * coordinates.used(sums.gradient, rounding) +"),
    "flips for nothing": ("+ sums.spent * (1.0 + rounding)", "+ 0.0"),
    "labels lost": ("signed = block.y * r", "signed = 1.0 * r"),
    "a added": ("totals(block, w * (s - a),", "totals(block, w * (s + a),"),
    "a dropped": ("totals(block, w * (s - a),", "totals(block, w * s,"),
    "not charged": ("(1.0 - rounding) - charge", "(1.0 - rounding)"),
    "flips not scaled": ("return (factor * pair[0], factor * pair[1]), ()",
                         "return (factor * pair[0], pair[1]), ()"),
}  # fmt: skip


#: Balls whose dual points are wrong in as many ways as there are terms.
BALLS = [
    {"epsilon": 0.05, "kappa": 1.0},
    {"epsilon": 0.1, "kappa": 0.5, "norm": "l2"},
    {"epsilon": 0.1, "kappa": 0.5, "norm": "linf", "fit_intercept": False},
    {"epsilon": 0.1, "kappa": inf, "feature_costs": [inf, 1.0, 1.0]},
    {"epsilon": 1.0, "kappa": inf, "feature_costs": [inf, 1.0, 1.0]},
]


@cache
def solved():
    """Each ball with its samples, problem and solution."""
    cases = [(*samples(seed), options) for seed, options in enumerate(BALLS)]
    return [
        (X, y, build_problem(X, y, **options), drlogit.solve(X, y, **options))
        for X, y, options in cases
    ]


def refuted(module):
    """How many certificates of a module, of points near and far from optimal, are refuted."""
    count = 0
    for X, y, problem, result in solved():
        best = problem.join(result.coef, result.intercept)
        # The first bound that comes is enough, or the best one is wanted.
        half = problem.rows.scatter(np.full(y.size, 0.5 * np.isfinite(problem.kappa)))
        points = product((best, best + 0.3, -0.3 * best), (10.0, 0.0), (None, half))
        for coefficients, tol, shares in points:
            found = module.certify(problem, coefficients, tol=tol, flip_share=shares)
            coef, intercept = problem.split(coefficients)
            claim = replace(
                result, coef=coef, intercept=intercept,
                objective=found.primal, dual_objective=found.dual,
                dual=found.dual_point(problem),
            )  # fmt: skip
            verdict = drlogit.verify(claim, X, y)
            assert verdict.lower <= result.objective
            count += not verdict.ok
    return count


def test_the_checker_of_the_documentation(fitted):
    """A hundred lines at most, NumPy alone, and the same bounds."""
    page = Path(__file__).parents[2] / "docs" / "proofs.md"
    code = [text for language, text in fenced.blocks(page) if language == "python"][3:6]
    lines = "".join(code).splitlines()
    assert len(lines) <= 100
    assert {line for line in lines if "import" in line} == {"import math", "import numpy as np"}
    session = {}
    exec(compile("".join(code), str(page), "exec"), session)
    lower, upper = session["lower"], session["upper"]
    for seed, options in enumerate(BALLS):
        X, y = samples(seed)
        result = drlogit.solve(X, y, **options)
        found = drlogit.verify(result, X, y)
        intercept = options.get("fit_intercept", True)
        ball = (
            options["epsilon"],
            options["kappa"],
            options.get("norm", "l1"),
            np.array(options.get("feature_costs", np.ones(3))),
        )
        s, a = result.dual.s, result.dual.flip_share
        high = upper(X, y, result.coef, result.intercept, *ball)
        low = lower(X, y, s, a, *ball, intercept)
        assert found.lower - 1e-8 <= low <= result.objective
        assert result.dual_objective <= high <= found.upper + 1e-12
        assert lower(X, y, np.full_like(s, 0.6), a, *ball, intercept) < found.lower
        assert lower(X, y, s + 1.0, a, *ball, intercept) == 0.0
        if intercept:
            assert lower(X, y, np.where(y > 0, s, 0.0), a, *ball, intercept) == 0.0


def test_certificates_are_proven():
    assert refuted(certify) == 0


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda name: name.replace(" ", "-"))
def test_mutants_of_the_certificate_are_caught(mutant, monkeypatch):
    sources = [Path(module.__file__).read_text("utf-8") for module in CERTIFICATE]
    changes = MUTANTS[mutant]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert sum(old in source for source in sources) == 1
        sources = [source.replace(old, new) for source in sources]
    for module, source in zip(CERTIFICATE, sources, strict=True):
        wrong = ModuleType(module.__name__)
        wrong.__package__ = "drlogit.dual"
        monkeypatch.setitem(sys.modules, wrong.__name__, wrong)  # for those that import it
        exec(compile(source, f"wrong {wrong.__name__}", "exec"), wrong.__dict__)
    assert refuted(wrong) > 0
