"""Images in files, read and written by Pillow, and arrays as images."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelatoms.files.tables.table import Array
from kernelatoms.files.writing import write_whole
from kernelatoms.limits import TooLargeError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")


@dataclass(frozen=True)
class Picture:
    """Pixels: uint8, or uint16 of deeper grey images."""

    pixels: Array  # (height, width), or (height, width, 3) in colour
    alpha: Array | None = None  # (height, width), the opacity if the file has it


def read_image(path: Path) -> Picture:
    """Read an image, the right way up; ValueError if the file holds none."""
    from PIL import Image, ImageOps

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened)
            if image.mode in ("I;16", "I;16B", "I;16L", "I"):
                values = np.asarray(image)
                if values.min(initial=0) < 0 or values.max(initial=0) > np.iinfo(np.uint16).max:
                    raise ValueError("its grey values do not fit into 16 bits")
                return Picture(values.astype(np.uint16))
            colours = "L" if image.mode in ("1", "L", "LA") else "RGB"
            see_through = image.mode in ("LA", "RGBA", "PA") or "transparency" in image.info
            values = np.asarray(image.convert(colours + "A" * see_through))
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as an image: {error}.") from error
    if not see_through:
        return Picture(values)
    pixels = values[..., 0] if colours == "L" else values[..., :-1]
    return Picture(np.ascontiguousarray(pixels), values[..., -1])


def read_array(path: Path, rows: str | None, *, max_size: int | None = None) -> Array:
    """Return the one array of an ``.npy`` or ``.npz`` file, or that of the key ``rows``."""
    from kernelatoms.files.tables.arrays import read_npy, read_npz

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix.lower() == ".npy":
        if rows is not None:
            raise ValueError(f"rows: {path} is no .npz file, so it has no keys.")
        return read_npy(path)
    try:
        arrays = read_npz(path, max_size)
    except TooLargeError as error:
        raise ValueError(f"{path} was not read: {error}.") from error
    if rows is None and len(arrays) == 1:
        return next(iter(arrays.values()))
    if rows not in arrays:
        names = ", ".join(map(repr, arrays)) or "nothing"
        raise ValueError(f"{path} holds {names}; choose the image by rows='KEY'.")
    return arrays[rows]


def write_image(path: Path, picture: Picture) -> None:
    """Write an image, transparent where the format allows; ValueError for impossible pixels."""
    from PIL import Image

    values = picture.pixels
    if picture.alpha is not None and path.suffix.lower() not in (".jpg", ".jpeg", ".bmp"):
        values = np.dstack([values, picture.alpha])
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    data = io.BytesIO()
    kind = Image.registered_extensions()[path.suffix.lower()]
    options = {"quality": 95} if kind == "JPEG" else {}
    try:
        Image.fromarray(values).save(data, format=kind, **options)
    except (OSError, TypeError, KeyError) as error:
        raise ValueError(
            f"path: {path} cannot hold pixels of {values.dtype} in {values.ndim} dimensions "
            f"({error}); .png or .npy can."
        ) from error
    write_whole(path, data.getvalue())
