"""Whether a file is still the one that it was when a source was opened."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Stamp:
    """A file, its size and when it was last changed."""

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        """Return the stamp of a file or, where data are a folder of files, of that folder."""
        if not path.exists():
            raise FileNotFoundError(f"There is no file {path}.")
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise an error where the file is gone or another one."""
        if not self.path.exists():
            raise FileNotFoundError(
                f"{self.path} is gone; it was there when these rows were opened. Every pass reads "
                "the files again: keep them until learning is done."
            )
        if Stamp.of(self.path) != self:
            raise ValueError(
                f"{self.path} has changed since these rows were opened. Every pass must find the "
                "same rows: open them again when nothing writes to the file any more."
            )

    def identity(self) -> list[Any]:
        """Return name, size, time and a checksum of the first bytes, as JSON can hold them."""
        first = b""
        if self.path.is_file():
            with self.path.open("rb") as file:
                first = file.read(1 << 16)
        return [self.path.name, self.size, self.changed, zlib.crc32(first)]
