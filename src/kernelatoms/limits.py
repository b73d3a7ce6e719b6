"""What a file may cost its reader: the limits of all readers, in one place.

A small file can say that it holds terabytes. Every reader therefore asks here how much a file may
become, in memory or on disk, and refuses what is larger before it starts. Time follows size: no
reader takes more than time linear in the bytes that it was allowed.

See docs/decisions/054-file-limits.md.
"""

from dataclasses import dataclass

#: A file may grow to this size, or to ``EXPANSION`` times its own bytes where that is more.
MAX_SIZE = 4 << 30
EXPANSION = 256

#: Model files have limits of their own: what is unpacked is held three times for a while. Models
#: that shrink more are written without compression, so that no honest file meets them.
MODEL_SIZE = 256 << 20
MODEL_EXPANSION = 20
#: Members of the archive; bytes of the texts in it, and their values, of which a class of a
#: classifier takes a hundred; objects, and how deeply they are nested.
MODEL_MEMBERS = 50_000
MODEL_TEXT = 16 << 20
MODEL_VALUES = 1_000_000
MODEL_NODES = 100_000
MODEL_LEVELS = 200
#: Estimators of scikit-learn in each other: it takes three times as long for each level.
MODEL_NESTED = 8
#: What is met several times counts so often, and all together may be so many times the file.
MODEL_REFERENCES = 16
#: Columns that a step of a model may ask for, or make of a row, by its parameters alone.
MODEL_COLUMNS = 1 << 24


@dataclass(frozen=True)
class Budget:
    """What one file may become: by its own size, or what the user allows, ``max_size``."""

    file_size: int
    max_size: int | None = None

    @property
    def allowed(self) -> int:
        """The bytes that it may become."""
        by_rule = max(MAX_SIZE, EXPANSION * self.file_size)
        return by_rule if self.max_size is None else self.max_size

    def check(self, n_bytes: int) -> None:
        """Refuse a file that becomes ``n_bytes`` or more, if that is too much."""
        refuse_over(self.allowed, n_bytes, self.file_size)


class TooLargeError(ValueError):
    """A file would become larger than it may; the message says by how much."""


def allowed_model_size(file_size: int, max_size: int | None = None) -> int:
    """Return the bytes that a model file of ``file_size`` bytes may become."""
    return max(MODEL_SIZE, MODEL_EXPANSION * file_size) if max_size is None else max_size


def refuse_over(allowed: int, n_bytes: int, file_size: int) -> None:
    """Refuse a file that becomes ``n_bytes`` or more, if that is more than ``allowed``."""
    if n_bytes > allowed:
        raise TooLargeError(
            f"its {file_size:,} bytes would become {in_words(n_bytes)} or more, and "
            f"{in_words(allowed)} are allowed; if you know who made it, allow more by max_size"
        )


def in_words(n_bytes: int) -> str:
    """Return a size in bytes, MiB or GiB."""
    if n_bytes < 1 << 20:
        return f"{n_bytes:,} bytes"
    unit, name = (1 << 30, "GiB") if n_bytes >= 1 << 30 else (1 << 20, "MiB")
    return f"{n_bytes / unit:,.1f} {name}"
