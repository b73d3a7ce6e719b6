"""The models of a file: named, given or chosen; and the smallest error that reaches a ratio."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.file_writer import Models, write_compressed
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.model_selection import choose_model, without_history
from kernelatoms.codec.packed.sources import OnStep, Source, quiet

# Models are chosen on the first values.
_SAMPLE_VALUES = 1 << 21
# A ratio is searched for on the first bytes of the original, this many at most.
_MOST_SEARCHED = 64 << 20
_SMALLEST, _LARGEST, _NEAR = 1e-9, 1.0, 1.005


def find_models(
    source: Source, bound: Bound, model: str | CodecModel, symmetric: bool | None, stored: bool,
    on_step: OnStep,
) -> Models:  # fmt: skip
    """Choose or check a model for every part with approximate numbers."""
    found = Models([], [], [], stored)
    digests: list[str] = []
    for number, plan in enumerate(source.parts):
        if not plan.n_columns:
            found.of_part.append(-1)
            continue
        if isinstance(model, CodecModel):
            check_model_fits(model, plan.n_columns, plan.slice_rows, plan.name or source.path)
            chosen = without_history(model) if stored else model
        else:
            on_step(0, 0, "choosing a model")
            choice = choose_model(
                source.sample(number, max(1, _SAMPLE_VALUES // max(1, plan.row_values))), bound,
                slice_rows=plan.slice_rows, symmetric=symmetric,
                names=None if model == "auto" else [model],
                n_rows=plan.n_rows * max(1, plan.slice_rows),
            )  # fmt: skip
            chosen = choice.model
            of = f"{plan.name.removesuffix('.npy')}: " if len(source.parts) > 1 else ""
            found.trials.extend(replace(trial, name=of + trial.name) for trial in choice.trials)
        if chosen.digest not in digests:
            digests.append(chosen.digest)
            found.models.append(chosen)
        found.of_part.append(digests.index(chosen.digest))
    return found


def check_model_fits(model: CodecModel, n_columns: int, slice_rows: int, what: Any) -> None:
    """Refuse a model of rows of another shape."""
    if (model.n_columns, model.slice_rows) != (n_columns, slice_rows):
        raise ValueError(
            f"model: it predicts {_shape(model.n_columns, model.slice_rows)}, and {what} has "
            f"{_shape(n_columns, slice_rows)}."
        )


def _shape(n_columns: int, slice_rows: int) -> str:
    if slice_rows:
        return f"slices of {slice_rows:,} rows and {n_columns:,} columns"
    return f"rows of {n_columns:,} approximate columns"


def bound_for_ratio(
    source: Source, ratio: float, model: str | CodecModel, symmetric: bool | None, stored: bool,
    block_rows: int | None, on_step: OnStep,
) -> tuple[Bound, Models]:  # fmt: skip
    """Return the smallest error with which the file becomes small enough, and its models.

    Raises
    ------
    ValueError
        If no error is large enough; the message says what can be reached.
    """
    original = source.path.stat().st_size
    share = min(1.0, _MOST_SEARCHED / max(1, original))
    steps = 0

    def choose(bound: Bound) -> Models:
        return find_models(source, bound, model, symmetric, stored, on_step)

    def reached(bound: Bound, models: Models) -> float:
        nonlocal steps
        steps += 1
        on_step(steps, 20, f"looking for a ratio of {ratio:g}")
        counter: Any = _Counter()
        write_compressed(
            source, counter, bound, models, block_rows=block_rows, on_step=quiet, most_rows=share
        )
        return original * share / counter.size

    def smallest(models: Models, low: float = _SMALLEST, high: float = _LARGEST) -> float:
        return _smallest_error(lambda e: reached(Bound(relative=e), models) >= ratio, low, high)

    models = choose(Bound(relative=0.01))
    # In tables, exact numbers are not stored as floats: there an exact result is no candidate.
    if source.kind in ("npy", "npz") and reached(Bound(), models) >= ratio:
        return Bound(), models
    most = reached(Bound(relative=_LARGEST), models)
    if most < ratio:
        raise ValueError(
            f"ratio: {source.path} cannot become {ratio:g} times smaller; with any error at all in "
            f"its approximate numbers it becomes {most:.3g} times smaller."
        )
    error = smallest(models)
    better = choose(Bound(relative=error))
    same = [m.digest for m in better.models] == [m.digest for m in models.models]
    if not same and reached(Bound(relative=error), better) >= ratio:
        models, error = better, smallest(better, error / 2, error)
    return Bound(relative=error), models


def _smallest_error(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return an error that is enough, at most half a percent above one that is not."""
    if enough(low):
        return low
    while high / low > _NEAR:
        middle = float(f"{(low * high) ** 0.5:.4g}")
        if not low < middle < high:
            break
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


class _Counter:
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)
