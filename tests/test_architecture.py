"""The order of the packages, as CONTRIBUTING.md states it, and the names at the top."""

import ast
import re
from functools import cache
from pathlib import Path

import drlogit

SOURCE = Path(drlogit.__file__).parent
SENTENCE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
ORDER = re.search(r"Imports go down this list and never up: ([\w\s,`]+)\.", SENTENCE)


def order() -> list[str]:
    assert ORDER is not None
    return re.findall(r"\w+", ORDER[1])[::-1]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules_imported(path: Path) -> set[Path]:
    """The modules of drlogit that a module imports from, wherever in it, but for the top itself."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found.add(place.with_suffix(".py"))
            for name in (alias.name for alias in node.names):
                module = place / f"{name}.py"
                found.add(module if module.exists() else place / "__init__.py")
    return {module for module in found if module.exists()} - {path, SOURCE / "__init__.py"}


def packages_imported(path: Path) -> set[str]:
    """The packages that they are in."""
    return {module.relative_to(SOURCE).parts[0] for module in modules_imported(path)}


def test_imports_go_down_the_list_that_contributing_states():
    packages = [p.name for p in SOURCE.iterdir() if (p / "__init__.py").exists()]
    assert sorted(order()) == sorted(packages)
    upward = {
        f"{path.relative_to(SOURCE)} -> {target}"
        for rank, package in enumerate(order())
        for path in (SOURCE / package).rglob("*.py")
        for target in packages_imported(path)
        if target != package and order().index(target) > rank
    }
    assert not upward


def test_no_module_imports_itself_by_way_of_others():
    imports = {path: modules_imported(path) for path in SOURCE.rglob("*.py")}
    # Whoever imports nothing that is left, or is imported by nothing that is, is in no circle.
    while ends := {
        path
        for path, used in imports.items()
        if not used & imports.keys() or not any(path in others for others in imports.values())
    }:
        imports = {path: used for path, used in imports.items() if path not in ends}
    assert not [str(path.relative_to(SOURCE)) for path in imports]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def reach_ins(path: Path) -> set[str]:
    """Private names of other files that a file uses; those of named tuples are Python's own."""
    tree = parsed(path)
    used, own = set(), {"_asdict", "_fields", "_make", "_replace"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.level:
            used |= {
                alias.name
                for alias in node.names
                if is_private(alias.name) and not (path.parent / f"{alias.name}.pyx").exists()
            }
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inherited = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            (own if itself or inherited else used).add(node.attr)
    return used - own


def test_files_keep_to_each_others_public_names():
    found = {str(path.relative_to(SOURCE)): reach_ins(path) for path in SOURCE.rglob("*.py")}
    assert not {name: used for name, used in found.items() if used}


def test_a_file_has_its_name_for_itself():
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        homes.setdefault(path.name, []).append(path.parent.name)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    # A command has the name of the function that it calls.
    commands = {path.name for path in (SOURCE / "cli").glob("*.py")}
    assert twice.keys() <= commands | {"__init__.py", "classes.py", "pair.py", "pieces.py"}


def test_nothing_but_packages_at_the_top():
    modules = {p.stem for p in SOURCE.glob("*.py")}
    assert modules == {"__init__", "__main__"}
    assert len(order()) <= 14


def test_no_package_shares_its_name_with_a_public_function():
    functions = {name for name in drlogit.__all__ if callable(getattr(drlogit, name))}
    assert not functions & set(order())


def test_public_classes_go_by_their_public_address():
    for name in drlogit.__all__:
        value = getattr(drlogit, name)
        if isinstance(value, type):
            assert value.__module__ == "drlogit"


def test_a_class_has_its_name_for_itself():
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert not {name: places for name, places in homes.items() if len(places) > 1}
