"""A file to blocks to bytes: which models, which bound, and the file itself."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kernelatoms.codec.blocks import EncodedBlock, encode_block, in_order, rows_a_block
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.choosing import Trial, choose_model, without_history
from kernelatoms.codec.format import Tail, Writer
from kernelatoms.codec.header import Header, Part
from kernelatoms.codec.measuring import Tally
from kernelatoms.codec.models import CodecModel
from kernelatoms.codec.opened import Compressed
from kernelatoms.codec.predictors import ready
from kernelatoms.codec.stored_models import model_bytes
from kernelatoms.files.sources import OnStep, Source

Array = NDArray[Any]

# Models are chosen on the first values, some megabytes.
_SAMPLE_VALUES = 1 << 21
# A ratio is looked for on so many bytes of the original, the first ones.
_MOST_SEARCHED = 64 << 20
_SMALLEST, _LARGEST, _NEAR = 1e-9, 1.0, 1.005
# Columns that keep less of their variance are named, so many of them.
_LITTLE_KEPT, _MOST_NAMED = 0.5, 4


@dataclass(frozen=True)
class Models:
    """The models of a file.

    Parameters
    ----------
    models : list of CodecModel
        Each once.
    of_part : list of int
        Which of them each part is predicted by; -1 if none.
    trials : list of Trial
        What was tried to find them.
    stored : bool
        Whether the file holds them.
    """

    models: list[CodecModel]
    of_part: list[int]
    trials: list[Trial]
    stored: bool = True

    def of(self, part: int) -> CodecModel | None:
        """Return the model of a part."""
        return None if self.of_part[part] < 0 else self.models[self.of_part[part]]


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
            rows = source.sample(number, max(1, _SAMPLE_VALUES // max(1, plan.row_values)))
            names = None if model == "auto" else [model]
            choice = choose_model(
                rows,
                bound,
                slice_rows=plan.slice_rows,
                symmetric=symmetric,
                names=names,
                n_rows=plan.n_rows * max(1, plan.slice_rows),
            )
            chosen = choice.model
            of = f"{plan.name.removesuffix('.npy')}: " if len(source.parts) > 1 else ""
            found.trials.extend(replace(trial, name=of + trial.name) for trial in choice.trials)
        if chosen.digest not in digests:
            digests.append(chosen.digest)
            found.models.append(chosen)
        found.of_part.append(digests.index(chosen.digest))
    return found


def last_rows(source: Source, part: int) -> Array:
    """Return the rows of the last blocks of a part, for a model to go on from."""
    plan = source.parts[part]
    n_rows = rows_a_block(plan.n_rows, plan.row_values)
    last: deque[Array] = deque(maxlen=2)
    for block in source.blocks(part, n_rows):
        if block.matrix is not None:
            last.append(block.matrix)
    return np.concatenate(last) if last else np.empty((0, plan.n_columns))


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


def write_compressed(
    source: Source, file: IO[bytes], bound: Bound, models: Models, by: str, *,
    block_rows: int | None = None, old: Compressed | None = None, on_step: OnStep,
    most_rows: float = 1.0,
) -> tuple[int, Tally]:  # fmt: skip
    """Write a compressed file; return its size and the errors of its rows.

    Parameters
    ----------
    source : Source
        What is compressed.
    file : binary file
        Where to.
    bound : Bound
        The largest error allowed.
    models : Models
        How rows are predicted.
    by : str
        The version of the library.
    block_rows : int or None
        Rows in a block.
    old : Compressed or None
        A compressed file, whose rows come first.
    on_step : callable
        Told how many rows have been written.
    most_rows : float
        The share of the rows that is taken, the first ones; to try something.
    """
    writer, tally = Writer(file), Tally()
    if old is not None:
        on_step(0, 0, "copying")
        writer.copy(old.reader)
        tally.add_summary(tuple(old.header.errors), old.n_rows())
    total = sum(plan.n_rows for plan in source.parts)
    done = 0
    for number, plan in enumerate(source.parts):
        model = models.of(number)
        n_rows = rows_a_block(plan.n_rows, plan.row_values, block_rows)
        encode = _encoder(bound, model)
        part_done = 0
        for block in in_order(encode, source.blocks(number, n_rows)):
            writer.add(block.part, block.n_rows, block.matrix, block.exact)
            tally.add(block.errors, block.largest)
            if block.columns is not None:
                tally.add_columns(number, block.columns)
            done, part_done = done + block.n_rows, part_done + block.n_rows
            on_step(done, total, "compressing")
            if part_done >= most_rows * plan.n_rows:
                break
    size = writer.finish(_tail(source, bound, models, by, tally, old))
    return size, tally


def best_trials(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    """Return what a header tells of trials: every model at its best."""
    best: dict[str, int] = {}
    for trial in trials:
        best[trial.name] = min(trial.n_bytes, best.get(trial.name, trial.n_bytes))
    return sorted(best.items(), key=lambda item: item[1])


def _encoder(bound: Bound, model: CodecModel | None) -> Callable[[Any], EncodedBlock]:
    prepared = None if model is None else ready(model)
    return lambda block: encode_block(block, bound, prepared)


def lost_columns(source: Source, tally: Tally) -> Iterator[str]:
    """Say which columns a bound on whole rows takes most of their variation from."""
    for part, sums in tally.columns.items():
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


def _tail(
    source: Source, bound: Bound, models: Models, by: str, tally: Tally, old: Compressed | None
) -> Tail:
    parts = [
        Part(plan.name, plan.head, plan.dtype, models.of_part[i])
        for i, plan in enumerate(source.parts)
    ]
    size = source.path.stat().st_size + (0 if old is None else old.header.size)
    trials = best_trials(models.trials)
    header = Header(
        source.kind, by, bound, parts, source.table(), tally.numbers(),
        trials if old is None else list(old.header.trials), size,
    )  # fmt: skip
    if models.stored:
        stored = tuple(model_bytes(model) for model in models.models)
        return Tail(header.to_bytes(), stored, (), source.schema())
    digests = tuple(bytes.fromhex(model.digest) for model in models.models)
    return Tail(header.to_bytes(), (), digests, source.schema())


def bound_for_ratio(
    source: Source, ratio: float, choose: Callable[[Bound], Models], by: str, on_step: OnStep,
    block_rows: int | None,
) -> tuple[Bound, Models]:  # fmt: skip
    """Return the smallest error that makes the file so many times smaller, and its models.

    Raises
    ------
    ValueError
        If no error does; it says what can be reached.
    """
    original = source.path.stat().st_size
    share = min(1.0, _MOST_SEARCHED / max(1, original))
    steps = 0

    def reached(bound: Bound, models: Models) -> float:
        nonlocal steps
        steps += 1
        on_step(steps, 20, f"looking for a ratio of {ratio:g}")
        counter: Any = _Counter()
        write_compressed(
            source, counter, bound, models, by, block_rows=block_rows, on_step=_quiet,
            most_rows=share,
        )  # fmt: skip
        return original * share / counter.size

    models = choose(Bound(relative=0.01))
    # Numbers of tables are exact where they are kept as they are, and not by way of floats.
    if source.kind in ("npy", "npz") and reached(Bound(), models) >= ratio:
        return Bound(), models
    most = reached(Bound(relative=_LARGEST), models)
    if most < ratio:
        raise ValueError(
            f"ratio: {source.path} cannot become {ratio:g} times smaller; with any error at all in "
            f"its approximate numbers it becomes {most:.3g} times smaller."
        )
    error = _smallest_error(lambda e: reached(Bound(relative=e), models) >= ratio)
    better = choose(Bound(relative=error))
    if _digests(better) != _digests(models) and reached(Bound(relative=error), better) >= ratio:
        models = better
        error = _smallest_error(
            lambda e: reached(Bound(relative=e), better) >= ratio, error / 2, error
        )
    return Bound(relative=error), models


def _digests(models: Models) -> list[str]:
    return [model.digest for model in models.models]


def _smallest_error(
    enough: Callable[[float], bool], low: float = _SMALLEST, high: float = _LARGEST
) -> float:
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


def _quiet(done: int, total: int, what: str) -> None:
    pass


class _Counter:
    """A file that only counts what is written to it."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)


def read_model_file(path: Path, max_size: int | None = None) -> CodecModel:
    """Return the model of a ``.kam`` file."""
    with path.open("rb") as file:
        opened = Compressed(file, max_size=max_size)
        if opened.header.kind != "model" or len(opened.stored) != 1:
            raise ValueError(f"{path} holds compressed rows, and not a model alone.")
        return opened.stored[0]


def write_model_file(
    file: IO[bytes], model: CodecModel, bound: Bound, trials: Sequence[Trial], by: str
) -> int:
    """Write a ``.kam`` file."""
    header = Header("model", by, bound, trials=best_trials(trials))
    return Writer(file).finish(Tail(header.to_bytes(), (model_bytes(model),)))
