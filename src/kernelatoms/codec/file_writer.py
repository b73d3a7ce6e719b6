"""Blocks of a source to a compressed file, and the models of the file: given, named or chosen."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelatoms import __version__
from kernelatoms.codec.blocks import Compressed, encode_block, map_in_order, rows_per_block
from kernelatoms.codec.bounds import SHARES, Bound, ErrorStats
from kernelatoms.codec.container import Header, Part, Tail, Writer
from kernelatoms.codec.models.codec_model import CodecModel, model_bytes
from kernelatoms.codec.models.model_selection import Trial, choose_model, without_history
from kernelatoms.codec.models.predictors import ready
from kernelatoms.codec.packed.sources import OnStep, Source, quiet

# Columns that keep less than this share of their variance are named, this many at most.
_LITTLE_KEPT, _MOST_NAMED = 0.5, 4
# Models are chosen on the first values.
_SAMPLE_VALUES = 1 << 21
# A ratio is searched for on the first bytes of the original, this many at most.
_MOST_SEARCHED = 64 << 20
_SMALLEST, _LARGEST, _NEAR = 1e-9, 1.0, 1.005


@dataclass(frozen=True)
class Models:
    """The models of a file."""

    models: list[CodecModel]
    of_part: list[int]  # the index of each part's model; -1 without one
    trials: list[Trial]  # the candidates that were compared
    stored: bool = True  # whether the file stores the models


@dataclass(frozen=True)
class CompressionSummary:
    """The result of ``compress``.

    Parameters
    ----------
    path : Path
        The compressed file.
    n_bytes : int
        Its size in bytes.
    original_bytes : int
        The size of the source.
    ratio : float
        How many times smaller the compressed file is.
    n_rows : int
        Rows in the file (slices of a 3-d array), over all arrays.
    max_error, max_absolute : float or None
        The relative and the absolute bound; without both, numbers are exact.
    model : str
        The name of the model, or names separated by commas.
    trials : tuple of (str, int, str)
        The models that were compared: name, bytes, settings.
    largest_row_error : float
        The largest error of a row, relative to its norm.
    largest_error : float
        The largest error of a value.
    row_errors : dict of float to float
        Quantiles of the rows' relative errors: 0.5, 0.9, 0.99 and 1.
    approximate, exact : tuple of str
        The approximate and the exact columns of a table.
    notes : tuple of str
        Further remarks for the user.

    Examples
    --------
    >>> import numpy as np, tempfile, os, kernelatoms
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.npy")
    ...     np.save(path, np.random.default_rng(0).normal(size=(50, 4)))
    ...     summary = kernelatoms.compress(path, max_error=0.05)
    >>> summary.largest_row_error <= 0.05
    True
    """

    path: Path
    n_bytes: int
    original_bytes: int
    ratio: float
    n_rows: int
    max_error: float | None
    max_absolute: float | None
    model: str
    trials: tuple[tuple[str, int, str], ...] = ()
    largest_row_error: float = 0.0
    largest_error: float = 0.0
    row_errors: dict[float, float] = field(default_factory=dict)
    approximate: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def write_compressed(
    source: Source, file: IO[bytes], bound: Bound, models: Models, *,
    block_rows: int | None = None, old: Compressed | None = None, on_step: OnStep,
    most_rows: float = 1.0,
) -> tuple[int, ErrorStats]:  # fmt: skip
    """Write a compressed file; return its size and the errors of its rows.

    The rows of ``old``, a compressed file, come first. ``most_rows`` is the share of the rows to
    write, below 1 in trials.
    """
    writer, stats = Writer(file), ErrorStats()
    if old is not None:
        on_step(0, 0, "copying")
        writer.copy(old.reader)
        stats.add_summary(tuple(old.header.errors), old.n_rows())
    total = sum(plan.n_rows for plan in source.parts)
    done = 0
    for number, plan in enumerate(source.parts):
        of_part = models.of_part[number]
        model = None if of_part < 0 else ready(models.models[of_part])
        n_rows = rows_per_block(plan.n_rows, plan.row_values, block_rows)
        blocks, stop = source.blocks(number, n_rows), done + most_rows * plan.n_rows
        for block in map_in_order(partial(encode_block, bound=bound, model=model), blocks):
            writer.add(block.part, block.n_rows, block.matrix, block.exact)
            stats.add(block.errors, block.largest)
            if block.columns is not None:
                stats.add_columns(number, block.columns)
            done += block.n_rows
            on_step(done, total, "compressing")
            if done >= stop:
                break
    return writer.finish(_tail(source, bound, models, stats, old)), stats


def _tail(
    source: Source, bound: Bound, models: Models, stats: ErrorStats, old: Compressed | None
) -> Tail:
    parts = [
        Part(plan.name, plan.head, plan.dtype, model)
        for plan, model in zip(source.parts, models.of_part, strict=True)
    ]
    trials = best_trials(models.trials) if old is None else old.header.trials
    header = Header(
        source.kind, __version__, bound, parts, source.table(), stats.numbers(), trials,
        _original_size(source, old),
    ).to_bytes()  # fmt: skip
    if models.stored:
        return Tail(header, tuple(map(model_bytes, models.models)), (), source.schema())
    digests = tuple(bytes.fromhex(model.digest) for model in models.models)
    return Tail(header, (), digests, source.schema())


def _original_size(source: Source, old: Compressed | None) -> int:
    """Return the bytes of a source, and of what ``old`` was compressed from."""
    return source.path.stat().st_size + (0 if old is None else old.header.size)


def best_trials(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    """Return the fewest bytes of every model that was tried, for the header."""
    best: dict[str, int] = {}
    for name, n_bytes, _ in trials:
        best[name] = min(n_bytes, best.get(name, n_bytes))
    return sorted(best.items(), key=lambda item: item[1])


def lost_columns(source: Source, stats: ErrorStats) -> Iterator[str]:
    """Yield a note on the columns that lose most of their variance under a bound on whole rows."""
    for part, sums in stats.columns.items():
        kept = sums.kept()
        lost = np.flatnonzero(kept < _LITTLE_KEPT)
        if not len(lost):
            continue
        names = source.columns.get("approximate") or [str(j) for j in range(len(kept))]
        lost = lost[np.argsort(kept[lost])]
        words = ", ".join(f"{names[j]} ({max(kept[j], 0):.0%})" for j in lost[:_MOST_NAMED])
        more = f" and {len(lost) - _MOST_NAMED:,} more" if len(lost) > _MOST_NAMED else ""
        of = f" of {source.parts[part].name.removesuffix('.npy')}" if len(source.parts) > 1 else ""
        yield (
            f"Less than half of the variance of some columns{of} comes back: {words}{more}. A "
            "bound relative to whole rows is coarse for columns that are small beside others, or "
            "vary little around a large level; max_absolute, a smaller max_error or exact columns "
            "keep more."
        )


def summary_of(
    source: Source, target: Path, n_bytes: int, bound: Bound, models: Models,
    stats: ErrorStats, old: Compressed | None,
) -> CompressionSummary:  # fmt: skip
    """Return the summary of a written file."""
    errors, original = stats.numbers(), _original_size(source, old)
    n_rows = sum(plan.n_rows for plan in source.parts)
    return CompressionSummary(
        path=target, n_bytes=n_bytes, original_bytes=original, ratio=original / n_bytes,
        n_rows=n_rows + (0 if old is None else old.n_rows()),
        max_error=bound.relative, max_absolute=bound.absolute,
        model=", ".join(dict.fromkeys(model.predictor for model in models.models)) or "none",
        trials=tuple(models.trials),
        largest_row_error=errors[3] if errors else 0.0,
        largest_error=errors[4] if errors else 0.0,
        row_errors=dict(zip(SHARES, errors, strict=False)),
        approximate=tuple(source.columns.get("approximate", ())),
        exact=tuple(source.columns.get("exact", ())),
        notes=(*source.notes, *lost_columns(source, stats)),
    )  # fmt: skip


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
            chosen, trials = choose_model(
                source.sample(number, max(1, _SAMPLE_VALUES // max(1, plan.row_values))), bound,
                slice_rows=plan.slice_rows, symmetric=symmetric,
                names=None if model == "auto" else [model],
                n_rows=plan.n_rows * max(1, plan.slice_rows),
            )  # fmt: skip
            of = f"{plan.name.removesuffix('.npy')}: " if len(source.parts) > 1 else ""
            found.trials.extend((of + name, n_bytes, note) for name, n_bytes, note in trials)
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
        with open(os.devnull, "wb") as nowhere:
            n_bytes, _ = write_compressed(
                source, nowhere, bound, models, block_rows=block_rows, on_step=quiet,
                most_rows=share,
            )  # fmt: skip
        return original * share / n_bytes

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
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
