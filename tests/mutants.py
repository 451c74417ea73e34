"""Break one line of a kernel, a bound or the verification at a time: ``make mutants``.

A line that no test notices when it is wrong is not tested.  All mutants of a module are compiled
into one copy of it, in which the environment chooses the one that is alive, so that a module is
built once.  The relevant tests run for each mutant, those of the module itself first.

    python tests/mutants.py [--count 60] [--seed 0] [--jobs 2] [--module _labels ...] [--list]
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES, COPY = ROOT / "src" / "drlogit", ROOT / "build" / "mutants"

#: Seconds of processor time for the tests of a mutant; one that takes longer is killed.
SECONDS = 150

#: The modules that are broken: kernels, bounds and verification.
TARGETS = sorted(
    str(path.relative_to(SOURCES).with_suffix(""))
    for pattern in ("engine/_*.pyx", "problem/_*.pyx", "dual/[_a-z]*.py*", "verification/*s.py")
    for path in SOURCES.glob(pattern)
    if path.suffix in (".py", ".pyx") and path.stem != "__init__"
)

#: Further tests of a room, where its own do not notice: those of problems that its code serves.
BESIDES = {
    "problem": "engine/test_kernels_pieces.py engine/test_domain_solver.py",
    "dual": "engine/test_domain_solver.py engine/test_classes.py verification",
}


def tests_of(module: str) -> list[str]:
    """Those that bear the module's name, the other kernels' tests of its room, the room."""
    room, stem = module.split("/")[0], module.split("_")[-1].split("/")[-1]
    own = ROOT.joinpath("tests", room).glob("test_*.py")
    files = sorted(own, key=lambda path: (stem not in path.stem, "kernels" not in path.stem, path))
    found = [f"{room}/{path.name}" for path in files] + BESIDES.get(room, "").split()
    return [f"tests/{name}" for name in found]


#: What a mutant does to a line: the first that applies, in a random order.
CHANGES = [
    (r" \+= ", " -= "), (r" -= ", " += "), (r" \+ ", " - "), (r" - ", " + "),
    (r" \* ", " / "), (r" / ", " * "), (r"\bmin\(", "max("), (r"\bmax\(", "min("),
    (r"\b0\.5\b", "0.7"), (r"\b2\.0\b", "3.0"), (r"\b1\.0\b", "1.5"), (r"\b0\.0\b", "0.5"),
    (r" < ", " > "), (r" > ", " < "), (r"(?<!strict=)\bTrue\b", "False"), (r"\bFalse\b", "True"),
    (r"\bnot ", ""), (r" and ", " or "), (r" or ", " and "),
]  # fmt: skip

#: Lines that save time, allocate, copy memory, raise errors or cannot be wrapped in a condition.
LEFT_OUT = re.compile(
    r"^(cdef |cpdef |def |class |import |from |@|#|\"|for |while |with |else|elif |try|except|raise"
    r"|pass|continue|break|fit\(|check\(|assert |yield |global )|np\.(empty|zeros)\(|\.free\(\)"
    r"|borrow\(\)|memset|memcpy|raise |__name__|SETTINGS|BrokenProofError\(|check_finite|^[A-Z_]+ ="
)


@dataclass(frozen=True)
class Mutant:
    module: str
    number: int
    line: int
    before: str
    after: str


def statements(text: str) -> list[int]:
    """The lines within functions that are one whole statement, or the head of an ``if``."""
    found, string, depth, inside = [], False, 0, False
    for number, line in enumerate(text.split("\n")):
        quotes = line.count('"""')
        if string or quotes % 2:
            string = string != bool(quotes % 2)
            continue
        code = line.split("#")[0].rstrip()
        bare = code.strip()
        if re.match(r"\s*(def|cdef|cpdef)\b.*\(", code):
            inside = True
        elif code and not code.startswith((" ", ")")):
            inside = False
        whole = (
            depth == 0 and bare.count("(") == bare.count(")") and bare.count("[") == bare.count("]")
        )
        depth += sum(bare.count(c) for c in "([{") - sum(bare.count(c) for c in ")]}")
        if inside and whole and not quotes and bare and not LEFT_OUT.search(bare):
            if bare.endswith(":") and not re.match(r"if .*:$", bare):
                continue
            if bare.endswith((",", "\\")):
                continue
            found.append(number)
    return found


def broken(line: str, chance: random.Random) -> str | None:
    """The line with one change, or None where none applies."""
    code = line.split("#")[0].rstrip()
    if code.strip().startswith("if "):
        return f"{code[: len(code) - len(code.lstrip())]}if not ({code.strip()[3:-1]}):"
    options = []
    for pattern, replacement in CHANGES:
        for match in re.finditer(pattern, code):
            head = code[: match.start()]
            if head.count("[") == head.count("]"):  # an index out of bounds shows by chance only
                options.append(head + replacement + code[match.end() :])
    return chance.choice(options) if options else None


def choose(count: int, seed: int, modules: list[str]) -> list[Mutant]:
    """So many mutants at random, over all lines of the modules."""
    chance, places = random.Random(seed), []
    for module in TARGETS:
        if modules and not any(module.endswith(name) for name in modules):
            continue
        path = source(module)
        places += [(module, number) for number in statements(path.read_text())]
    chance.shuffle(places)
    found: list[Mutant] = []
    for module, number in places:
        line = source(module).read_text().split("\n")[number]
        after = broken(line, chance)
        if after is not None and len(found) < count:
            found.append(Mutant(module, len(found) + 1, number, line.strip(), after.strip()))
    return found


