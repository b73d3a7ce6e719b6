"""``predict``, ``encode`` and ``report`` on tables that are read in parts."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kernelatoms.cli import console
from kernelatoms.cli import options as opt
from kernelatoms.cli.summaries import Missing

Named = dict[str, Any]

# A model is given so many bytes of rows at once, and so many rows.
_BLOCK_BYTES, _MOST_ROWS = 4 << 20, 4096
# Seeds the sample that a report is about.
_SEED = 0


def by_blocks(work: Callable[[Any], Any], X: Any) -> Any:
    """Return ``work(X)``, computed for blocks of rows that depend on the columns alone.

    A table that is read in parts is worked on in the same blocks: its answers are the same bits.
    """
    import numpy as np
    import scipy.sparse

    height = _block_rows(X.shape[1])
    found = [
        work(np.ascontiguousarray(X[start : start + height])) for start in range(0, len(X), height)
    ]
    if len(found) == 1:
        return found[0]
    if scipy.sparse.issparse(found[0]):
        return scipy.sparse.csr_array(scipy.sparse.vstack(found, format="csr"))
    return np.concatenate(found)


def _block_rows(n_features: int) -> int:
    """Return how many rows a model is given at once."""
    return int(min(max(_BLOCK_BYTES // (8 * n_features) // 64 * 64, 64), _MOST_ROWS))


class Applied:
    """A model, and the rows of a large table in its columns."""

    def __init__(
        self, model: Path, large: Any, trust: list[str] | None, max_size: int | None
    ) -> None:
        self.fitted, self.record = opt.open_model(model, trust, max_size)
        self.n_features = opt.n_features_of(self.fitted, self.record, model)
        self.large, self.n_rows = large, 0
        self._missing, self._said = Missing(), set[str]()
        self._new: dict[str, Counter[str]] = {}

    def blocks(self, beside: Callable[[Any], Named] = lambda table: {}) -> Iterator[Named]:
        """Yield blocks of rows, "X", with the arrays that ``beside`` has for the rows of a table.

        They are those of ``by_blocks``.
        """
        import numpy as np

        with console.progress() as on_step:
            for block in _of_height(self._parts(beside), _block_rows(self.n_features)):
                on_step(0, 0, f"row {self.n_rows:,}")
                yield {**block, "X": np.ascontiguousarray(block["X"])}
        self.note_rest()

    def answered(
        self, work: Callable[[Any, Any], Any], beside: Callable[[Any], Named] = lambda table: {}
    ) -> Iterator[tuple[Named, Any]]:
        """Yield these blocks, each with ``work(model, X)``, which workers compute if there are."""
        if not self.large.on_workers:
            for block in self.blocks(beside):
                yield block, work(self.fitted, block["X"])
            return
        from kernelatoms.files.tables.on_workers import answers_in_order

        yield from answers_in_order(work, self.fitted, self.blocks(beside))

    def _parts(self, beside: Callable[[Any], Named]) -> Iterator[Named]:
        for table in self.large:
            yield {"X": self.rows(table), **beside(table)}

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


def _of_height(parts: Iterator[Named], height: int) -> Iterator[Named]:
    """Yield blocks of ``height`` rows, and of the rest at the end."""
    import numpy as np

    held: list[Named] = []
    for part in parts:
        held.append(part)
        if sum(len(each["X"]) for each in held) < height:
            continue
        joined = {name: np.concatenate([each[name] for each in held]) for name in part}
        whole = len(joined["X"]) // height * height
        for start in range(0, whole, height):
            yield {name: array[start : start + height] for name, array in joined.items()}
        held = [{name: array[whole:] for name, array in joined.items()}]
    if sum(len(each["X"]) for each in held):
        yield {name: np.concatenate([each[name] for each in held]) for name in held[-1]}


class _Terminal:
    """A stream of results."""

    def write(self, text: str, /) -> None:
        console.tell(text, end="")


def predict(
    applied: Applied, output: Path | None, label: str | None, scores: bool
) -> tuple[dict[str, Any] | None, float]:
    """Write predictions part by part; return how right they are, and the share learned from."""
    from kernelatoms.cli.predict import evaluation_of
    from kernelatoms.files.result_parts import columns_writer
    from kernelatoms.files.tables.matching import row_identifiers

    fitted, record = applied.fitted, applied.record
    if output is not None:
        _refuse_sources(output, applied.large)
    judged = _Judged(applied, label)

    def beside(table: Any) -> Named:
        names = {f"id {name}": held for name, held in row_identifiers(table, record).items()}
        return {**names, **judged.truth(table)}

    with columns_writer(_Terminal() if output is None else output) as writer:
        for block, found in applied.answered(partial(_predicted, scores=scores), beside):
            columns = {name[3:]: held for name, held in block.items() if name[:3] == "id "}
            writer.write(columns | found)
            judged.compare(block, found["prediction"])
    if not judged.counts:
        return None, 0.0
    return evaluation_of(judged.counts, fitted.classes_), judged.known.share or 0.0


def _predicted(fitted: Any, X: Any, scores: bool) -> Named:
    """Return predictions and, if asked for, scores of a block of rows."""
    from kernelatoms.cli.predict import scores_of

    return {"prediction": fitted.predict(X)} | (scores_of(fitted, X) if scores else {})


class _Judged:
    """Counts right predictions, where parts have labels."""

    def __init__(self, applied: Applied, label: str | None) -> None:
        from kernelatoms.files.tables.features import ROW_MARKS, KnownRows

        self._applied, self._label, self._ended = applied, label, False
        self.counts = Counter[tuple[str, bool]]()
        self.known = KnownRows(applied.record.data.get(ROW_MARKS))

    def truth(self, table: Any) -> Named:
        """Return the label of every row of a part, and whether it has one."""
        import numpy as np

        from kernelatoms.files.tables.table import TableError

        none = {"true": np.zeros(len(table), "U1"), "kept": np.zeros(len(table), bool)}
        if self._ended:
            return none
        fitted, record = self._applied.fitted, self._applied.record
        try:
            known = opt.true_labels(fitted, table, record, self._label, may_be_empty=True)
        except TableError as error:
            if self._label is not None:
                raise
            console.note(f"The predictions are not compared with labels: {error}")
            known = None
        if known is None:
            self._ended = True
            return none
        true = np.zeros(len(table), known[0].dtype)
        true[known[1]] = known[0]
        return {"true": true, "kept": known[1]}

    def compare(self, block: Named, predictions: Any) -> None:
        """Compare the predictions of a block with its labels."""
        from kernelatoms.cli.predict import tally

        if self._ended:
            self.counts.clear()
            return
        kept = block["kept"]
        self.counts += tally(predictions[kept], block["true"][kept])
        self.known.look_up(block["X"][kept])


def encode(
    applied: Applied, output: Path, wanted: dict[str, Any] | None
) -> tuple[int, int, int, bool]:
    """Write codes part by part; return rows, atoms, nonzeros, and whether codes are sparse."""
    from kernelatoms.files.result_parts import codes_writer

    _refuse_sources(output, applied.large)
    with codes_writer(_Terminal() if str(output) == "-" else output) as writer:
        for _, codes in applied.answered(partial(_encoded, wanted=wanted)):
            writer.write(codes)
    return writer.n_rows, writer.n_columns, writer.nonzeros, writer.sparse


def _encoded(fitted: Any, X: Any, wanted: dict[str, Any] | None) -> Any:
    """Return the codes of a block of rows."""
    from kernelatoms.cli.encode import codes_of

    return codes_of(fitted, X, wanted)


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
