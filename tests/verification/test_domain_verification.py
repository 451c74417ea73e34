"""Proofs with categories and bounds: judged with fifty digits, tampered with, and on tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from types import ModuleType

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

import domain_zoo
import drlogit
from damaged import damaged_copies
from drlogit.cli import main
from drlogit.dual import bound, certify, pieces
from drlogit.engine.tables import interior_point_with_domains
from drlogit.problem.problem import build_problem
from drlogit.problem.result import Monitor
from drlogit.verification.proof_file import BrokenProofError, read_proof

mp.mp.dps = 50

pd = pytest.importorskip("pandas")


def checked(case, result, proof=None, **changes):
    """What ``verify`` says about a result of a case."""
    case = case | changes
    return drlogit.verify(result, case["X"], case["y"], proof, sample_weight=case["sample_weight"])


class Exact:
    """The adversary with fifty digits: every label, category and end of every sample."""

    def __init__(self, case, coef, intercept):
        beta = [mp.mpf(v) for v in coef.tolist()]
        self.epsilon, kappa = mp.mpf(case["epsilon"]), case["kappa"]
        given = case["sample_weight"]
        weights = [mp.mpf(v) for v in (np.ones(len(case["y"])) if given is None else given)]
        self.w = [v / mp.fsum(weights) for v in weights]
        self.lines = []
        for i, y in enumerate(case["y"].tolist()):
            lines = []
            for x, cost in domain_zoo.everywhere(case, i, steps=2, number=mp.mpf):
                u = y * (mp.fsum(b * mp.mpf(v) for b, v in zip(beta, x, strict=True)) + intercept)
                lines.append((mp.log1p(mp.exp(-u)), cost))
                if kappa < inf:
                    lines.append((mp.log1p(mp.exp(u)), cost + mp.mpf(kappa)))
            self.lines.append(lines)
        theta = [
            abs(b) / mp.mpf(c)
            for b, c, free in zip(
                beta, case["feature_costs"].tolist(), domain_zoo.open_features(case), strict=True
            )
            if free
        ]
        self.least = {
            "l1": max(theta, default=mp.mpf(0)),
            "l2": mp.sqrt(mp.fsum(t * t for t in theta)),
            "linf": mp.fsum(theta),
        }[case["norm"]]

    def promise(self):
        """``ελ + Σ w max(loss - λ cost)`` at its best λ, by bisection on the slope."""

        def at(lam):
            best = [max((v - lam * c, -c) for v, c in lines) for lines in self.lines]
            value = self.epsilon * lam + mp.fsum(
                w * b[0] for w, b in zip(self.w, best, strict=True)
            )
            return value, self.epsilon + mp.fsum(
                w * b[1] for w, b in zip(self.w, best, strict=True)
            )

        low, high = self.least, self.least + 1
        value, slope = at(low)
        if slope >= 0:
            return value
        while at(high)[1] < 0:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            found, slope = at(middle)
            low, high = (middle, high) if slope < 0 else (low, middle)
            value = min(value, found)
        return value


def entropy(case, result):
    """``Σ q H(s)`` of the dual point with fifty digits."""
    dual = result.dual
    given = case["sample_weight"]
    weights = [mp.mpf(v) for v in (np.ones(len(case["y"])) if given is None else given)]
    total = mp.fsum(weights)

    def entropy_of(s):
        s = mp.mpf(s)
        return -s * mp.log(s) - (1 - s) * mp.log1p(-s) if 0 < s < 1 else mp.mpf(0)

    left = [mp.mpf(1)] * len(weights)
    value = mp.mpf(0)
    for i, share, s in zip(dual.moves.sample, dual.moves.share, dual.moves.s, strict=True):
        left[i] -= mp.mpf(share)
        value += weights[i] * mp.mpf(share) * entropy_of(s)
    assert min(left) >= 0
    stays = zip(weights, left, dual.s, strict=True)
    return (value + mp.fsum(w * q * entropy_of(s) for w, q, s in stays)) / total


def check_with_fifty_digits(seed):
    """lower ≤ Σ q H(s), lower ≤ optimum ≤ promise ≤ upper, and next to nothing is lost."""
    case = domain_zoo.generated(seed, n_samples=5 + seed % 4)
    result = drlogit.solve(**case)
    found = checked(case, result)
    assert found.ok, found.reason
    promise = Exact(case, result.coef, result.intercept).promise()
    assert promise <= found.upper <= promise + mp.mpf("1e-11")
    assert found.lower <= promise
    assert found.lower <= entropy(case, result) + mp.mpf("1e-9")
    best = drlogit.solve(**case, tol=1e-10)
    assert found.lower <= Exact(case, best.coef, best.intercept).promise()
    return result.dual_objective - found.lower


@pytest.mark.parametrize("seed", [6, 12, 16])
def test_bounds_agree_with_fifty_digits(seed):
    assert check_with_fifty_digits(seed) <= 2e-10


@pytest.mark.parametrize("seed", [10, 11, 13, 17, 23, 26, 29, 33])
def test_what_is_certified_is_proven(seed):
    case = domain_zoo.generated(seed)
    result = drlogit.solve(**case)
    assert result.converged
    found = checked(case, result)
    assert found.ok, found.reason
    assert found.gap <= result.gap + 1e-9


CASE = domain_zoo.generated(4, n_samples=30)


@cache
def fitted():
    return drlogit.solve(**CASE)


def test_every_way_to_fail_has_its_sentence(tmp_path):
    path, result = tmp_path / "proof.npz", fitted()
    result.save_proof(path, CASE["X"], CASE["y"])
    assert checked(CASE, result, path).ok

    def refused(sentence, proof=path, model=result, **changes):
        found = checked(CASE, model, proof, **changes)
        assert not found.ok
        assert found.lower == 0.0
        assert sentence in found.reason
        assert "\n" not in found.reason

    X, group = CASE["X"], CASE["categories"][0]
    other = X.copy()
    other[0, group] = np.roll(other[0, group], 1)
    refused("other data", X=other)
    other[0, group] = 0.5
    refused("a category has one 1", X=other)
    other = X.copy()
    bounded = int(np.flatnonzero(np.isfinite(CASE["bounds"][0]))[0])
    other[3, bounded] = 99.0
    refused("outside its bounds", X=other)
    wide = (CASE["bounds"][0] - 1.0, CASE["bounds"][1])
    ball = drlogit.solve(**CASE | {"bounds": wide}, max_iter=1).ball
    refused("wrong ball", model=replace(result, ball=ball))
    refused("other coefficients", model=replace(result, coef=result.coef * (1.0 + 1e-15)))

    proof, moves = result.proof(), result.dual.moves

    def broken(**changes):
        return replace(proof, moves=(replace(moves, **changes),))

    refused("s of moves", broken(s=moves.s + 1.0))
    refused("s must lie", replace(proof, s=proof.s - 1.0))
    refused("at most 1 for a sample", broken(share=moves.share + 1.0))
    refused("at most 1 for a sample", broken(share=-moves.share))
    refused("of samples that there are", broken(sample=moves.sample + 30))
    refused("order of the samples", broken(sample=moves.sample[::-1]))
    refused("differ in length", broken(share=moves.share[1:]))
    refused("items", broken(items=np.zeros((moves.sample.size, 9), dtype=np.uint8)))
    refused("both of its ends", broken(items=np.full_like(moves.items, 255)))
    refused("among the moves", replace(proof, flip_share=proof.s))
    refused("labels are flipped", replace(proof, ball=""), model=replace(
        result, ball=replace(result.ball, kappa=inf)))  # fmt: skip
    plain = drlogit.solve(X, CASE["y"], epsilon=0.1, kappa=1.0)
    found = drlogit.verify(plain, X, CASE["y"], replace(proof, ball="", model=("",)))
    assert "there are none" in found.reason
    weak = checked(CASE, result, replace(proof, moves=(moves.picked(slice(0)),)))
    assert not weak.ok
    assert weak.lower < result.dual_objective


def test_tampered_proofs_are_refused_or_prove_the_same(tmp_path):
    """Damaged files are refused, or hold what they held; a forged point that is not refused proves
    the very claim: a bound that holds is no forgery, whoever wrote it."""
    path, result, rng = tmp_path / "proof.npz", fitted(), np.random.default_rng(0)
    result.save_proof(path, CASE["X"], CASE["y"])
    contents = path.read_bytes()
    for damaged in damaged_copies(contents, rng, 60):
        path.write_bytes(damaged)
        try:
            proof = read_proof(path)
        except BrokenProofError:
            continue
        assert proof.digest == result.proof(proof.data[0]).digest  # a bit that means nothing
    stood = 0
    for _ in range(40):
        proof, moves = result.proof(), result.dual.moves
        name = str(rng.choice(["own s", "s", "share", "flipped", "items", "sample"]))
        if name == "own s":
            s = proof.s.copy()
            s[0, rng.integers(s.size)] = rng.random()
            proof = replace(proof, s=s)
        else:
            values = getattr(moves, name).copy()
            k = int(rng.integers(len(values)))
            if name in ("s", "share"):
                values[k] = rng.random()
            elif name == "flipped":
                values[k] = ~values[k]
            elif name == "items":
                values[k, 0] ^= np.uint8(1 << int(rng.integers(3, 8)))
            else:
                values = np.sort(rng.integers(30, size=values.size))
            proof = replace(proof, moves=(replace(moves, **{name: values}),))
        found = checked(CASE, result, proof)
        assert found.lower <= result.objective
        if found.ok:  # then it proves the claim
            stood += 1
            assert found.lower >= result.dual_objective - 2e-10
            assert found.upper <= result.objective + 2e-10
    assert stood < 20


@pytest.mark.parametrize("kind", ["csr", "blocks", "dask", "threads"])
def test_samples_are_the_same_wherever_they_are(kind, tmp_path):
    case = domain_zoo.generated(6, n_samples=20)
    X = case["X"]
    if kind == "csr":
        stored = sp.csr_array(X)
    elif kind == "blocks":
        stored = drlogit.RowBlocks.from_array(X, 7)
    elif kind == "dask":
        stored = pytest.importorskip("dask.array").from_array(X, chunks=(11, 2))
    else:
        stored = X
    options = {"tol": 1e-2, "n_jobs": 2 if kind == "threads" else None}
    result = drlogit.solve(**case | {"X": stored}, **options)
    result.save_proof(tmp_path / "proof.npz", stored, case["y"], case["sample_weight"])
    plain = replace(result, dual=None)
    for features in (X, stored):
        found = checked(case | {"X": features}, plain, tmp_path / "proof.npz")
        assert found.ok, found.reason


def test_far_bounds_and_plain_models():
    """A feature far from zero, a model whose λ is to be found, and categories that say so."""
    rng = np.random.default_rng(4)
    X = np.column_stack(
        [20200101.0 + rng.integers(0, 1230, 80), np.eye(3)[rng.integers(3, size=80)]]
    )
    y = np.where(X[:, 0] + 600.0 * X[:, 1] + 300.0 * rng.standard_normal(80) > 20200800.0, 1, -1)
    ball = {
        "epsilon": 0.05,
        "kappa": 1.0,
        "feature_costs": [1e-3, 1.0, 1.0, 1.0],
        "categories": [[1, 2, 3]],
        "bounds": ([20200101.0] + [-inf] * 3, [20201331.0] + [inf] * 3),
    }
    result = drlogit.solve(X, y, **ball)
    assert result.converged
    assert drlogit.verify(result, X, y).ok
    found = drlogit.verify((result.coef, result.intercept), X, y, result.proof(), **ball)
    assert found.ok, found.reason
    assert found.upper <= result.objective + 1e-10


def test_bounds_far_from_the_samples_cost_nothing():
    case = domain_zoo.generated(6, n_samples=20)
    wide = tuple(np.where(np.isfinite(end), 1e9 * np.sign(end), end) for end in case["bounds"])
    result = drlogit.solve(**case | {"bounds": wide})
    assert result.converged
    found = checked(case, result)
    assert found.ok, found.reason


def table(n=150):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "owner": rng.random(n) < 0.5,
            "income": rng.lognormal(size=n),
        }
    )
    frame.loc[:3, "income"] = np.nan
    score = frame["age"] / 20.0 + (frame["job"] == "b") - frame["owner"] + rng.logistic(size=n)
    return frame, np.where(score > 2.5, "yes", "no")


def test_models_of_tables(tmp_path, capsys):
    frame, y = table()
    model = drlogit.DRLogisticRegression(
        0.05, 2.0, feature_costs={"age": inf, "income": "std"}, bounds={"income": (0.0, 50.0)},
        missing="median", class_weight="balanced",
    ).fit(frame, y)  # fmt: skip
    model.save_proof(tmp_path / "proof.npz", frame, y)
    assert drlogit.verify(model, frame, y, tmp_path / "proof.npz").ok
    assert "no proof" in drlogit.verify(model, frame, y).reason
    other = frame.assign(job=frame["job"].replace("a", "b"))
    found = drlogit.verify(model, other, y, tmp_path / "proof.npz")
    assert "other data" in found.reason

    data, file, proof = (str(tmp_path / name) for name in ("d.csv", "m.json", "p.npz"))
    frame.assign(y=y).to_csv(data, index=False)
    options = ["--missing", "mean", "--bounds", "data", "--immovable", "age", "--standardize"]
    assert main(["fit", data, *options, "--quiet", "-o", file, "--proof", proof]) == 0
    assert main(["verify", file, data, "--proof", proof]) == 0
    assert "proven: no linear model" in capsys.readouterr().out
    frame.assign(y=y, owner=~frame["owner"]).to_csv(data, index=False)
    assert main(["verify", file, data, "--proof", proof]) == 4
    assert "other data" in capsys.readouterr().out


def test_proofs_are_of_the_samples_given_even_if_fewer_were_fitted(tmp_path):
    """Where samples are few, equal ones are merged; those without weight are left out."""
    frame, y = table(12)
    frame, y = pd.concat([frame, frame]).fillna(1.0), np.append(y, y)
    weights = np.arange(24.0) % 5
    model = drlogit.DRLogisticRegression(0.05, 2.0, categorical_features=["age", "job", "owner"])
    model.fit(frame, y, weights).save_proof(tmp_path / "proof.npz", frame, y, weights)
    found = drlogit.verify(model, frame, y, tmp_path / "proof.npz", sample_weight=weights)
    assert found.ok, found.reason


#: What a careless hand could do to the certificate: what stood there, and what stands there now.
MUTANTS = {
    "1e-9 more": ("value = factor * kept", "value = 1e-9 + factor * kept"),
    "1e-9 less promised": ("@ domains.widths)\n    return lam, value +",
                           "@ domains.widths)\n    return lam, value - 1e-9 + 0.0 *"),
    "no scaling": ("factor = 1.0 if used <= epsilon else epsilon / used * _STRICTLY",
                   "factor = 1.0"),
    "norm forgotten": ("used = coordinates.used(sums.gradient, rounding) +", "used = 0.0 +"),
    "moves for nothing": ("+ sums.spent * (1.0 + rounding)", "+ 0.0"),
    "not charged": ("(1.0 - rounding) - charge", "(1.0 - rounding)"),
    "groups for nothing": ("total += max(float(upwards +", "total += 0.0 * max(float(upwards +"),
    "bounded features forgotten": ("for categories, high in self.groups:",
                                   "total = 0.0\n        for categories, high in self.groups:"),
    "none forgotten": ("kind[self.none[g]], scale[self.none[g]] = GROUP + g, 2.0",
                       "spread[self.none[g]], scale[self.none[g]] = 0.0, 2.0"),
}  # fmt: skip


@cache
def problems():
    """Problems of all kinds with dual points: as they are, out of balance, and out of budget."""
    found = []
    for seed in (24, 25, 27):
        case = domain_zoo.generated(seed)
        problem = build_problem(**case)
        solution = interior_point_with_domains(problem, tol=1e-6, monitor=Monitor(None, 0))
        points = [problem.rows.run(_tilted, solution.pieces, by)[0] for by in (0.0, 1e-7, 1e-6)]
        for share, some in ((1.0, points), (0.6, points[:1])):
            radius = case["epsilon"] * share
            result = drlogit.solve(**case | {"epsilon": radius})
            found += [(case, problem.with_radius(radius), result, point) for point in some]
    return found


def _tilted(block, point, by):
    """Less of every other piece, so that no equation holds."""
    factor = np.where(np.arange(point.m.size) % 2 == 0, 1.0 - by, 1.0)
    return point._replace(m=point.m * factor), ()


def refuted(module):
    """How many certificates of a module are refuted."""
    return sum(not is_proven(module, *each) for each in problems())


def is_proven(module, case, problem, result, point):
    """Whether the certificate of a dual point is."""
    coefficients = problem.join(result.coef, result.intercept)
    # The first bound that comes is enough: the best one leaves nothing to be charged.
    found = module.certify(problem, coefficients, pieces=point, tol=10.0)
    claim = replace(
        result, objective=found.primal, dual_objective=found.dual, lam=found.lam,
        dual=found.dual_point(problem),
    )  # fmt: skip
    verdict = checked(case, claim)
    assert verdict.lower <= result.objective
    return verdict.ok


def test_certificates_are_proven():
    assert refuted(certify) == 0


#: The modules of the certificate, in the order of their imports.
CERTIFICATE = bound, pieces, certify


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda name: name.replace(" ", "-"))
def test_mutants_of_the_certificate_are_caught(mutant, monkeypatch):
    old, new = MUTANTS[mutant]
    sources = [Path(module.__file__).read_text("utf-8") for module in CERTIFICATE]
    assert sum(old in source for source in sources) == 1
    for module, source in zip(CERTIFICATE, sources, strict=True):
        wrong = ModuleType(module.__name__)
        wrong.__package__ = "drlogit.dual"
        monkeypatch.setitem(sys.modules, wrong.__name__, wrong)  # for those that import it
        exec(compile(source.replace(old, new), f"wrong {wrong.__name__}", "exec"), wrong.__dict__)
    assert refuted(wrong) > 0