def source(module: str) -> Path:
    compiled = SOURCES / f"{module}.pyx"
    return compiled if compiled.exists() else SOURCES / f"{module}.py"


def with_mutants(text: str, mutants: list[Mutant], compiled: bool) -> str:
    """A module in which the environment chooses which mutant is alive."""
    lines = text.split("\n")
    for mutant in mutants:
        line = lines[mutant.line]
        indent, alive = line[: len(line) - len(line.lstrip())], f"_MUTANT == {mutant.number}"
        if mutant.before.startswith("if "):
            condition = mutant.before.split("#")[0].rstrip()[3:-1]
            lines[mutant.line] = f"{indent}if (1 if ({condition}) else 0) != ({alive}):"
            continue
        lines[mutant.line] = (
            f"{indent}if {alive}:\n{indent}    {mutant.after}\n"
            f"{indent}else:\n{indent}    {line.strip()}"
        )
    head = "import os as _os\n" + ("cdef int " if compiled else "")
    head += '_MUTANT = int(_os.environ.get("DRLOGIT_MUTANT", "0"))\n'
    joined = "\n".join(lines)
    # A line of a docstring may begin with "from", too.
    first = re.search(r"^(from (?!__future__)[\w.]+ )?c?import ", joined, re.MULTILINE)
    assert first is not None
    return joined[: first.start()] + head + joined[first.start() :]


def build(mutants: list[Mutant]) -> None:
    """A copy of the package whose modules have these mutants."""
    package = COPY / "src" / "drlogit"
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for module in sorted({mutant.module for mutant in mutants}):
        path = package / source(module).relative_to(SOURCES)
        mine = [mutant for mutant in mutants if mutant.module == module]
        path.write_text(with_mutants(path.read_text(), mine, path.suffix == ".pyx"))
        if path.suffix == ".py":
            continue
        options = "boundscheck wraparound initializedcheck".split()
        directives = [f"-X{name}=False" for name in options] + ["-Xcdivision=True", "-Xcpow=True"]
        made, library = path.with_suffix(".c"), path.with_name(path.stem + suffix)
        cython = [sys.executable, "-m", "cython", "-3", *directives, "-I", str(COPY / "src")]
        subprocess.run([*cython, str(path), "-o", str(made)], check=True)
        compiler = [os.environ.get("CC", "cc"), *"-O1 -w -shared -fPIC -ffp-contract=off".split()]
        include = f"-I{sysconfig.get_path('include')}"
        subprocess.run([*compiler, include, str(made), "-o", str(library)], check=True)
        print(f"built {module} with {len(mine)} mutants", flush=True)


def preload() -> None:
    """Import once what all runs import: most of the time of a mutant that is killed at once."""
    for name in "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS":
        os.environ[name] = "1"
    for name in "numpy", "scipy.optimize", "scipy.sparse.linalg", "sklearn.linear_model", "cvxpy":
        importlib.import_module(name)


class FirstFailure:
    """A plugin of pytest that writes down the test that failed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)


def start(number: int, tests: list[str]) -> int:
    """Run tests with a mutant in a process of its own, which has the large imports already."""
    process = os.fork()
    if process:
        return process
    os.environ |= {"PYTHONPATH": str(COPY / "src"), "DRLOGIT_MUTANT": str(number)}
    sys.path.insert(0, str(COPY / "src"))
    output = os.open(COPY / f"{number}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time: others may be at work
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
        plugin = FirstFailure(COPY / f"{number}.failed")
        code = pytest.ExitCode(pytest.main([*options, *tests], plugins=[plugin]))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def outcomes(runs: list[tuple[int, list[str]]], jobs: int) -> Iterator[tuple[int, str]]:
    """How the tests end for each (mutant, tests), in the order in which they end."""
    running: dict[int, int] = {}
    while runs or running:
        while runs and len(running) < jobs:
            number, tests = runs.pop(0)
            running[start(number, tests)] = number
        process, status = os.wait()
        number, code = running.pop(process), os.waitstatus_to_exitcode(status)
        first = COPY / f"{number}.failed"
        if code == pytest.ExitCode.OK:
            yield number, "passed"
        elif code == pytest.ExitCode.TESTS_FAILED and first.exists():
            yield number, first.read_text()
        elif code < 0:  # a crash, or the time limit (SIGPROF)
            yield number, signal.Signals(-code).name
        else:
            yield number, "not run"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are tested at once")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = choose(options.count, options.seed, options.module)
    if options.list:
        for each in mutants:
            print(f"{each.number}: {each.module}:{each.line + 1}: {each.before}  =>  {each.after}")
        return 0
    build(mutants)
    os.chdir(ROOT)
    preload()
    survivors, failed = 0, set()
    runs = [(m.number, tests_of(m.module)) for m in mutants]
    for number, outcome in outcomes(runs, options.jobs):
        each = mutants[number - 1]
        print(
            f"{'survived' if outcome == 'passed' else 'killed'} {number}: {each.module}:"
            f"{each.line + 1}: {each.before}  =>  {each.after}  ({outcome})", flush=True,
        )  # fmt: skip
        if outcome == "not run":
            print(f"error: pytest did not run the tests, see {COPY}/{number}.txt")
            return 2
        survivors += outcome == "passed"
        failed |= {outcome} if "::" in outcome else set()
    # A test that fails without a mutant kills nothing.
    for _, outcome in outcomes([(0, sorted(failed))] if failed else [], 1):
        if outcome != "passed":
            print(f"error: without a mutant: {outcome}")
            return 2
    print(f"{survivors} of {len(mutants)} mutants survived")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
