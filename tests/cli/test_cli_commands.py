"""The commands that work on files, from data to model to report."""

from __future__ import annotations

import json
import re
import shlex
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import drlogit
from drlogit import cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer()
    return data.data, data.target_names[data.target], list(data.feature_names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, cancer):
    """Data files, and a model fitted to one of them."""
    folder = tmp_path_factory.mktemp("cli")
    X, y, names = cancer
    write_csv(folder / "cancer.csv", X, y, [*names, "diagnosis"])
    write_csv(folder / "small.csv", X[:150, :4], y[:150], [*"abcd", "y"])
    iris = load_iris()
    write_csv(folder / "iris.csv", iris.data, iris.target_names[iris.target], [*"abcd", "kind"])
    command = "fit cancer.csv --standardize --epsilon 0.1 -o model.json --quiet"
    assert run_in(folder, command) == cli.DONE
    return folder


def write_csv(path, X, y, names):
    pd.DataFrame(X, columns=names[:-1]).assign(**{names[-1]: y}).to_csv(path, index=False)


def run_in(folder, command):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return cli.main(shlex.split(command))


@pytest.fixture
def run(folder, capsys):
    """Run a command in the folder: its code, and what it printed."""

    def run(command):
        code = run_in(folder, command)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def answer(run):
    """Run a command with --json: the answer."""

    def answer(command, code=cli.DONE):
        found, out, err = run(f"{command} --json")
        assert found == code, err
        return json.loads(out)

    return answer


@pytest.fixture
def complaint(run):
    """Run a command that cannot be: the one line that says so."""

    def complaint(command):
        code, out, err = run(command)
        assert (code, out) == (cli.BAD_INPUT, "")
        last = err.splitlines()[-1]
        assert last.startswith(f"drlogit {command.split()[0]}: error: ")
        assert "Traceback" not in err
        return last

    return complaint


# --- fit ------------------------------------------------------------------------------------


def test_a_model_is_written_for_the_data_as_they_are(folder, cancer):
    X, y, names = cancer
    scaler = StandardScaler().fit(X)
    expected = drlogit.DRLogisticRegression(0.1).fit(scaler.transform(X), y)
    model = drlogit.load_model(folder / "model.json")
    assert model.feature_names_in_.tolist() == names
    assert model.worst_case_loss_ == pytest.approx(expected.worst_case_loss_, abs=1e-6)
    assert model.coef_ * scaler.scale_ == pytest.approx(expected.coef_, abs=1e-2)


def test_fit_says_what_it_did(run):
    code, out, err = run("fit cancer.csv --epsilon 0.1 --standardize")
    assert code == cli.DONE
    assert "569 rows, 30 features; labels in column 'diagnosis'" in err
    assert "positive class: malignant" in err
    assert "(epsilon = 0.1, kappa = 1)\n  up to 10 % of labels may be wrong" in out
    assert re.search(r"worst-case log-loss +0\.51730", out)
    assert re.search(r"gap +\d\.\de-\d+, after \d+ iterations \(interior-point, [\d.]+ s\)", out)
    assert "The model was not" in out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit precious.csv -o precious.csv", "-o precious.csv would overwrite an input file"),
        ("fit precious.csv -o ./same.csv", "-o ./same.csv would overwrite an input file"),
        ("predict kept.json precious.csv -o kept.json", "-o kept.json would overwrite"),
        ("audit model.json kept.json precious.csv -o kept.json", "-o kept.json would overwrite"),
        ("fit precious.csv -o x.json --proof x.json", "--proof x.json would overwrite the file"),
    ],
)
def test_nothing_that_is_read_is_overwritten(folder, complaint, command, said):
    for name, text in (("precious.csv", "small.csv"), ("kept.json", "model.json")):
        (folder / name).write_bytes((folder / text).read_bytes())
    (folder / "same.csv").unlink(missing_ok=True)
    (folder / "same.csv").symlink_to(folder / "precious.csv")
    assert said in complaint(command)
    assert (folder / "precious.csv").read_bytes() == (folder / "small.csv").read_bytes()
    assert (folder / "kept.json").read_bytes() == (folder / "model.json").read_bytes()
    assert not (folder / "x.json").exists()


