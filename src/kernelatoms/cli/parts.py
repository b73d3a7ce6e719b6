"""``predict``, ``encode`` and ``report`` on tables that are read in parts."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelatoms.cli import console
from kernelatoms.cli import options as opt
from kernelatoms.cli.summaries import Missing

# Seeds the sample that a report is about.
_SEED = 0


class Applied:
    """A model and a large table; iterating yields parts and their rows in the model's columns."""

    def __init__(
        self, model: Path, large: Any, trust: list[str] | None, max_size: int | None
    ) -> None:
        self.fitted, self.record = opt.open_model(model, trust, max_size)
        self.n_features = opt.n_features_of(self.fitted, self.record, model)
        self.large, self.n_rows = large, 0
        self._missing, self._said = Missing(), set[str]()
        self._new: dict[str, Counter[str]] = {}

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        with console.progress() as on_step:
            for table in self.large:
                on_step(0, 0, f"row {self.n_rows:,}")
                yield table, self.rows(table)
        self.note_rest()

    def rows(self, table: Any) -> Any:
        """Return the rows of a part; notes are printed once."""
        from kernelatoms.files.tables.matching import rows_for

        X, notes = rows_for(table, self.record, self.n_features, self._new)
        for text in notes:
            if text not in self._said:
                self._said.add(text)
                console.note(text)
        self._missing.count(X)
        self.n_rows += len(X)
        return X

    def note_rest(self) -> None:
        """Print what all parts together have that the user should know."""
        from kernelatoms.files.tables.matching import about_new

        unknown = about_new(self._new) if self._new else ""
        for text in (unknown, self._missing.note(self.fitted)):
            if text:
                console.note(text)


class _Terminal:
    """A stream of results."""

    def write(self, text: str) -> None:
        console.tell(text, end="")


def predict(
    applied: Applied, output: Path | None, label: str | None, scores: bool
) -> tuple[dict[str, Any] | None, float]:
    """Write predictions part by part; return how right they are, and the share learned from."""
    from kernelatoms.cli.predict import evaluation_of, predicted_columns
    from kernelatoms.files.result_parts import columns_writer

    fitted, record = applied.fitted, applied.record
    if output is not None:
        _refuse_sources(output, applied.large)
    judged = _Judged(applied, label)
    with columns_writer(_Terminal() if output is None else output) as writer:
        for table, X in applied:
            predictions = fitted.predict(X)
            writer.write(predicted_columns(fitted, record, table, X, predictions, scores))
            judged.take(table, X, predictions)
    if judged.counts is None:
        return None, 0.0
    return evaluation_of(judged.counts, fitted.classes_), judged.known.share or 0.0


class _Judged:
    """Counts right predictions, where parts have labels."""

    def __init__(self, applied: Applied, label: str | None) -> None:
        from kernelatoms.files.tables.features import ROW_MARKS, KnownRows

        self._applied, self._label, self._ended = applied, label, False
        self.counts: Counter[tuple[str, bool]] | None = None
        self.known = KnownRows(applied.record.data.get(ROW_MARKS))

    def take(self, table: Any, X: Any, predictions: Any) -> None:
        """Compare the predictions of a part with its labels."""
        from kernelatoms.cli.predict import tally
        from kernelatoms.files.tables.table import TableError

        if self._ended:
            return
        fitted, record = self._applied.fitted, self._applied.record
        try:
            known = opt.true_labels(fitted, table, record, self._label, may_be_empty=True)
        except TableError as error:
            if self._label is not None:
                raise
            console.note(f"The predictions are not compared with labels: {error}")
            self._ended, self.counts = True, None
            return
        if known is None:
            self._ended = True
            return
        truth, kept = known
        if kept.any():
            self.counts = (self.counts or Counter()) + tally(predictions[kept], truth)
            self.known.look_up(X[kept])


def encode(
    applied: Applied, output: Path, wanted: dict[str, Any] | None
) -> tuple[int, int, int, bool]:
    """Write codes part by part; return rows, atoms, nonzeros, and whether codes are sparse."""
    from kernelatoms.cli.encode import codes_of
    from kernelatoms.files.result_parts import codes_writer

    _refuse_sources(output, applied.large)
    with codes_writer(_Terminal() if str(output) == "-" else output) as writer:
        for _, X in applied:
            writer.write(codes_of(applied.fitted, X, wanted))
    return writer.n_rows, writer.n_columns, writer.nonzeros, writer.sparse


def open_sample(
    model: Path, large: Any, trust: list[str] | None, max_size: int | None
) -> tuple[Any, Any, Any, Any]:
    """Return model, record, a sample of the table and its rows in the model's columns."""
    from kernelatoms.files.tables.large import draw_sample, sample_rows

    applied = Applied(model, large, trust, max_size)
    sample = draw_sample(large, sample_rows(large), _SEED)
    X = applied.rows(sample.table)
    applied.note_rest()
    console.say(f"The report is about a random sample of {len(X):,} of {sample.n_rows:,} rows.")
    return applied.fitted, applied.record, sample, X


def _refuse_sources(output: Path, large: Any) -> None:
    """Refuse to write to a file of the table."""
    from kernelatoms.files.writing import refuse_to_overwrite

    if str(output) != "-":
        refuse_to_overwrite(output, *(file.path for file in large.files))
