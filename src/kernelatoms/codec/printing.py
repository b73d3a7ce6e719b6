"""What the commands of the codec print."""

import sys
from typing import Any

from kernelatoms.cli.console import print_table, tell


def times_smaller(ratio: float) -> str:
    """Describe a ratio."""
    if ratio < 1:
        return f"{1 / ratio:.3g} times larger"
    return f"{ratio:.3g} times smaller" if ratio < 1000 else f"{ratio:,.0f} times smaller"


def _bound_words(bounded: Any) -> str:
    bounds = ((bounded.max_error, "every row's norm"), (bounded.max_absolute, "every value"))
    return " and ".join(f"{bound:.4g} of {what}" for bound, what in bounds if bound is not None)


def error_words(summary: Any) -> str:
    """Describe the errors of a compressed file."""
    if summary.model == "none":
        return "Nothing in it is approximate."
    bound = _bound_words(summary)
    if not bound:
        return "All numbers are kept exactly."
    return (
        f"Errors are at most {bound}; the largest are "
        f"{summary.largest_row_error:.4g} of a row's norm and "
        f"{summary.largest_error:.3g} of a value."
    )


def show(info: Any) -> None:
    """Print the description of a compressed file."""
    size = f"{info.n_bytes:,} bytes"
    if info.original_bytes:
        size += f" of {info.original_bytes:,}: {times_smaller(info.ratio)}"
    stored = "stored" if info.stored else "not stored"
    models = [f"{name} ({stored}, {digest[:16]}...)" for digest, name in info.models.items()]
    facts = [
        ("file", str(info.path)),
        ("holds", "a model" if info.kind == "model" else f"a .{info.kind} file"),
        *((f"array {name}" if name else "rows", words) for name, words in info.shapes.items()),
        ("size", size),
        ("blocks", f"{info.n_blocks:,}, all undamaged"),
        ("error at most", _bound_words(info) or "none: numbers are exact"),
        *(("model", words) for words in models),
        ("written by", f"kernelatoms {info.version}"),
    ]
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        tell(f"{name:<{width}}  {value}".replace("\n", "\\n"))
    sections = [
        [name, f"{size:,}", f"{size / info.n_bytes:.1%}"] for name, size in info.sections.items()
    ]
    _table(["section", "bytes", "share"], sections)
    show_trials(list(info.trials), ", ".join(info.models.values()))
    _show_errors(info)


def show_trials(trials: list[tuple[str, int]], chosen: str) -> None:
    """Print the models that were compared, the best first."""
    if not trials:
        return
    ordered = sorted(trials, key=lambda trial: trial[1])
    best = ordered[0][1] or 1
    rows = [[name, f"{size:,}", f"{size / best:.2f}"] for name, size in ordered]
    caption = f"Chosen: {chosen}, by bytes at equal error on a part of the data."
    _table(["model", "bytes", "/best"], rows, caption)


def _show_errors(info: Any) -> None:
    if not info.row_errors:
        return
    bound = info.max_error
    rows = []
    for share, error in info.row_errors.items():
        of_bound = f"{error / bound:.3f}" if bound else "-"
        rows.append(["all" if share == 1 else f"{share:.0%}", f"{error:.4g}", of_bound])
    origin = "measured on the original" if info.measured else "as the encoder recorded them"
    caption = (
        f"The largest error of so many rows, relative to their norms, {origin}. The largest of any "
        f"value is {info.largest_error:.4g}."
    )
    _table(["rows", "error", "/bound"], rows, caption)


def _table(header: list[str], rows: list[list[str]], caption: str = "") -> None:
    from rich.console import Console

    from kernelatoms.report import Table

    console = Console(file=sys.stdout, highlight=False)
    print_table(console, Table(header, rows, caption=caption))
