"""The lines of compiled modules that no test ran: the last part of ``make coverage``.

gcov counts the lines of the C files in ``build/coverage``.  A comment of Cython before each piece
of code names the line that it comes from.

    python tests/compiled_coverage.py [--fail-under 97] [build]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Not statements: gcov attributes what Cython adds around a function to these lines.
DECLARED = re.compile(
    r"(@|#|import |cimport |from |include |ctypedef |class |def |cpdef |else:|try:|finally:|pass$"
    r"|cdef (class|struct|enum|extern|public|readonly)|cdef [^=]*$|cdef .*\).*:$|with nogil:"
    r"|[])}]+,?:?$)"
)


def statements(text: str) -> set[int]:
    """The numbers of the lines on which a statement within a function begins or goes on."""
    found, inside, quoted = set(), False, False
    for number, line in enumerate(text.split("\n"), start=1):
        code, quotes = line.strip(), line.count('"""')
        if quoted or quotes:
            quoted ^= quotes % 2 == 1
            continue
        if re.match(r"\s*(def|cpdef|cdef)\b.*\(", line):
            inside = True
        elif code and not line.startswith((" ", ")")):
            inside = False
        if inside and code and not DECLARED.match(code):
            found.add(number)
    return found


def origins(text: str) -> dict[int, tuple[str, int]]:
    """The file and line that each line of a C file comes from, where it comes from any."""
    found, here = {}, None
    for number, line in enumerate(text.split("\n"), start=1):
        if start := re.match(r'\s*/\* "(?:[^"]*/)?(\w+\.p[yx][xd])":(\d+)$', line):
            here = start[1], int(start[2])
        elif line.startswith("}"):  # the end of a function
            here = None
        if here is not None:
            found[number] = here
    return found


def counts(build: Path) -> dict[tuple[str, int], int]:
    """How often each line of each source ran."""
    found: dict[tuple[str, int], int] = defaultdict(int)
    for made in sorted(build.rglob("*.pyx.c")):
        data = made.with_name(f"meson-generated_{made.name}.gcda")
        run = ["gcov", "--json-format", "--stdout", str(data)]
        done = subprocess.run(run, cwd=build, check=True, capture_output=True, text=True)
        origin = origins(made.read_text())
        for each in json.loads(done.stdout)["files"]:
            if Path(each["file"]).name != made.name:
                continue
            for line in each["lines"]:
                if line["line_number"] in origin:
                    found[origin[line["line_number"]]] += line["count"]
    return found


def spans(numbers: list[int]) -> str:
    """Numbers as ``3-5, 9``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build" / "coverage")
    parser.add_argument("--fail-under", type=float, default=97.0, help="per cent of all lines")
    options = parser.parse_args()
    found, total, all_missed = counts(options.build), 0, 0
    print(f"{'compiled module':<32}{'lines':>7}{'missed':>8}{'cover':>8}   missing")
    for path in sorted((ROOT / "src").rglob("*.p[yx][xd]")):
        ran = {number: count for (name, number), count in found.items() if name == path.name}
        lines = sorted(statements(path.read_text()) & ran.keys())
        if not lines:
            continue
        missed = [number for number in lines if not ran[number]]
        total, all_missed = total + len(lines), all_missed + len(missed)
        cover = 100.0 * (1.0 - len(missed) / len(lines))
        place = path.relative_to(ROOT / "src" / "drlogit")
        print(f"{place!s:<32}{len(lines):>7}{len(missed):>8}{cover:>7.1f}%   {spans(missed)}")
    cover = 100.0 * (1.0 - all_missed / max(total, 1))
    print(f"{'all':<32}{total:>7}{all_missed:>8}{cover:>7.1f}%")
    if not total or cover < options.fail_under:
        print(f"error: {cover:.1f} % of the compiled lines ran, not {options.fail_under:g} %")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
