"""The package keeps its own rules."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import kernelatoms

TESTS = Path(__file__).parent.parent
ROOMS = Path(kernelatoms.__file__).parent


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


# What code outside the library may import from; "" is kernelatoms itself.
PUBLIC_ROOMS = {"", "codec", "similarity", "coding", "datasets", "report", "files"}


def package_imports(path):
    """Yield the rooms and modules that a file imports, without ``kernelatoms``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            within = ROOMS.parent.joinpath(*(node.module or "").split("."))
            names = [
                f"{node.module}.{alias.name}" if (within / f"{alias.name}.py").exists()
                else node.module or ""
                for alias in node.names
            ]  # fmt: skip
        else:
            continue
        for name in names:
            room, _, rest = name.partition(".")
            if room == "kernelatoms":
                yield rest


# Rooms of which report and cli may import modules, and further modules.
BY_MODULE = {
    "report": {"report", "files", "limits"},
    "cli": {"cli", "report", "files", "limits"},
}
FURTHER = {"cli": {"estimators.registry"}, "report": {"estimators.registry"}}


@pytest.mark.parametrize("room", ["report", "cli"])
def test_report_and_cli_import_other_rooms_as_packages(room):
    """As users do: ``from kernelatoms.coding import lasso``."""
    for path in (ROOMS / room).rglob("*.py"):
        for name in package_imports(path):
            if name.partition(".")[0] not in BY_MODULE[room]:
                allowed = PUBLIC_ROOMS | FURTHER.get(room, set())
                assert name in allowed, f"{room}/{path.name} imports kernelatoms.{name}"


def test_the_reproduction_imports_public_names_only():
    """Names that a public room lists, or the API pages by their full name."""
    pages = (TESTS.parent / "docs" / "api" / "index.rst").read_text().split()
    paths = sorted((TESTS.parent / "reproduction").rglob("*.py"))
    assert len(paths) > 80
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names if alias.name.startswith("kernelatoms")}
                assert names <= {"kernelatoms"}, f"{path} imports {names}"
            elif isinstance(node, ast.ImportFrom):
                room, _, rest = (node.module or "").partition(".")
                if room == "kernelatoms":
                    listed = rest in PUBLIC_ROOMS
                    public = importlib.import_module(node.module).__all__ if listed else ()
                    for alias in node.names:
                        name = f"{node.module}.{alias.name}"
                        assert alias.name in public or name in pages, f"{path} imports {name}"


@pytest.mark.parametrize("room", sorted(PUBLIC_ROOMS - {""}))
def test_names_of_public_rooms_load(room):
    module = getattr(kernelatoms, room)
    assert room in dir(kernelatoms)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing


@pytest.mark.parametrize(("room", "most"), [("coding", 15), ("similarity", 15), ("datasets", 16)])
def test_ground_rooms_have_few_public_names(room, most):
    """Those that users need, who otherwise name kernels, distances and methods by words."""
    assert len(getattr(kernelatoms, room).__all__) <= most


def test_all_public_rooms_together_have_few_names():
    """Those that two rooms list count twice."""
    rooms = [kernelatoms, *(getattr(kernelatoms, room) for room in PUBLIC_ROOMS - {""})]
    assert sum(len(room.__all__) for room in rooms) <= 132  # with open_rows and Checkpoint


@pytest.mark.parametrize("path", sorted((TESTS / "oracles").glob("*.py")), ids=lambda p: p.name)
def test_oracles_import_numpy_only(path):
    assert set(imports(path)) <= {"numpy"}


def test_every_room_has_its_map():
    reproduction = TESTS.parent / "reproduction"
    for room in (*ROOMS.rglob("*"), reproduction, *reproduction.rglob("*")):
        if room.is_dir() and (room / "__init__.py").exists():
            doc = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
            files = {p.stem for p in room.glob("*.py")} - {"__init__"}
            missing = {name for name in files if f"``{name}``" not in doc}
            assert not missing, f"{room.name}/__init__.py does not mention {missing}"


def test_public_names_load_and_are_documented():
    for name in kernelatoms.__all__:
        assert getattr(kernelatoms, name) is not None
    for name in set(kernelatoms.__all__) - {"__version__", "PRESETS"}:  # a text and a table
        assert "Examples" in getattr(kernelatoms, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kernelatoms.nothing
    assert "datasets" in dir(kernelatoms)


def test_jitted_functions_use_names_of_files_that_the_cache_knows_and_no_float():
    """It knows a function's own file and those that jitted functions are imported from."""
    for path in [*(ROOMS / "engine/cpu").rglob("*.py"), *(ROOMS / "codec/loops").glob("*.py")]:
        tree = ast.parse(path.read_text())
        imported = set()
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelatoms"):
                names = [alias.asname or alias.name for alias in node.names]
                module = importlib.import_module(node.module)
                if not any(hasattr(getattr(module, name, None), "py_func") for name in names):
                    imported.update(names)
        for function in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
            jitted = any("jit" in ast.unparse(d) for d in function.decorator_list)
            body = [node for statement in function.body for node in ast.walk(statement)]
            used = {node.id for node in body if isinstance(node, ast.Name)}
            assert not (jitted and used & imported), f"{path.name}: {function.name}"
            # numba's float() leaves a float32 what it is: np.float64 says what is meant.
            assert not (jitted and "float" in used), f"{path.name}: {function.name}"


# These rooms are commands, or write them.
MAY_NAME_FLAGS = ("cli/", "codec/commands")


def test_messages_of_the_library_name_arguments_and_no_flags():
    """``cli/console.py`` translates ``header=True`` into ``--header``."""
    for path in ROOMS.rglob("*.py"):
        if path.relative_to(ROOMS).as_posix().startswith(MAY_NAME_FLAGS):
            continue
        tree = ast.parse(path.read_text())
        documents = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                flag = re.search(r"(?<![\w-])--[a-z]", node.value)
                assert id(node) in documents or not flag, f"{path.name}:{node.lineno}"


def test_the_command_line_speaks_in_one_place():
    """Texts of files reach a terminal through ``console`` only, which makes them visible."""
    for path in [*(ROOMS / "cli").glob("*.py"), *(ROOMS / "codec").rglob("*.py")]:
        if path.name == "console.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"cli/{path.name} prints by itself"
