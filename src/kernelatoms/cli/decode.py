"""``kernelatoms decode`` and ``denoise``: rows from codes, and rows and images without noise."""

from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelatoms.cli import options as opt
from kernelatoms.cli.console import errors_as_messages, note, tell_or_print_json, warnings_as_notes
from kernelatoms.cli.encode import codes_of, n_atoms_of

if TYPE_CHECKING:
    from kernelatoms.files.tables.table import ReadOptions

DECODE_EXAMPLES = """**Examples**

`kernelatoms decode patches.skops codes.npz --output rows.csv`

`kernelatoms decode spectra.skops codes.csv --like spectra.csv --output back.parquet`
"""

DENOISE_EXAMPLES = """**Examples**

`kernelatoms denoise photo.jpg --output clean.png`

`kernelatoms denoise scan.png --sigma 20 --output clean.png`

`kernelatoms denoise series.csv --output clean.csv`

`kernelatoms denoise spectra.csv --model spectra.skops --output clean.csv`
"""

_GAIN = 1.15  # as in denoise_rows


@errors_as_messages
def decode(
    model: opt.Model,
    codes: Annotated[Path, typer.Argument(help="Codes that `kernelatoms encode` wrote.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help=".csv, .parquet, .npy or .npz; - for the terminal."),
    ] = Path("rows.csv"),
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="The table that was encoded: its identifiers stand beside the rows, and rows that "
            "the model scaled to unit norm come back as long as they were.",
        ),
    ] = None,
    rows: opt.Rows = None,
    trust: opt.Trust = None,
    max_size: opt.MaxSize = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Bring codes back to rows, in the units and columns of the table that was fitted.

    The model's steps are undone from last to first: atoms are put together, the way back from its
    kernel map is taken, scaling is undone. What was filled in or lost on the way stays so.
    """
    from kernelatoms import decode as decoded
    from kernelatoms.files.results import RESULT_SUFFIXES, read_codes
    from kernelatoms.files.tables.matching import row_identifiers
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    check_result_target(output, RESULT_SUFFIXES, model, codes, like, force=force)
    with warnings_as_notes([]), opt.at_work(model):
        if like is None:
            fitted, record = opt.open_model(model, trust, max_size)
            beside, X = {}, None
        else:
            fitted, record, table, X = opt.open_both(
                model, like, ReadOptions(rows, max_size=max_size), trust
            )
            beside = row_identifiers(table, record)
        held = read_codes(codes, n_atoms_of(fitted), max_size=max_size)
        if X is not None and len(X) != held.shape[0]:
            raise ValueError(
                f"--like: {like} has {len(X):,} rows, and {codes} {held.shape[0]:,} codes."
            )
        result = decoded(fitted, held, like=X)
    if result.unit_norm:
        note(
            "the model scaled rows to unit norm before it coded them, so they come back at about "
            "unit norm; --like TABLE gives them the lengths of the table's rows."
        )
    _write(output, result.rows, record, beside, as_json)


@errors_as_messages
def denoise(
    data: Annotated[
        Path,
        typer.Argument(
            help="An image (.png, .jpg, .tif, .bmp; .npy or .npz of 2 or 3 dimensions), or a table "
            "whose rows are signals."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to be written.")],
    sigma: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise, in the file's units; else estimated."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m",
            help="A model file whose dictionary is used, of patches for images; else one is "
            "learned from the noisy file itself.",
        ),
    ] = None,
    signals: Annotated[
        bool,
        typer.Option("--signals", help="Rows of an .npy or .npz file are signals, not an image's."),
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(help="How many neighbouring columns are coded together; 64, or all if fewer."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seeds the choice of patches to learn from.")] = 0,
    rows: opt.Rows = None,
    decimal: opt.Decimal = None,
    encoding: opt.Encoding = None,
    header: opt.Header = None,
    max_size: opt.MaxSize = None,
    trust: opt.Trust = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:  # fmt: skip
    """Take white noise off an image, or off rows of signals, by K-SVD.

    Patches of the image (windows of the rows) are coded over a dictionary until what is left is as
    large as the noise, put back and averaged. With --model, rows of a table are coded in its
    columns: to the size of the noise if --sigma says how large it is, else as the model codes.
    """
    from kernelatoms.files.results import IMAGE_SUFFIXES, RESULT_SUFFIXES
    from kernelatoms.files.tables.matching import row_identifiers
    from kernelatoms.files.tables.table import ReadOptions
    from kernelatoms.files.writing import check_result_target

    if sigma is not None and not 0 <= sigma < float("inf"):
        raise ValueError(f"--sigma must be 0 or more, got {sigma:g}.")
    is_image = _is_image(data, signals, window)
    source = ReadOptions(rows, decimal, encoding, header, max_size)
    suffixes = (*IMAGE_SUFFIXES, ".npy", ".npz") if is_image else RESULT_SUFFIXES
    check_result_target(output, suffixes, data, model, force=force)
    if is_image:
        atoms = None if model is None else _patch_atoms(model, trust, max_size)
        words, result = _denoise_image(data, source, output, sigma, atoms, seed)
        tell_or_print_json(words, result, as_json)
        return
    if model is not None and window is not None:
        raise ValueError("--window goes with a dictionary learned from the file itself.")
    level = sigma
    with warnings_as_notes([]):
        if model is None:
            clean, level, table, record = _denoised_by_itself(data, source, sigma, window, seed)
        else:
            with opt.at_work(model):
                fitted, record, table, X = opt.open_both(model, data, source, trust)
                clean = _by_model(fitted, X, sigma, model)
    how = "as the model codes" if level is None else f"noise of deviation {level:.4g} taken off"
    _write(output, clean, record, row_identifiers(table, record), as_json, f", {how}", sigma=level)


def _is_image(data: Path, signals: bool, window: int | None) -> bool:
    """Tell whether a file is an image, and not rows; refuse options that do not go with it."""
    from kernelatoms.files.results import IMAGE_SUFFIXES

    suffix = data.suffix.lower()
    if signals and suffix in IMAGE_SUFFIXES:
        raise ValueError(f"--signals is for .npy and .npz files, and {data} is an image.")
    if signals or suffix not in (*IMAGE_SUFFIXES, ".npy", ".npz"):
        return False
    if window is not None:
        raise ValueError(
            f"--window is for rows, and {data} is an image; --signals takes the rows of an .npy or "
            ".npz file for signals."
        )
    return True


def _denoise_image(
    data: Path, source: "ReadOptions", output: Path, sigma: float | None, atoms: Any, seed: int
) -> tuple[str, dict[str, Any]]:
    """Clean an image, over ``atoms`` that are patches or, if None, are learned from the image."""
    from kernelatoms import denoise_image, estimate_sigma
    from kernelatoms.files.results import IMAGE_SUFFIXES, Picture, write_image, write_rows

    picture = _read_picture(data, source)
    if output.suffix.lower() in IMAGE_SUFFIXES and picture.pixels.dtype.kind == "f":
        raise ValueError(
            f"--output: {data} holds {picture.pixels.dtype}, which an image file cannot keep; "
            "write it to .npy or .npz."
        )
    level = _level(sigma, lambda: estimate_sigma(picture.pixels))
    options = {} if atoms is None else {"dictionary": atoms, "patch_size": isqrt(atoms.shape[1])}
    clean = denoise_image(picture.pixels, level, random_state=seed, **options)
    if output.suffix.lower() in IMAGE_SUFFIXES:
        write_image(output, Picture(clean, picture.alpha))
    else:
        write_rows(output, clean, [], {})
    height, width = clean.shape[:2]
    words = f"{width:,} x {height:,} pixels, noise of deviation {level:.4g} taken off: {output}"
    return words, {"output": str(output), "height": height, "width": width, "sigma": level}


def _patch_atoms(model: Path, trust: list[str] | None, max_size: int | None) -> Any:
    """Return the atoms of a model of square patches."""
    atoms, _ = _linear_atoms(opt.open_model(model, trust, max_size)[0], model)
    if isqrt(atoms.shape[1]) ** 2 != atoms.shape[1]:
        raise ValueError(
            f"{model} knows rows of {atoms.shape[1]} numbers, which are no square patch; fit it to "
            "patches, one per row, such as 64 columns for 8 x 8 pixels."
        )
    return atoms


def _denoised_by_itself(
    data: Path, source: "ReadOptions", sigma: float | None, window: int | None, seed: int
) -> tuple[Any, float, Any, Any]:
    """Return rows over a dictionary learned from them, the noise, the table and a record of it."""
    from kernelatoms import denoise_rows, estimate_sigma
    from kernelatoms.files.models.record import ModelRecord
    from kernelatoms.files.tables.features import training_set

    table = opt.read_data(data, source)
    chosen = training_set(table, None)
    for text in chosen.notes:
        note(text)
    level = _level(sigma, lambda: estimate_sigma(chosen.X, rows=True))
    clean = denoise_rows(chosen.X, level, window=window, random_state=seed)
    return clean, level, table, ModelRecord(columns=chosen.columns, left_out=chosen.left_out)


def _by_model(fitted: Any, X: Any, sigma: float | None, model: Path) -> Any:
    """Return rows as a model reconstructs them: up to the noise, or by its own codes."""
    import numpy as np

    from kernelatoms import decode as decoded
    from kernelatoms import sparse_encode

    if sigma is None:
        return decoded(fitted, codes_of(fitted, X), like=X).rows
    atoms, origin = _linear_atoms(fitted, model)
    norms = np.linalg.norm(atoms, axis=1, keepdims=True)
    atoms = atoms[norms[:, 0] > 0] / norms[norms[:, 0] > 0]
    noise = _GAIN * sigma * np.sqrt(X.shape[1])
    return origin + sparse_encode(X - origin, atoms, max_residual=noise, absolute=True) @ atoms


def _linear_atoms(fitted: Any, model: Path) -> tuple[Any, Any]:
    """Return the atoms of a model in the units of its rows, and the row of codes of 0."""
    import numpy as np

    from kernelatoms import KSVD, MOD
    from kernelatoms import decode as decoded

    steps = [step for _, step in getattr(fitted, "steps", [("", fitted)])]
    if not isinstance(steps[-1], KSVD | MOD) or any(hasattr(s, "landmarks_") for s in steps):
        raise ValueError(
            f"{model} has no dictionary of rows (KSVD or MOD, without a kernel map), over which "
            "signals could be coded to the size of the noise"
            "; without --sigma, rows of a table are coded as the model was fitted to."
        )
    n_atoms = steps[-1].n_atoms_
    rows = decoded(fitted, np.vstack([np.zeros((1, n_atoms)), np.eye(n_atoms)])).rows
    return rows[1:] - rows[0], rows[0]


def _level(sigma: float | None, estimate: Any) -> float:
    """Return the standard deviation of the noise; note if it is estimated."""
    if sigma is not None:
        return sigma
    level = float(estimate())
    note(f"the noise's standard deviation is estimated as {level:.4g}; --sigma says otherwise.")
    return level


def _read_picture(path: Path, options: "ReadOptions") -> Any:
    """Return the pixels of an image file or a NumPy array."""
    from kernelatoms.files.results import IMAGE_SUFFIXES, Picture, read_array, read_image

    if path.suffix.lower() in IMAGE_SUFFIXES:
        if options.rows is not None:
            raise ValueError(f"--rows names a key of an .npz file, but {path} is none.")
        return read_image(path)
    return Picture(read_array(path, options.rows, max_size=options.max_size))


def _write(
    output: Path, clean: Any, record: Any, beside: Any, as_json: bool, words: str = "", **more: Any
) -> None:
    """Write rows beside their identifiers, and say so."""
    from kernelatoms.files.results import write_rows

    n_rows, n_columns = clean.shape
    names = record.columns or [f"column {i + 1}" for i in range(n_columns)]
    if opt.write_or_print(output, lambda target: write_rows(target, clean, names, beside)):
        result = {"output": str(output), "rows": n_rows, "columns": n_columns, **more}
        said = f"{n_rows:,} rows of {n_columns:,} columns{words}: {output}"
        tell_or_print_json(said, result, as_json)
