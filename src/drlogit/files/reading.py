"""Read data files: CSV and Parquet through pandas, svmlight text through scikit-learn.

The name of a file states its format, and a CSV file has a line of names.  What its columns hold is
what pandas finds there; the estimators decide what becomes of it.
"""

from __future__ import annotations

import bz2
import csv
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

from ..problem.features import position_of
from ..rows.arrays import FloatArray
from ..rows.checks import ParameterError

FORMATS = ("csv", "parquet", "svmlight")

_SUFFIXES = {".parquet": "parquet", ".pq": "parquet"}
_SUFFIXES |= dict.fromkeys((".svm", ".svmlight", ".libsvm"), "svmlight")

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

#: What libraries raise for files that are damaged or something else.
_ERRORS = (ValueError, TypeError, EOFError, OSError, zlib.error, lzma.LZMAError, csv.Error)


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
        suffixes = [each.lower() for each in Path(self.path).suffixes]
        named = [_SUFFIXES[each] for each in suffixes if each in _SUFFIXES]
        return self.format or (named[0] if named else "csv")

    def read_table(self, texts: Collection[str] = (), exact: Collection[str] = ()) -> Any:
        """A data frame of all columns of a CSV or Parquet file.

        The columns ``texts`` are read as text from CSV files (``007`` stays ``007``), and so are
        the columns ``exact``, in which no text means "missing".
        """
        parquet = self.kind == "parquet"
        frame = self._read_parquet() if parquet else self._read_csv(texts, exact)
        if not len(frame):
            raise ValueError(f"{self.name} has no rows")
        return frame

    def read_svmlight(self, n_features: int | None = None) -> tuple[Any, FloatArray]:
        """The matrix and the labels of an svmlight file."""
        from sklearn.datasets import load_svmlight_file

        file = io.BytesIO(self._contents())
        with self._errors():
            return load_svmlight_file(  # type: ignore[no-any-return]
                file, n_features=n_features, zero_based=self.zero_based
            )

    def find(self, name: str, names: Sequence[str], parameter: str) -> str:
        """A column of the file by its name, which the parameter states; an error if not there."""
        return names[position_of(name, names, parameter, self.name)]

    def _contents(self) -> bytes:
        with self._errors():
            if self.path == "-":
                contents = sys.stdin.buffer.read()
            else:
                with _OPENERS.get(Path(self.path).suffix.lower(), open)(self.path, "rb") as file:
                    contents = file.read()
        if not contents.strip():
            raise ValueError(f"{self.name} is empty")
        return bytes(contents)

    def _text(self) -> str:
        contents = self._contents()
        try:
            text = contents.decode(self.encoding)
        except (UnicodeError, LookupError):
            text = "\0"
        if "\0" in text:
            raise ParameterError(
                "encoding",
                f"must be that of {self.name}, which is not {self.encoding} text: try latin1 or "
                "utf-16, or save the sheet of a spreadsheet as CSV (in Excel: CSV UTF-8)",
            )
        return text.removeprefix("\ufeff")

    def _read_csv(self, texts: Collection[str], exact: Collection[str]) -> Any:
        import pandas as pd

        if len(self.delimiter) != 1:
            raise ParameterError("delimiter", f"must be one character, got {self.delimiter!r}")
        text = self._text()
        form: dict[str, Any] = {"delimiter": self.delimiter, "skipinitialspace": True}
        lines = csv.reader(io.StringIO(text, newline=None), **form)
        with self._errors():
            names = [name.strip() for name in next(filter(None, lines), [""])]
        twice = [name for name, times in Counter(names).items() if times > 1]
        if "" in names or twice:
            found = f"two columns named {twice[0]!r:.60}" if twice else "a column without a name"
            raise ValueError(
                f"{self.name} has {found}; the first line of a CSV file names the columns"
            )
        form |= {"header": 0, "names": names, "index_col": False, "decimal": self.decimal}
        content = {"dtype": dict.fromkeys(texts, str), "na_values": ["?"]}  # beside those of pandas
        with self._errors(), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(io.StringIO(text), low_memory=False, **form, **content)
        for name in {*exact} & {*names}:
            as_it_stands = {"dtype": str, "keep_default_na": False}
            frame[name] = pd.read_csv(io.StringIO(text), **form, **as_it_stands)[name]
        if frame[names[-1]].isna().any():  # pandas fills up rows that are cut short
            for row in lines:
                if row and len(row) != len(names):
                    raise ValueError(
                        f"{self.name}: line {lines.line_num} has {len(row)} fields, expected "
                        f"{len(names)}"
                    )
        return frame

    def _read_parquet(self) -> Any:
        import pandas as pd

        file = io.BytesIO(self._contents())
        with self._errors():
            frame = pd.read_parquet(file)
        return frame if frame.index.name is None else frame.reset_index()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What a library cannot read as a ``ValueError`` of one line that names the file."""
        try:
            yield
        except Warning:  # of pandas
            raise ParameterError(
                "delimiter",
                f"must be what separates the fields of {self.name}, whose rows have more fields "
                "than its first line has names",
            ) from None
        except _ERRORS as error:
            if getattr(error, "errno", None) is not None:  # there is no such file
                raise
            found = " ".join(str(error).split())
            raise ValueError(
                f"{self.name} cannot be read as {self.kind}; it may be damaged, or of another "
                f"format: {found:.160}"
            ) from error
