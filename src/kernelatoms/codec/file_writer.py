"""Blocks of a source to a compressed file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

import numpy as np

from kernelatoms import __version__
from kernelatoms.codec.blocks import encode_block, map_in_order, rows_per_block
from kernelatoms.codec.bounds import Bound
from kernelatoms.codec.container.format import Tail, Writer
from kernelatoms.codec.container.header import Header, Part
from kernelatoms.codec.error_stats import ErrorStats
from kernelatoms.codec.models.codec_model import CodecModel
from kernelatoms.codec.models.model_selection import Trial
from kernelatoms.codec.models.predictors import ready
from kernelatoms.codec.models.stored_models import model_bytes
from kernelatoms.codec.packed.sources import OnStep, Source
from kernelatoms.codec.reader import Compressed

# Columns that keep less than this share of their variance are named, this many at most.
_LITTLE_KEPT, _MOST_NAMED = 0.5, 4


@dataclass(frozen=True)
class Models:
    """The models of a file."""

    models: list[CodecModel]
    of_part: list[int]  # the index of each part's model; -1 without one
    trials: list[Trial]  # the candidates that were compared
    stored: bool = True  # whether the file stores the models

    def of(self, part: int) -> CodecModel | None:
        """Return the model of a part."""
        return None if self.of_part[part] < 0 else self.models[self.of_part[part]]


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
        found = models.of(number)
        model = None if found is None else ready(found)
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


def best_trials(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    """Return the fewest bytes of every model that was tried, for the header."""
    best: dict[str, int] = {}
    for trial in trials:
        best[trial.name] = min(trial.n_bytes, best.get(trial.name, trial.n_bytes))
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


def _tail(
    source: Source, bound: Bound, models: Models, stats: ErrorStats, old: Compressed | None
) -> Tail:
    parts = [
        Part(plan.name, plan.head, plan.dtype, models.of_part[i])
        for i, plan in enumerate(source.parts)
    ]
    size = source.path.stat().st_size + (0 if old is None else old.header.size)
    trials = best_trials(models.trials) if old is None else list(old.header.trials)
    header = Header(
        source.kind, __version__, bound, parts, source.table(), stats.numbers(), trials, size
    ).to_bytes()
    if models.stored:
        stored = tuple(model_bytes(model) for model in models.models)
        return Tail(header, stored, (), source.schema())
    digests = tuple(bytes.fromhex(model.digest) for model in models.models)
    return Tail(header, (), digests, source.schema())
