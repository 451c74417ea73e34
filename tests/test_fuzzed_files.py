"""Generated files: sound ones are read as an outsider reads them, others are refused in words.

Sound files of every format, the same with their bytes changed (flipped, cut, put in, repeated,
spliced), and text that is almost in a format.  A reader may do one of two things: give samples that
pass every check, or raise a ``ValueError`` of one line.

    HYPOTHESIS_PROFILE=explore pytest tests/test_fuzzed_files.py      # new ones, and many more
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import drlogit
from drlogit.files import limits as file_limits
from drlogit.files import model_file, strict_json
from drlogit.files.columns import Wanted
from drlogit.files.reading import read_labels, read_samples

#: Fewer in every run of the tests, as many as the profile says when exploring.
PROFILE = settings()
FEW = settings(max_examples=25 if PROFILE.derandomize else PROFILE.max_examples)

#: A limit that no generated file reaches honestly.
MOST = 1 << 24

NUMBERS = st.one_of(
    st.floats(-1e100, 1e100),
    st.integers(-100, 100).map(float),
    st.sampled_from([0.0, -0.0, 5e-324]),
)
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples, and a limit on what may be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(file_limits.VARIABLE, str(MOST))
        yield tmp_path_factory.mktemp("fuzzed")


@st.composite
def samples(draw):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 5)))
    X = draw(hnp.arrays(np.float64, shape, elements=NUMBERS))
    return X, np.array(draw(st.lists(st.integers(-1, 2), min_size=shape[0], max_size=shape[0])))


@st.composite
def damage(draw, contents):
    """Bytes with a few changes."""
    raw = bytearray(draw(contents))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(raw)))
        length = draw(st.integers(1, 24))
        part = raw[at : at + length]
        match draw(st.sampled_from("flip set cut end put twice splice".split())):
            case "flip" if part:
                raw[at] ^= 1 << draw(st.integers(0, 7))
            case "set" if part:
                raw[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 10, 44, 58]))
            case "cut":
                del raw[at : at + length]
            case "end":
                del raw[at:]
            case "put":
                raw[at:at] = draw(st.binary(min_size=1, max_size=8))
            case "twice":
                raw[at:at] = part
            case "splice":
                other = draw(st.integers(0, len(raw)))
                raw[other : other + length] = part
    return bytes(raw)


def outcome(read, *arguments, **options):
    """What a reader gives, or None where it refuses as it should."""
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return read(*arguments, **options)
    except ValueError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * MOST
    assert message
    assert "\n" not in message
    assert len(message) < 600
    return None


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def check_labels(labels):
    assert labels.ndim == 1
    assert labels.dtype.kind in "biufU"
    if labels.dtype.kind == "f":
        assert np.isfinite(labels).all()
    "".join(map(str, labels.tolist())).encode()


def check_samples(found):
    """Whatever is read must be fit to be fitted."""
    if found is None:
        return
    if sp.issparse(found.X):
        found.X.check_format()
    values = found.X.data if sp.issparse(found.X) else found.X
    assert min(found.X.shape) >= 1
    assert np.isfinite(values).all()
    assert np.abs(values.astype(np.float64)).max(initial=0.0) <= 1e150
    assert found.labels.shape == found.X.shape[:1]
    check_labels(found.labels)
    if found.feature_names is not None:
        assert len(found.feature_names) == found.X.shape[1]


# --- writers of sound files -----------------------------------------------------------------


def as_csv(X, y):
    names = ",".join(f"f{j}" for j in range(X.shape[1]))
    rows = (
        ",".join(map(repr, [*row.tolist(), int(label)])) for row, label in zip(X, y, strict=True)
    )
    return "\n".join([f"{names},y", *rows, ""]).encode()


def as_svmlight(X, y):
    buffer = io.BytesIO()
    dump_svmlight_file(X, y, buffer, zero_based=False)
    return buffer.getvalue()


def as_npz(X, y, form=None):
    buffer = io.BytesIO()
    if form is None:
        np.savez(buffer, X=X, y=y)
    elif form == "deflated":
        np.savez_compressed(buffer, X=X.astype(np.float32) if abs(X).max() < 1e30 else X, y=y)
    else:
        matrix = sp.csr_matrix(X).asformat(form)
        parts = {"row", "col", "data", "indices", "indptr", "offsets"} & set(dir(matrix))
        arrays = {name: getattr(matrix, name) for name in parts}
        np.savez(buffer, format=form.encode(), shape=matrix.shape, y=y, **arrays)
    return buffer.getvalue()


def as_parquet(X, y, text=False):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    labels = np.array(["no", "yes"])[y % 2] if text else y
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    pq.write_table(pa.table({**columns, "y": labels}), buffer)
    return buffer.getvalue()


WRITERS = {
    "csv": as_csv,
    "svm": as_svmlight,
    "npz": as_npz,
    **{f"{form}.npz": lambda X, y, form=form: as_npz(X, y, form)
       for form in ("csr", "csc", "coo", "bsr", "dia", "deflated")},
    "parquet": as_parquet,
    "text.parquet": lambda X, y: as_parquet(X, y, text=True),
}  # fmt: skip


# --- sound files ----------------------------------------------------------------------------


@settings(FEW)
@given(data=samples(), suffix=st.sampled_from(list(PACK)))
def test_text_is_read_as_others_read_it(folder, data, suffix):
    pd = pytest.importorskip("pandas")
    X, y = data
    path = folder / f"sound.csv{suffix}"
    path.write_bytes(PACK[suffix](as_csv(X, y)))
    found = read_samples(path, Wanted())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the default of pandas 3, which wants it left out
        frame = pd.read_csv(path, float_precision="round_trip")
    np.testing.assert_array_equal(found.X, frame.to_numpy(dtype=np.float64)[:, :-1])
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.labels, frame["y"])
    assert found.feature_names == list(frame.columns[:-1])
    path = folder / f"sound.svm{suffix}"
    path.write_bytes(PACK[suffix](as_svmlight(X, y)))
    found = read_samples(path, Wanted(n_features=X.shape[1]))
    other, labels = load_svmlight_file(
        io.BytesIO(as_svmlight(X, y)), n_features=X.shape[1], zero_based=False
    )
    np.testing.assert_array_equal(dense(found.X), other.toarray())
    np.testing.assert_array_equal(found.labels, labels)
    blocks, labels = drlogit.open_blocks(path, n_features=X.shape[1], zero_based=False)
    np.testing.assert_array_equal(blocks.block(0).toarray(), other.toarray())
    np.testing.assert_array_equal(labels, y)


@settings(FEW)
@given(data=samples())
def test_arrays_are_read_as_they_were_written(folder, data):
    X, y = data
    for name, write in WRITERS.items():
        if not name.endswith(("npz", "parquet")):
            continue
        path = folder / f"sound.{name}"
        path.write_bytes(write(X, y))
        found = read_samples(path, Wanted())
        exact = name != "deflated.npz" or abs(X).max() >= 1e30
        np.testing.assert_array_equal(dense(found.X), X if exact else X.astype(np.float32))
        assert found.labels.tolist() == (
            np.array(["no", "yes"])[y % 2] if "text" in name else y
        ).tolist()  # fmt: skip


# --- damaged files --------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_files(folder, name):
    written = samples().map(lambda data: WRITERS[name](*data))

    @settings(FEW)
    @given(raw=damage(written))
    def attempt(raw):
        path = folder / f"damaged.{name}"
        path.write_bytes(raw)
        check_samples(outcome(read_samples, path, Wanted()))

    attempt()


@settings(FEW)
@given(
    raw=damage(samples().map(lambda data: as_csv(*data))),
    packed=damage(samples().map(lambda data: lzma.compress(as_svmlight(*data)))),
    gzipped=damage(samples().map(lambda data: gzip.compress(as_csv(*data)))),
)
def test_damaged_compression(folder, raw, packed, gzipped):
    contents = {
        "a.csv.gz": gzip.compress(raw, 1),
        "b.csv.bz2": bz2.compress(raw),
        "c.svm.xz": packed,
        "d.csv.gz": gzipped,
        "e": raw,
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
        check_samples(outcome(read_samples, folder / name, Wanted()))


@settings(FEW)
@given(data=samples(), change=st.data())
def test_damaged_files_in_blocks(folder, data, change):
    X, y = data
    np.save(folder / "y.npy", y)
    buffer = io.BytesIO()
    np.save(buffer, change.draw(st.sampled_from([X, np.asfortranarray(X), X > 0])))
    written = {"npy": buffer.getvalue(), "svm": as_svmlight(X, y), "parquet": as_parquet(X, y)}
    for name, raw in written.items():
        path = folder / f"blocks.{name}"
        path.write_bytes(change.draw(damage(st.just(raw))))
        target = {"npy": folder / "y.npy", "svm": None, "parquet": "y"}[name]
        opened = outcome(drlogit.open_blocks, path, target=target)
        if opened is not None:
            for k in range(len(opened.X.lengths)):
                block = opened.X.block(k)
                assert not sp.issparse(block) or block.check_format() is None
        labels = folder / "labels.npy"
        labels.write_bytes(change.draw(damage(st.just((folder / "y.npy").read_bytes()))))
        found = outcome(read_labels, labels)
        assert found is None or check_labels(found) is None


# --- text that is almost right --------------------------------------------------------------

WORDS = st.sampled_from(
    "0 1 -1 +1 1.5 -2e3 1e999 nan inf -inf 1_0 0x1 ' \" # : , ; | ? - NA qid:1 1:1 2:0.5 0:1 "
    "3:nan 1: :1 "
    "9999999999:1 2147483647:1 99999999:1 a b y target \\ \ufeff \u0661 \0".split(" ")
)  # fmt: skip
LINES = st.lists(
    st.tuples(st.lists(WORDS, max_size=6), st.sampled_from([" ", ",", ";", "\t", ""])), max_size=6
)


@settings(FEW)
@given(lines=LINES, end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]), header=st.booleans())
@example(lines=[(["1", '"'], ","), (["2", "a"], ",")], end="\n", header=False)
def test_text_that_is_almost_right(folder, lines, end, header):
    text = end.join(between.join(words) for words, between in lines)
    for name in ("almost.csv", "almost.svm", "almost"):
        (folder / name).write_text(text, "utf-8", newline="")
        check_samples(outcome(read_samples, folder / name, Wanted()))
        check_samples(outcome(read_samples, folder / name, Wanted(header=header, zero_based=True)))
    (folder / "y.txt").write_text(text, "utf-8", newline="")
    found = outcome(read_labels, folder / "y.txt")
    assert found is None or check_labels(found) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=2), inner),
    max_leaves=12,
)  # fmt: skip


@settings(FEW)
@given(value=JSON, change=st.data())
def test_json(folder, value, change):
    text = strict_json.dumps(value)
    # Text that is no JSON for us may be for others, but not the other way round.
    assert strict_json.loads(text) == json.loads(text)
    raw = change.draw(damage(st.just(text.encode())))
    (folder / "value.json").write_bytes(raw)
    found = outcome(strict_json.read, folder / "value.json")
    if found is not None:
        assert found == json.loads(raw)


# --- models ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((30, 3))


@pytest.fixture(scope="module", params=[2, 3])
def model(request, folder):
    """A model, as text, and what it says of some points."""
    y = np.arange(30) % request.param
    fitted = drlogit.DRLogisticRegression(0.05, feature_costs=[1.0, 2.0, np.inf]).fit(POINTS, y)
    path = folder / f"sound-{request.param}.json"
    drlogit.save_model(fitted, path)
    return path.read_bytes(), fitted.predict_proba(POINTS)


def same(found, raw, probabilities):
    """Whether a model that was read is the one that was written."""
    sound = json.loads(raw)
    again = json.loads(strict_json.dumps(model_file._document(found, sound["origin"])))
    del sound["digest"]
    return again == sound and np.array_equal(found.predict_proba(POINTS), probabilities)


def test_no_damage_makes_another_model(folder, model):
    raw, probabilities = model
    path = folder / "damaged.json"

    @settings(FEW)
    @given(changed=damage(st.just(raw)))
    def attempt(changed):
        path.write_bytes(changed)
        found = outcome(drlogit.load_model, path)
        assert found is None or same(found, raw, probabilities)

    attempt()


def places(document, path=()):
    """Every place in a document."""
    yield path
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    if isinstance(document, dict | list):
        for key, value in inner:
            if isinstance(value, dict | list):
                yield from places(value, (*path, key))
            else:
                yield (*path, key)


def test_no_changed_field_makes_another_model(folder, model):
    """With its digest, a file is the model that was written; without, a sound one or none."""
    raw, probabilities = model
    document = json.loads(raw)
    path = folder / "changed.json"
    odd = st.sampled_from([None, True, 0, -1, 1e-300, 1e300, 2**70, "inf", "", [], {}, [0], "l2"])

    @settings(FEW)
    @given(at=st.sampled_from([p for p in places(document) if p]), value=odd | JSON)
    def attempt(at, value):
        changed = copy.deepcopy(document)
        place = changed
        for key in at[:-1]:
            place = place[key]
        place[at[-1]] = value
        path.write_text(json.dumps(changed))
        found = outcome(drlogit.load_model, path)
        assert found is None or same(found, raw, probabilities)
        changed.pop("digest", None)
        path.write_text(json.dumps(changed))
        found = outcome(drlogit.load_model, path)
        if found is not None:
            with np.errstate(over="ignore"):
                proba = found.predict_proba(POINTS)
            assert np.isfinite(proba).all()
            result = found.results_[0]
            assert result.gap >= 0.0
            assert not result.converged or result.gap <= found.tol

    attempt()
