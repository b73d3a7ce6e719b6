"""A model by the name of an estimator or preset, with parameters given as name=value."""

import ast
import difflib
import os
import sys
from collections.abc import Sequence
from typing import Any

from kernelatoms import PRESETS, Preset
from kernelatoms.estimators import registry

ESTIMATORS = {
    name: Preset(entry.what, name) for name, entry in registry.ESTIMATORS.items() if entry.what
}

CHOICES = {**PRESETS, **ESTIMATORS}
SCALES = ("standard", "unit", "range", "none")


def find_choice(name: str) -> Preset:
    """Return a preset or estimator by name, in any case of letters if that is unambiguous."""
    lower = {known.lower(): choice for known, choice in reversed(CHOICES.items())}
    if name in CHOICES or name.lower() in lower:
        return CHOICES.get(name, lower[name.lower()])
    near = difflib.get_close_matches(name, CHOICES, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"--model: there is no {name!r}.{hint} There are {', '.join(CHOICES)}.")


def make_model(
    choice: Preset,
    scale: str | None,
    settings: Sequence[str],
    seed: int,
    image_shape: tuple[int, int] | None = None,
    n_rows: int | None = None,
) -> Any:
    """Return the pipeline for such training rows, not yet fitted: fill, scale, (map,) learn."""
    from kernelatoms import make_preset

    if scale is not None and scale not in SCALES:
        raise ValueError(f"--scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    model = make_preset(choice, n_rows=n_rows, scale=scale)
    if image_shape is not None and "learn__image_shape" in model.get_params():
        model.set_params(learn__image_shape=image_shape)
    for setting in settings:
        name, value = _parse(setting)
        if name.split("__")[-1] == "kernel" and isinstance(value, str) and ":" in value:
            value = own_kernel(value)
        # One at a time: a new dictionary learner has parameters of its own.
        model.set_params(**{_find_parameter(model, name): value})
    seeds = [key for key in model.get_params() if key.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(seeds, seed))


def own_kernel(path: str) -> Any:
    """Return a user's kernel, "module:Class", from the current folder or installed."""
    from kernelatoms.similarity import kernel_from_path

    look_in_current_folder()
    try:
        return kernel_from_path(path)
    except ValueError as error:
        raise ValueError(f"--set {error}") from error
    except Exception as error:
        # The module is the user's: importing it may raise anything.
        raise ValueError(
            f"--set kernel={path}: importing the module failed with {type(error).__name__}: {error}"
        ) from error


def trusted_types(names: Sequence[str] | None) -> list[str]:
    """Return the types of ``--trust module:Class`` as ``load_model`` takes them."""
    trusted = []
    for name in names or []:
        module, colon, attribute = name.partition(":")
        if not (module and colon and attribute.isidentifier()):
            raise ValueError(f"--trust takes module:Class, such as mykernels:Power, got {name!r}.")
        trusted.append(f"{module}.{attribute}")
    if trusted:
        look_in_current_folder()
    return trusted


def look_in_current_folder() -> None:
    """Allow imports from the current folder, after all installed modules."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)


def _parse(setting: str) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    name, text = name.strip(), text.strip()
    if not equals or not name or not text:
        raise ValueError(f"--set takes name=value, such as --set n_atoms=50, got {setting!r}.")
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return name, words[text.lower()]
    if text in ESTIMATORS:
        from kernelatoms import make_preset

        return name, make_preset(Preset(text, text))[-1]  # with an explicit learner
    try:
        return name, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name, text


def _find_parameter(model: Any, name: str) -> str:
    """Return the full name of a parameter from the end of its name."""
    steps = dict(model.steps)
    names = [key for key in model.get_params() if key.split("__")[0] in steps and "__" in key]
    # Filling in has sizes too, which are meant by their full names only.
    found = [
        key
        for key in names
        if key == name or (key.endswith(f"__{name}") and not key.startswith("fill__"))
    ]
    # The one nearest to the top is meant: the classifier's own before its learner's.
    nearest = min((key.count("__") for key in found), default=0)
    found = [key for key in found if key.count("__") == nearest]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(sorted(found))
        raise ValueError(f"--set {name}: there is more than one; name one of {several}.")
    ends = sorted({key.split("__")[-1] for key in names if not key.startswith("fill__")})
    longer = [end for end in ends if end.startswith(name)]  # n_atoms of n_atoms_per_class
    near = longer or difflib.get_close_matches(name, ends, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if not longer and name.split("__")[-1] in parameters_of("lkdl") - set(ends):
        hint = " --model lkdl has it, and so have other models that learn atoms."
    words = f"the model has no such parameter.{hint} It has {', '.join(ends)}."
    raise ValueError(f"--set {name}: {words}")


def parameters_of(preset: str) -> set[str]:
    """Return the parameters of a preset, by the ends of their names."""
    from kernelatoms import make_preset

    names = make_preset(preset)[1:].get_params()
    return {key.split("__")[-1] for key in names if "__" in key}


def names_set(settings: Sequence[str]) -> list[str]:
    """Return the parameters that ``--set`` names, by the ends of their names."""
    return [setting.partition("=")[0].strip().split("__")[-1] for setting in settings]
