"""Every argument of public functions, estimators and methods says its type, arrays their shape."""

import inspect
import re

import pytest

import kernelatoms

# Rooms whose own public functions and classes are looked at, beside the names of kernelatoms.
ROOMS = ("codec", "coding", "datasets", "report")
# Their methods are described by the contract in the head of the module.
CONTRACTS = ("kernelatoms.coding.problem", "kernelatoms.coding.codes")
# A type that names an array says its shape, in the words of scikit-learn: "of shape (n, m)".
ARRAY = re.compile(r"\b(arrays?|matrix|frame)\b")
SHAPE = re.compile(r"\bshape \(|\bshape of\b")
# The field's letters for rows, labels and the like: arrays, unless a float is said to be one row's.
ARRAYS = {"X", "y", "Y", "codes", "gram", "corr", "energy", "atoms", "candidates", "images"}


def section(doc, name):
    """Return the lines of a numpydoc section."""
    lines = inspect.cleandoc(doc or "").splitlines()
    for start in range(len(lines) - 1):
        if lines[start] == name and set(lines[start + 1]) == {"-"}:
            rest = lines[start + 2 :]
            ends = [i for i in range(1, len(rest)) if rest[i] and set(rest[i]) == {"-"}]
            return rest[: ends[0] - 1] if ends else rest
    return []


def entries(doc, name="Parameters"):
    """Return the types of a section by argument: "a, b : int" is two of them."""
    found = {}
    for line in section(doc, name):
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found |= dict.fromkeys(names.replace(" ", "").split(","), kind.strip())
    return found


def arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name.lstrip("*") for p in parameters if p.name not in ("self", "cls")]


def faults(function, doc):
    """List what is wrong with the description of a function's arguments."""
    types = entries(doc)
    wrong = []
    for name in arguments(function):
        kind = types.get(name)
        if kind is None:
            wrong.append(f"{name} is not described")
        elif not kind:
            wrong.append(f"{name} has no type")
        elif kind not in ("ignored", "float, optional") and (ARRAY.search(kind) or name in ARRAYS):
            wrong += [] if SHAPE.search(kind) else [f"{name} : {kind}, but of which shape?"]
    wrong += [f"{name} is no argument" for name in set(types) - set(arguments(function))]
    return wrong


def public_callables():
    """Yield names and objects that users can call, classes with their own public methods."""
    owners = [(name, getattr(kernelatoms, name)) for name in kernelatoms.__all__]
    for room in ROOMS:
        module = getattr(kernelatoms, room)
        things = ((f"{room}.{name}", getattr(module, name)) for name in module.__all__)
        owners += [
            (name, thing)
            for name, thing in things
            if _module(thing).startswith(f"kernelatoms.{room}.") and _module(thing) not in CONTRACTS
        ]
    for name, thing in owners:
        is_contract = getattr(thing, "_is_protocol", False)  # nobody makes one
        if is_contract or (inspect.isclass(thing) and issubclass(thing, BaseException)):
            continue
        if callable(thing):
            yield name, thing
        if inspect.isclass(thing):
            for method in dir(thing):
                found = inspect.getattr_static(thing, method)
                if isinstance(found, classmethod | staticmethod):
                    found = found.__func__
                ours = inspect.isfunction(found) and _module(found).startswith("kernelatoms")
                if ours and not method.startswith("_"):
                    yield f"{name}.{method}", found


def _module(thing):
    return getattr(thing, "__module__", None) or ""


CALLABLES = dict(public_callables())


@pytest.mark.parametrize("name", CALLABLES)
def test_every_argument_has_its_type_and_arrays_their_shape(name):
    thing = CALLABLES[name]
    assert not faults(thing, thing.__doc__)


def test_estimators_and_their_methods_are_looked_at():
    assert {"KSVD", "KSVD.fit", "KernelMOD.transform", "sparse_encode", "coding.lasso"} <= set(
        CALLABLES
    )


def test_what_is_missing_is_found():
    def function(X, size, flag):
        """Do.

        Parameters
        ----------
        X : array
            Rows.
        size
            As elsewhere.
        other : int
            Gone.

        Returns
        -------
        flag : bool
        """

    assert faults(function, function.__doc__) == [
        "X : array, but of which shape?",
        "size has no type",
        "flag is not described",
        "other is no argument",
    ]