W = np.arange(150) % 3 + 0.5


@pytest.mark.parametrize(
    ("options", "settings", "warning"),
    [
        ("--kappa inf --norm linf", {"kappa": np.inf, "norm": "linf"}, None),
        ("--no-intercept --norm l2", {"fit_intercept": False, "norm": "l2"}, None),
        ("--immovable b,d", {"feature_costs": [1.0, np.inf, 1.0, np.inf]}, None),
        ("--feature-costs a=2,c=inf", {"feature_costs": [2.0, 1.0, np.inf, 1.0]}, None),
        ("--weights w", {"sample_weight": W}, None),
        ("--kappa-column w", {"kappa": W}, None),
        ("--balanced", {"class_weight": "balanced"}, None),
        ("--epsilon 9 --kappa 9", {"epsilon": 9.0, "kappa": 9.0}, "is constant"),
        ("--max-iter 2", {"max_iter": 2}, "stopped at max_iter before"),
    ],
)
def test_a_fit_is_that_of_the_estimator(options, settings, warning, folder, cancer, run):
    """The same model, the same warnings, and a code that says whether it converged."""
    X, y = cancer[0][:150, :4], cancer[1][:150]
    write_csv(folder / "weighted.csv", np.c_[X, W], y, [*"abcdw", "y"])
    data = "weighted.csv" if "w" in options.split() else "small.csv"
    code, _, err = run(f"fit {data} --epsilon 0.01 {options} -o options.json")
    of_samples = {name: settings[name] for name in settings if settings[name] is W}
    others = {"epsilon": 0.01, **{k: v for k, v in settings.items() if k not in of_samples}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expected = drlogit.DRLogisticRegression(**others).fit(X, y, **of_samples)
    said = [line for line in err.splitlines() if "warning: " in line]
    assert said == [f"drlogit: warning: {' '.join(str(each.message).split())}" for each in caught]
    assert any(warning in line for line in said) if warning else not caught
    assert code == (cli.DONE if expected.result_.converged else cli.NOT_CONVERGED)
    model = drlogit.load_model(folder / "options.json")
    for name in ("coef_", "intercept_", "lambda_", "worst_case_loss_", "dual_gap_", "epsilon_"):
        # Old versions of pandas read numbers from files up to a last bit.
        found, wanted = getattr(model, name), getattr(expected, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert np.array_equal(model.feature_costs_, settings.get("feature_costs"))
    assert model.fit_intercept == settings.get("fit_intercept", True)


def test_what_files_say_does_not_steer_the_terminal(folder, run):
    labels = ("good", "evil\x1b[2J")
    lines = "".join(f"{k % 5},{k},{labels[k % 3 > 0]}\n" for k in range(20))
    (folder / "evil.csv").write_text("a,b\u202e,label\n" + lines)
    code, out, err = run("fit evil.csv --target label")
    assert code == cli.DONE
    assert "\\x1b[2J" in out + err
    code, _, more = run("fit evil.csv --target none\x1b[1A")
    assert code == cli.BAD_INPUT
    assert "\\x1b[1A" in more
    assert not set("\x1b\u202e") & set(out + err + more)


def test_running_out_of_iterations_is_code_3_and_the_model_is_written(folder, run, answer):
    found = answer(
        "fit cancer.csv --epsilon 0.1 --max-iter 1 -o hasty.json", code=cli.NOT_CONVERGED
    )
    assert found["fits"][0]["status"] == "MAX_ITER"
    model = drlogit.load_model(folder / "hasty.json")
    assert model.dual_gap_[0] > model.tol


def test_quiet_is_quiet_about_a_constant_model_too(run):
    assert run("fit cancer.csv --standardize --epsilon 0.4 -o x.json --quiet") == (cli.DONE, "", "")
    assert run("predict x.json cancer.csv --quiet -o x.csv") == (cli.DONE, "", "")


# --- labels ---------------------------------------------------------------------------------


def test_more_than_two_classes(folder, run, answer):
    found = answer("fit iris.csv --epsilon 0.01 -o iris.json")
    assert [fit["converged"] for fit in found["fits"]] == [True]
    X, codes = load_iris(return_X_y=True)
    y = load_iris().target_names[codes]
    expected = drlogit.DRLogisticRegression(0.01).fit(X, y)
    assert found["accuracy"] == pytest.approx(expected.score(X, y))
    lines = run("predict iris.json iris.csv")[1].splitlines()
    assert lines[0] == (
        "prediction,probability_setosa,probability_versicolor,probability_virginica"
    )
    every = answer("audit iris.json iris.csv --epsilons 0")["models"]
    assert [model["name"] for model in every] == ["iris.json", "plain LR"]


# --- predict --------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model(folder, cancer, run, answer):
    X, _, _ = cancer
    model = drlogit.load_model(folder / "model.json")
    del model.feature_names_in_
    found = answer("predict model.json cancer.csv")
    assert found["predictions"] == model.predict(X).tolist()
    assert np.allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-12)
    lines = run("predict model.json cancer.csv")[1].splitlines()
    assert lines[0] == "prediction,probability_malignant"
    label, probability = lines[1].split(",")
    assert label == found["predictions"][0]
    assert float(probability) == found["probabilities"][0][1]


def test_identifiers_are_carried_through(folder, run, answer, complaint):
    text = (folder / "small.csv").read_text().splitlines()
    named = ["patient," + text[0], *(f"{k:04d},{line}" for k, line in enumerate(text[1:]))]
    named[3] = "NA" + named[3][4:]  # Namibia is a name, too
    (folder / "named.csv").write_text("\n".join(named))
    assert run("fit named.csv --drop patient -o small.json")[0] == cli.DONE
    lines = run("predict small.json named.csv --id patient")[1].splitlines()
    assert lines[0] == "patient,prediction,probability_malignant"
    assert [line.split(",")[0] for line in lines[1:5]] == ["0000", "0001", "NA", "0003"]
    alone = run("predict small.json small.csv")[1].splitlines()
    assert [line.partition(",")[2] for line in lines] == alone
    assert answer("predict small.json named.csv --id patient")["ids"][2] == "NA"
    audited = answer("audit small.json named.csv --id patient --against none --epsilons 0.1")
    listed = audited["models"][0]["most_surprising"]
    assert all(s["row"] == ("NA" if s["index"] == 2 else f"{s['index']:04d}") for s in listed)
    said = complaint("predict small.json named.csv --id patiant")
    assert "has no column 'patiant' (--id): did you mean 'patient'?" in said


def test_columns_are_found_by_name(folder, cancer, run):
    X, y, names = cancer
    order = np.random.default_rng(0).permutation(30)
    shuffled = [names[j] for j in order]
    write_csv(folder / "shuffled.csv", X[:, order], y, [*shuffled, "extra"])
    assert run("predict model.json shuffled.csv") == run("predict model.json cancer.csv")


def test_svmlight_files_end_where_they_like(folder, answer):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    X[:, 4] *= y
    dump_svmlight_file(X, y, str(folder / "train.svm"), zero_based=False)
    X[:, 4] = 0.0
    dump_svmlight_file(X, y, str(folder / "short.svm"), zero_based=False)
    assert answer("fit train.svm --epsilon 0.01 -o sparse.json")["n_features"] == 5
    assert answer("fit short.svm --epsilon 0.01 --n-features 5 -o wide.json")["n_features"] == 5
    assert answer("predict wide.json train.svm")["classes"] == [0, 1]


# --- threshold ------------------------------------------------------------------------------


def test_a_threshold_is_that_of_the_library(folder, cancer, run, answer):
    X, y, names = cancer
    write_csv(folder / "seen.csv", X[:300, :4], y[:300], [*names[:4], "diagnosis"])
    write_csv(folder / "unseen.csv", X[300:, :4], y[300:], [*names[:4], "diagnosis"])
    answer("fit seen.csv --standardize --epsilon 0.02 -o seen.json")
    model = drlogit.load_model(folder / "seen.json")
    frame = pd.DataFrame(X[300:, :4], columns=[str(name) for name in names[:4]])
    costs = {("benign", "malignant"): 1.0, ("malignant", "benign"): 5.0}
    words = "--costs benign:malignant=1,malignant:benign=5"
    found = answer(f"threshold seen.json unseen.csv {words}")
    expected = drlogit.choose_threshold(model, frame, y[300:], costs=costs)
    assert found["threshold"] == pytest.approx(expected.threshold)
    assert found["promise"]["value"] == pytest.approx(expected.promise.value)
    assert "independent" in found["promise"]["assumed"]
    _, out, _ = run("threshold seen.json unseen.csv --max-fpr 0.7")
    assert out.startswith("Predict malignant if its probability is at least")
    decided = answer("predict seen.json unseen.csv --threshold 0.2")["predictions"]
    share = model.predict_proba(frame)[:, 1]
    assert decided == np.where(share >= 0.2, "malignant", "benign").tolist()
    _, out, _ = run(f"audit seen.json unseen.csv --against none {words} --threshold 0.2")
    assert out.index("cost at threshold 0.2") < out.index("log-loss")
    for command, message in (
        ("threshold seen.json unseen.csv --costs a:b=1", "such as benign:malignant=1, got 'a:b'"),
        ("predict seen.json unseen.csv --threshold 1.5", "--threshold must lie between 0 and 1"),
    ):
        code, _, err = run(command)
        assert code == cli.BAD_INPUT
        assert message in err


def test_rows_held_out_of_a_fit(folder, run, answer):
    command = "fit cancer.csv --standardize --epsilon 0.05 --holdout 0.3 -o held.json"
    found = answer(f"{command} --proof held.npz")
    assert found["data"]["n_samples"] == 398
    assert found["guarantee"]["n"] == 171
    assert found["guarantee"]["loss"] > found["guarantee"]["mean_loss"]
    _, out, _ = run(command)
    assert out.startswith("What holds for new data? (from rows that the model has not seen)\nWith")
    assert "Model, fitted to the other 398 rows, written to held.json" in out
    assert answer("fit iris.csv --holdout 0.3")["guarantee"]["n"] == 45


# --- audit ----------------------------------------------------------------------------------


def test_audit_report(folder, run):
    code, out, err = run("audit model.json cancer.csv -o report.html --groups diagnosis")
    assert (code, err) == (cli.DONE, "")
    assert "Written: report.html" in out
    assert "row 567: label 'malignant'" in out
    page = (folder / "report.html").read_text("utf-8")
    assert re.findall(r"<iframe|@import|https?://(?!www\.w3\.org/)", page) == []
    assert "model.json, plain LR, on 569 samples of cancer.csv" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    groups = {(group["value"], group["size"]) for group in data["groups"]}
    assert groups == {("benign", 357), ("malignant", 212)}
    assert data["models"][0]["facts"]["epsilon"] == data["radii"][data["start"]] == 0.1


def test_several_models_in_one_audit(folder, cancer, answer):
    answer("fit cancer.csv --epsilon 0.01 --kappa 5 -o third.json")
    found = answer("audit third.json model.json cancer.csv --against none --epsilons 0.1")
    assert [model["name"] for model in found["models"]] == ["third.json", "model.json"]
    assert (found["kappa"], found["ball"]) == (5, "third.json")
    ours, (X, y, names) = drlogit.load_model(folder / "model.json"), cancer
    frame, ball = pd.DataFrame(X, columns=names), {"epsilon": 0.1, "kappa": 5.0}
    expected = drlogit.worst_case_loss(ours, frame, y, feature_costs=np.ones(30), **ball)
    assert found["models"][1]["rows"][0]["worst_case_loss"] == pytest.approx(expected, rel=1e-9)


# --- errors ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bad_files(folder):
    texts = {
        "one.csv": "a,y\n1,x\n2,x\n",
        "words.csv": "1,2,3,4\n2,many,4,5\n",
        "numbers.csv": "a,y\n" + "".join(f"{i},{i * 0.37}\n" for i in range(50)),
        "narrow.csv": "1,2,0\n3,4,1\n",
        "nameless.csv": "1,2,3,4,benign\n2,3,4,5,malignant\n",
        "unknown.csv": (folder / "cancer.csv").read_text().replace("benign", "unsure"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit nowhere.csv", "nowhere.csv: No such file or directory"),
        ("fit one.csv", "one.csv has only the label 'x' in column 'y', and a model needs two"),
        ("predict plain.json words.csv", "column '1' holds 'many' in row 2, but the model expect"),
        ("fit numbers.csv", "has 50 different labels in 50 rows, so"),
        ("fit small.csv --kappa x=1", "has no label 'x'; its labels are benign, malignant"),
        ("fit small.csv --features a --drop b", "--features and --drop exclude each other"),
        ("fit small.csv --immovable z", "--immovable: small.csv has no feature 'z'"),
        ("fit small.csv -o no/such/model.json", "model.json must be a file in an existing folder"),
        ("fit small.csv -o .", "-o . must be a file in an existing folder"),
        ("fit small.csv --holdout 0.03", "a guarantee needs at least 10 rows"),
        ("fit small.csv --tolerate label=0.05", "has no feature 'label'; did you mean labels?"),
        ("fit small.csv --tolerate wages=0.05", "has no feature 'wages'; it has labels, num"),
        ("audit model.json model.json cancer.csv", "the same model is named twice"),
        ("audit model.json cancer.csv --groups nothing", "has no column 'nothing'"),
        ("fit cancer.csv --target Diagnosis", "did you mean 'diagnosis'? It has 'mean radius'"),
        ("predict model.json small.csv", "has no column 'mean radius' (a feature of the model)"),
        ("predict model.json nameless.csv", "its columns have no names, only the numbers 0 to 4"),
        ("predict plain.json narrow.csv", "has 3 features, expected 4 for the model plain.json"),
        ("audit model.json unknown.csv", "the label 'unsure' in row"),
    ],
)  # fmt: skip
def test_one_clear_line(command, said, folder, bad_files, complaint):
    if "plain.json" in command and not (folder / "plain.json").exists():
        X, y = load_iris(return_X_y=True)
        model = drlogit.DRLogisticRegression(0.1).fit(X[:100, :2].repeat(2, axis=1), y[:100])
        drlogit.save_model(model, folder / "plain.json")
    assert said in complaint(command)


# --- help, progress -------------------------------------------------------------------------


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_examples_of_the_help_are_right(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    examples = re.findall(rf"^  (drlogit {name}.*)$", capsys.readouterr().out, re.M)
    assert examples
    for words in (shlex.split(example)[1:] for example in examples):
        assert cli._parsed(words).command == name


def test_progress_on_a_terminal(run, monkeypatch):
    monkeypatch.setattr("drlogit.cli.console._EVERY", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    err = run("fit small.csv")[2]
    assert "fit: iteration 1, " in err
    assert err.rindex("\r\x1b[K") > err.rindex("fit: i")  # and nothing is left of it


def test_labels_may_be_named_by_another_form_of_their_number(folder, run):
    (folder / "codes.csv").write_text("a,y\n1,0\n2,1\n4,0\n3,1\n")
    for text, code in (("1.0", cli.DONE), ("2", cli.BAD_INPUT)):
        assert run(f"fit codes.csv --kappa 0=3,{text}=3 --epsilon 0.01")[0] == code


def test_predictions_are_no_formulas(run, folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"@id": ["=cmd|x", "-5", "plain", "+x"] * 8, "a": rng.random(32)})
    frame["y"] = rng.choice(["=evil", "good"], 32)
    frame.to_csv(folder / "risky.csv", index=False)
    assert run("fit risky.csv --drop @id --quiet -o risky.json")[0] == cli.DONE
    asked = "predict risky.json risky.csv --id @id"
    lines = [line.split(",") for line in run(asked)[1].splitlines()]
    assert lines[0][:2] == ["'@id", "prediction"]
    assert [line[0] for line in lines[1:5]] == ["'=cmd|x", "-5", "plain", "'+x"]
    assert {line[1] for line in lines[1:]} <= {"'=evil", "good"}
    raw = [line.split(",") for line in run(f"{asked} --raw")[1].splitlines()]
    assert [line[0] for line in raw[:5]] == ["@id", "=cmd|x", "-5", "plain", "+x"]
    assert [line[2] for line in raw] == [line[2] for line in lines]


@pytest.mark.parametrize("text", ["a,y\n1,x\n2,z\n", "ä,y\n1,x\n2,z\n"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_named(complaint, folder, text, encoding):
    (folder / "wide.csv").write_bytes(text.encode(encoding))
    assert "UTF-16" in complaint("fit wide.csv")
