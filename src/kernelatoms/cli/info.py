"""``kernelatoms info``, ``report`` and ``datasets``: what files, models and data sets hold."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelatoms.cli import console
from kernelatoms.cli import options as opt

INFO_EXAMPLES = """**Examples**

`kernelatoms info model.skops`

`kernelatoms info flowers.csv`
"""

REPORT_EXAMPLES = """**Examples**

`kernelatoms report model.skops flowers.csv`

`kernelatoms report digits.skops digits.npz --rows X_test --label y_test --image-shape 16x16`
"""

DATASETS_EXAMPLES = """**Examples**

`kernelatoms datasets`

`kernelatoms datasets iris --output iris.csv`
"""


@console.errors_as_messages
def info(
    file: Annotated[Path, typer.Argument(help="A model file or a table.")],
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    as_json: opt.Json = False,
) -> None:
    """Say what a model file or a table holds."""
    from kernelatoms.files.tables.table import ReadOptions, is_table

    options = ReadOptions(rows, decimal, encoding, header, max_size)
    facts = _table_facts(file, options) if is_table(file) else _model_facts(file, max_size)
    if as_json:
        console.print_json(facts)
        return
    if uses := facts.pop("uses", {}):  # all columns and their use, one per line
        facts = {k: v for k, v in facts.items() if k not in ("columns", "left out", "label")}
        facts |= {f"column: {name}": use for name, use in uses.items()}
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        # A name with a line end would look like two facts.
        line = f"{name:<{width}}  {_in_words(value)}".replace("\n", "\\n")
        console.tell(console.in_flags(line))


@console.errors_as_messages
def report(
    model: opt.Model,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Rows to show the model at work on, best unseen ones; of a table larger than "
            "--memory a random sample."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML page.")] = Path(
        "report.html"
    ),
    label: opt.Label = None,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    memory: opt.Memory = None,
    trust: opt.Trust = None,
    image_shape: Annotated[
        str | None,
        typer.Option(
            metavar="HEIGHTxWIDTH",
            help="Draw rows and atoms as images of this shape; HEIGHTxWIDTHx3 in colour.",
        ),
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write one HTML page about a model: what was fitted, its atoms, codes and mistakes."""
    from kernelatoms.files.tables.roles import labels_for
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    shape = _shape(image_shape)
    options = ReadOptions(rows, decimal, encoding, header, max_size)
    check_result_target(output, (".html", ".htm"), model, data, force=force)
    y = X = source = sample = None
    large = None if data is None else opt.open_large(data, options, memory)
    with console.warnings_as_notes([]), console.progress() as on_step, opt.at_work(model):
        on_step(0, 0, "drawing")
        from kernelatoms.report import write_model_report
        from kernelatoms.report.origin import record_facts, rows_of_file

        if data is None:
            fitted, record = opt.open_model(model, trust, max_size)
        else:
            if large is not None and not large.fits:
                from kernelatoms.cli import parts

                fitted, record, sample, X = parts.open_sample(model, large, trust, max_size)
                table = sample.table
            else:
                fitted, record, table, X = opt.open_both(model, data, options, trust, large)
            data = table.path
            name = label or record.label
            kept = None
            if hasattr(fitted, "classes_") and name and (label or name in table.names):
                y, kept = labels_for(table, name, fitted.classes_)
                X = X[kept]
            source = rows_of_file(table, record, X, kept, sample)
        write_model_report(
            output, fitted, X, y,
            image_shape=shape or record.image_shape,
            title=f"{record.name} on {record.data.get('file', 'data')}" if record.name else None,
            facts=record_facts(record, data, source),
            feature_names=record.columns,
            timing={"fit": record.fit["seconds"]} if "seconds" in record.fit else None,
            rows=source,
        )  # fmt: skip
    result = {
        "report": str(output),
        "rows": 0 if X is None else len(X),
        "labelled_rows": 0 if y is None else len(y),
        "rows_in_file": 0 if source is None else source.n_in_file,
        "share_learned_from": None if source is None else source.learned,
    }
    console.tell_or_print_json(f"Report: {output}", result, as_json)


