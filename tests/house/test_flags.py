"""Flags are True or False: every argument of public names that has such a default says so."""

import importlib
import inspect

import numpy as np
import pytest

import kernelatoms

ROOMS = ("", ".codec", ".coding", ".similarity", ".datasets", ".report", ".files")

X = np.random.default_rng(0).standard_normal((12, 4))


def of_pursuit(name):
    """Return a call of a choice of ``pursuit`` on a small problem."""
    rooms = importlib.import_module("kernelatoms.coding")

    def call(**flags):
        first = 2 if name == "OMP" else 0.1
        return getattr(rooms, name)(first, **flags)(rooms.LinearProblem(X, X[:5]))

    return call


def of_problem(name, *arguments):
    rooms = importlib.import_module("kernelatoms.coding")
    return lambda **flags: getattr(rooms, name)(rooms.LinearProblem(X, X[:5]), *arguments, **flags)


def of_estimator(name, *arguments):
    return lambda **flags: getattr(kernelatoms, name)(*arguments, **flags).fit(X, np.arange(12) % 2)


def of_function(room, name, *arguments, **options):
    function = getattr(importlib.import_module(f"kernelatoms{room}"), name)
    return lambda **flags: function(*arguments, **options, **flags)


def a_table():
    from kernelatoms.files import Table

    return Table("t.csv", ["a"], np.arange(4.0)[:, None] ** 2, {}, named=True)


CALLS = {
    ".KSCDL": of_estimator("KSCDL"),
    ".KSVD": of_estimator("KSVD"),
    ".MOD": of_estimator("MOD"),
    ".KernelKSVD": of_estimator("KernelKSVD"),
    ".KernelMOD": of_estimator("KernelMOD"),
    ".CRCClassifier": of_estimator("CRCClassifier"),
    ".ClassDictionaryClassifier": of_estimator("ClassDictionaryClassifier"),
    ".DKSVDClassifier": of_estimator("DKSVDClassifier"),
    ".LCKSVDClassifier": of_estimator("LCKSVDClassifier"),
    ".FDDLClassifier": of_estimator("FDDLClassifier"),
    ".KSAD": of_estimator("KSAD"),
    ".KSADClassifier": of_estimator("KSADClassifier"),
    ".compress": of_function("", "compress", "nothing.csv"),
    ".default_preset": of_function("", "default_preset", 9),
    ".estimate_sigma": of_function("", "estimate_sigma", X),
    ".make_lkdl": of_function("", "make_lkdl", kernelatoms.KSVD()),
    ".Preset": of_function("", "Preset", "mine", "MOD"),
    ".SRCClassifier": of_estimator("SRCClassifier"),
    ".SparseCoder": of_estimator("SparseCoder", X[:5]),
    ".lasso_path": of_function("", "lasso_path", X, X[:5]),
    ".sparse_encode": of_function("", "sparse_encode", X, X[:5]),
    ".coding.OMP": of_pursuit("OMP"),
    ".coding.Lasso": of_pursuit("Lasso"),
    ".coding.LinearProblem": of_function(".coding", "LinearProblem", X, X[:5]),
    ".coding.GivenProblem": of_function(".coding", "GivenProblem", X[:5] @ X[:5].T, X @ X[:5].T),
    ".coding.omp": of_problem("omp", 2),
    ".coding.ksc": of_problem("ksc", 0.1),
    ".coding.lasso": of_problem("lasso", 0.1),
    ".files.training_set": of_function(".files", "training_set", a_table(), None),
    ".similarity.Channels": of_function(".similarity", "Channels", 0, 2),
    ".similarity.channel_kernel": of_function(".similarity", "channel_kernel", "rbf", 2),
    ".datasets.load_mnist": of_function(".datasets", "load_mnist"),
    ".datasets.load_orl": of_function(".datasets", "load_orl"),
    ".datasets.load_usps": of_function(".datasets", "load_usps"),
    ".report.RowsOfFile": of_function(".report", "RowsOfFile"),
    ".report.convergence_figure": of_function(".report", "convergence_figure", {"a": [1.0]}),
}


def flags():
    """List (public name, argument) of all flags: arguments whose default is True or False."""
    found, seen = [], set()
    for room in ROOMS:
        module = importlib.import_module(f"kernelatoms{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            is_error = inspect.isclass(thing) and issubclass(thing, Exception)
            if not callable(thing) or is_error or id(thing) in seen:
                continue
            seen.add(id(thing))
            methods = vars(thing).items() if inspect.isclass(thing) else ()
            public = [(f"{name}.{key}", method) for key, method in methods if key[0] != "_"]
            for full, function in [(name, thing), *public]:
                if not callable(function):
                    continue
                for argument in inspect.signature(function).parameters.values():
                    if isinstance(argument.default, bool):
                        found.append((f"{room}.{full}", argument.name))
    return found


def test_there_are_some():
    assert (".sparse_encode", "positive") in flags()
    assert len(flags()) >= 28


@pytest.mark.parametrize(("name", "flag"), flags())
def test_flags_are_true_or_false(name, flag):
    for wrong in ("no", 1, None, 0.0):
        with pytest.raises(TypeError, match=f"{flag} must be True or False, got {wrong!r}"):
            CALLS[name](**{flag: wrong})


@pytest.mark.parametrize("name", [".MOD", ".sparse_encode", ".coding.omp"])
def test_flags_of_numpy_are_flags(name):
    CALLS[name](positive=np.bool_(True))
