"""The numerical tests as other processors would run them: ``make everywhere``.

Last bits differ from processor to processor: OpenBLAS has kernels for each, and NumPy vectors of
several widths.  Either can be told to take those of an older processor, so one machine shows what
most do.  No decision may hang on last bits, and what is promised must hold under every setting.

    python tests/everywhere.py [setting ...]      all by default; one last line for each
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

#: The folders whose outcome could depend on rounding: solvers, certificates, what rests on them.
NUMERICAL = "rows problem dual engine starts fitting paper robustness verification".split()

#: OpenBLAS's core, and the widest vectors of NumPy (levels of x86-64: 4 has AVX-512, 3 has AVX2);
#: None leaves it to the machine.  Zen has Haswell's kernels in the builds that NumPy comes with.
SETTINGS: dict[str, tuple[str | None, int | None]] = {
    "native": (None, None),
    "haswell": ("Haswell", 3),
    "sandybridge": ("Sandybridge", 2),
    "nehalem": ("Nehalem", 2),
    "prescott": ("Prescott", 2),
    "numpy-v3": (None, 3),
    "numpy-v2": (None, 2),
}

#: What OpenBLAS calls a core where its builds for NumPy have no other name for these kernels.
SAID = {"Prescott": "Katmai"}

#: Names of NumPy's features beyond a level, those of NumPy 2.4 and those before.
BEYOND = {3: r"AVX512|V4", 2: r"AVX|FMA|XOP|F16C|V3|V4"}

#: What a process with a setting says of itself.
PROBE = """
import json, numpy, threadpoolctl
numpy.linalg.inv(numpy.eye(70) + 1.0)
umath = getattr(numpy, "_core", None) or numpy.core
found = umath._multiarray_umath
blas = [lib.get("architecture") for lib in threadpoolctl.threadpool_info()]
features = [name for name in found.__cpu_dispatch__ if found.__cpu_features__.get(name)]
print(json.dumps({"blas": blas, "features": features}))
"""


def probe(environment: dict[str, str]) -> dict[str, list[str]]:
    """The cores of BLAS and the vectors of NumPy in use; nothing if it did not survive."""
    run = [sys.executable, "-W", "ignore", "-c", PROBE]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def environment_of(core: str | None, level: int | None) -> tuple[dict[str, str], str]:
    """The variables of a setting, and what speaks against it here."""
    wanted = dict(os.environ)
    if core is not None:
        wanted["OPENBLAS_CORETYPE"] = core
        if not {core, SAID.get(core)} & set(probe(wanted).get("blas", [])):
            return wanted, f"this machine, or its BLAS, has no kernels for {core}"
    if level is not None:
        beyond = [name for name in probe(wanted)["features"] if re.search(BEYOND[level], name)]
        if beyond:
            wanted["NPY_DISABLE_CPU_FEATURES"] = " ".join(beyond)
        elif core is None:
            return wanted, f"NumPy uses nothing beyond level {level} here"
        # The C library's exp and log, which compiled loops call, have variants as well.
        if level < 3:
            wanted["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"
    return wanted, ""


def main(names: list[str]) -> int:
    """Run the tests under each setting; how many failed."""
    unknown = sorted(set(names) - set(SETTINGS))
    if unknown:
        raise SystemExit(f"settings are {', '.join(SETTINGS)}; got {', '.join(unknown)}")
    folder = Path(__file__).parent
    files = [str(folder / name) for name in NUMERICAL]
    arguments = os.environ.get("PYTEST_ARGS", "").split()
    failed = 0
    for name in names or SETTINGS:
        environment, against = environment_of(*SETTINGS[name])
        if against:
            print(f"{name}: skipped, {against}", flush=True)
            continue
        started = time.perf_counter()
        run = [sys.executable, "-m", "pytest", "-q", *arguments, *files]
        done = subprocess.run(run, env=environment, capture_output=True, text=True)
        lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
        if done.returncode:
            failed += 1
            print("\n".join(lines), file=sys.stderr)
        print(f"{name}: {lines[-1]} ({time.perf_counter() - started:.0f} s in all)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