@console.errors_as_messages
def datasets(
    name: Annotated[str | None, typer.Argument(help="Show one set.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write iris, wine or digits as a .csv to try things."),
    ] = None,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of the files; else $KERNELATOMS_DATA.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """List the data sets, say which are at hand, or write a small one as a table."""
    from kernelatoms.datasets import data_folder, list_datasets

    known = {dataset.name: dataset for dataset in list_datasets()}
    if name is not None and name not in (*known, *_BUNDLED):
        raise ValueError(
            f"there is no data set {name!r}; there are {', '.join((*_BUNDLED, *known))}."
        )
    if output is not None:
        _write_bundled(name, output, force)
        return
    folder = data_folder(data_home)
    listed: list[dict[str, Any]] = [
        {"name": key, "at hand": True, "what": what, "file": "comes with scikit-learn"}
        for key, what in _BUNDLED.items()
    ] + [
        {
            "name": d.name, "at hand": folder is not None and (folder / d.file).is_file(),
            "what": d.description, "file": d.file, "cite": d.citation, "terms": d.terms,
            "online": d.online,
        }
        for d in known.values()
    ]  # fmt: skip
    listed = [entry for entry in listed if name in (None, entry["name"])]
    if as_json:
        console.print_json(listed)
    elif name is not None:
        for key, value in listed[0].items():
            if value != "":
                console.tell(f"{key:<8} {_in_words(value)}")
    else:
        for entry in listed:
            at_hand = "at hand" if entry["at hand"] else "-"
            console.tell(f"{entry['name']:<20} {at_hand:<8} {entry['what']}")
        console.tell("\nFiles are looked for in --data-home or the folder $KERNELATOMS_DATA.")


_BUNDLED = {
    "iris": "150 flowers, 4 measures, 3 species; comes with scikit-learn.",
    "wine": "178 wines, 13 measures, 3 growers; comes with scikit-learn.",
    "digits": "1,797 handwritten digits, 8x8 grey values 0-16; comes with scikit-learn.",
}


def _write_bundled(name: str | None, output: Path, force: bool) -> None:
    from kernelatoms.files.results import write_columns
    from kernelatoms.files.writing import check_result_target

    if name not in _BUNDLED:
        raise ValueError(
            f"--output writes one of {', '.join(_BUNDLED)}; name it first: kernelatoms datasets "
            "iris --output iris.csv."
        )
    check_result_target(output, (".csv", ".parquet"), force=force)
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    names = [re.sub(r"\W+", "_", str(n)).strip("_") for n in bunch.feature_names]
    columns = dict(zip(names, bunch.data.T, strict=True))
    label = {"iris": "species", "wine": "grower", "digits": "digit"}[name]
    words = bunch.target if name == "digits" else bunch.target_names[bunch.target]
    if opt.write_or_print(output, lambda path: write_columns(path, {**columns, label: words})):
        console.tell(f"{name}: {output}")


def _table_facts(file: Path, options: Any) -> dict[str, Any]:
    import numpy as np

    from kernelatoms.files.tables.features import why_left_out
    from kernelatoms.files.tables.roles import REASONS

    table = opt.read_data(file, options)
    left_out = why_left_out(table, None)
    trouble = [text for name, text in table.mixed.items() if left_out.get(name) not in REASONS]
    different = {
        name: len({str(value) for value in values.tolist() if value is not None})
        for name, values in table.words.items()
    }
    return {
        "table": str(table.path),
        "rows": len(table),
        "columns of numbers": len(table.columns),
        "missing values": int(np.isnan(table.numbers).sum()),
        **({"images": "{} x {}".format(*table.image_shape)} if table.image_shape else {}),
        **({"numbers": table.columns} if table.named else {}),
        **{f"words: {name}": f"{n:,} different values" for name, n in different.items()},
        **({"not learned from": left_out} if left_out else {}),
        **({"trouble": trouble[-1]} if trouble else {}),
    }


def _model_facts(file: Path, max_size: int | None = None) -> dict[str, Any]:
    from kernelatoms.files.models.model_file import inspect_model
    from kernelatoms.files.tables.features import ROW_MARKS

    record, version, foreign = inspect_model(file, max_size)
    return {
        "model": str(file),
        "what": record.name or "not recorded",
        "format": version,
        "columns": "by position" if record.columns is None else record.columns,
        "label": record.label or "none",
        "uses": {} if record.columns is None else record.uses(),
        **({"types to trust": foreign} if foreign else {}),
        **({"left out": record.left_out} if record.left_out else {}),
        **({"images": record.image_shape} if record.image_shape else {}),
        **{f"data: {key}": value for key, value in record.data.items() if key != ROW_MARKS},
        **{f"fit: {key}": value for key, value in record.fit.items()},
        **{f"with: {key}": value for key, value in record.made_with.items()},
    }


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    match = re.fullmatch(r"\d+([xX,]\d+){1,2}", text.strip())
    sides = tuple(map(int, re.findall(r"\d+", text))) if match else (0,)
    if 0 in sides:
        raise ValueError(
            "--image-shape takes HEIGHTxWIDTH, such as 16x16, or HEIGHTxWIDTHxCHANNELS, such as "
            f"16x16x3, got {text!r}."
        )
    return sides


def _in_words(value: Any) -> str:
    from kernelatoms.files.tables.table import first_few

    if isinstance(value, dict):
        return "; ".join(f"{key}: {_in_words(entry)}" for key, entry in value.items()) or "none"
    if isinstance(value, list | tuple):
        return first_few([_in_words(entry) for entry in value], 12) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
