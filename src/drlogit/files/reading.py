"""Read data files: CSV and Parquet through pandas, svmlight text through scikit-learn.

The name of a file states its format, and a CSV file has a line of names.  What its columns hold is
what pandas finds there; the estimators decide what becomes of it.
"""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import lzma
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..rows.arrays import FloatArray
from ..rows.checks import ParameterError

FORMATS = ("csv", "parquet", "svmlight")

_SUFFIXES = {"parquet": (".parquet", ".pq"), "svmlight": (".svm", ".svmlight", ".libsvm")}

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

#: How workbooks of spreadsheets begin: new ones as archives.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")

#: Text for "missing" in CSV files, besides those that pandas knows.
_MISSING = ["?"]

#: What libraries raise for files that are damaged or something else.
_ERRORS = (ValueError, TypeError, EOFError, OSError, zlib.error, lzma.LZMAError, csv.Error)


class DataFileError(ValueError):
    """A data file is not as it must be; the message names the file."""


@dataclass(frozen=True)
class DataFile:
    """A data file and how to read it; the path ``-`` is standard input."""

    path: str
    format: str | None = None
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    zero_based: bool = False

    @property
    def name(self) -> str:
        return "standard input" if self.path == "-" else self.path

    @property
    def kind(self) -> str:
        """The format: as stated, or else that of the suffix, or else CSV."""
        suffixes = {each.lower() for each in Path(self.path).suffixes}
        named = [kind for kind, known in _SUFFIXES.items() if suffixes & {*known}]
        return self.format or (named[0] if named else "csv")

    def read_table(self, texts: Collection[str] = (), exact: Collection[str] = ()) -> Any:
        """A data frame of all columns of a CSV or Parquet file.

        The columns ``texts`` are read as text from CSV files (``007`` stays ``007``), and so are
        the columns ``exact``, in which no text means "missing".
        """
        parquet = self.kind == "parquet"
        with self._errors():
            frame = self._read_parquet() if parquet else self._read_csv(texts, exact)
            if not len(frame):
                raise DataFileError(f"{self.name} has no rows")
            return frame

    def read_svmlight(self, n_features: int | None = None) -> tuple[Any, FloatArray]:
        """The matrix and the labels of an svmlight file."""
        from sklearn.datasets import load_svmlight_file

        with self._errors():
            return load_svmlight_file(  # type: ignore[no-any-return]
                io.BytesIO(self._contents()), n_features=n_features, zero_based=self.zero_based
            )

    def find(self, name: str, names: Sequence[str], parameter: str) -> str:
        """A column of the file by its name, which the parameter states; an error if not there."""
        if name in names:
            return name
        near = near_names(name, names)
        shown = ", ".join(f"{each!r:.30}" for each in names[:8])
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        hint = f": did you mean {near[0]!r:.60}?" if near else ""
        raise ParameterError(
            parameter, f"names the column {name!r:.60}, but {self.name} has {shown}{more}{hint}"
        )

    def _contents(self) -> bytes:
        if self.path == "-":
            contents = sys.stdin.buffer.read()
        else:
            with _OPENERS.get(Path(self.path).suffix.lower(), open)(self.path, "rb") as file:
                contents = file.read()
        if not contents.strip():
            raise DataFileError(f"{self.name} is empty")
        if contents.startswith(_WORKBOOKS):
            raise DataFileError(
                f"{self.name} is a spreadsheet or an archive: save the sheet as CSV (in Excel: CSV "
                "UTF-8)"
            )
        return bytes(contents)

    def _read_csv(self, texts: Collection[str], exact: Collection[str]) -> Any:
        import pandas as pd

        if len(self.delimiter) != 1:
            raise ParameterError("delimiter", f"must be one character, got {self.delimiter!r}")
        contents = self._contents()
        form = {"sep": self.delimiter, "encoding": self.encoding, "skipinitialspace": True}
        as_it_stands = {**form, "dtype": str, "keep_default_na": False}
        first = pd.read_csv(io.BytesIO(contents), header=None, nrows=1, **as_it_stands)
        names = [str(name).strip("\ufeff ") for name in first.iloc[0]]
        if any("\0" in name for name in names):
            raise UnicodeDecodeError(self.encoding, b"\0", 0, 1, "NUL")
        if "" in names:
            raise DataFileError(
                f"column {names.index('') + 1} of {self.name} has no name; the first line of a CSV "
                "file names the columns"
            )
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if repeated:
            raise DataFileError(f"{self.name} has two columns named {repeated[0]!r:.60}")
        form |= {"header": 0, "names": names, "index_col": False, "decimal": self.decimal}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            dtype = {name: str for name in texts if name in names}
            frame = pd.read_csv(
                io.BytesIO(contents), dtype=dtype, na_values=_MISSING, low_memory=False, **form
            )
        for name in set(exact) & set(names):
            frame[name] = pd.read_csv(io.BytesIO(contents), **{**form, **as_it_stands})[name]
        if frame[names[-1]].isna().any():  # pandas fills up rows that are cut short
            rows = csv.reader(io.StringIO(contents.decode(self.encoding)), delimiter=self.delimiter)
            for row in rows:
                if row and len(row) != len(names):
                    raise DataFileError(
                        f"{self.name}: line {rows.line_num} has {len(row)} fields, expected "
                        f"{len(names)}"
                    )
        return frame

    def _read_parquet(self) -> Any:
        import pandas as pd

        frame = pd.read_parquet(io.BytesIO(self._contents()))
        return frame if frame.index.name is None else frame.reset_index()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Whatever is wrong with the file as a ``ValueError`` of one line that names it."""
        try:
            yield
        except (UnicodeDecodeError, LookupError):
            raise ParameterError(
                "encoding",
                f"must be that of {self.name}, which is not {self.encoding} text: try latin1 or "
                "utf-16, or save the file as UTF-8 (in Excel: CSV UTF-8)",
            ) from None
        except Warning:  # of pandas
            raise ParameterError(
                "delimiter",
                f"must be what separates the fields of {self.name}, whose rows have more fields "
                "than its first line has names",
            ) from None
        except _ERRORS as error:
            if (
                isinstance(error, DataFileError | ParameterError)
                or getattr(error, "errno", None) is not None
            ):
                raise
            found = " ".join(str(error).split())
            raise DataFileError(
                f"{self.name} cannot be read as {self.kind}; it may be damaged, or of another "
                f"format: {found:.160}"
            ) from error


def near_names(text: str, names: Sequence[str]) -> list[str]:
    """Up to three names that may have been meant: misspelt, in other case, or cut short."""
    low = text.lower()
    within = [name for name in names if len(low) > 1 and low in name.lower()]
    found = difflib.get_close_matches(text, names[:1000], n=3)  # each takes a millisecond
    return list(dict.fromkeys(found + within))[:3]
