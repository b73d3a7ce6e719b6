"""What a compressed file may become, and the errors of files that are refused.

Beside the size of the whole file, each of its parts has a limit, so that reading takes the memory
of a few blocks however large the file is. The writer stays within the limits on rows, values and
packed bytes.

See docs/decisions/054-file-limits.md.
"""

from kernelatoms.limits import EXPANSION, Budget, TooLargeError, refuse_over

#: Rows in a block.
BLOCK_ROWS = 1 << 23
#: Approximate values in a block: this many, or ``PACKED_EXPANSION`` per byte (one huge slice).
BLOCK_VALUES = 1 << 23
#: Bytes that packed bytes become: this many, or ``PACKED_EXPANSION`` per byte.
PACKED_SIZE, PACKED_EXPANSION = 1 << 27, 1024
#: Bytes that a block becomes in total, or ``EXPANSION`` times its own.
BLOCK_SIZE = 512 << 20
#: A slow model may take as long as the fastest one takes for this many times the allowed size.
WORK_EXPANSION = 4
#: Bytes that all stored models become together, or this many times their own.
MODELS_SIZE, MODELS_EXPANSION = 1 << 27, 16
#: Characters of a model's description, without its arrays.
MODEL_WORDS = 1 << 16
#: Approximate bytes of memory per character of JSON.
JSON_COST = 20
#: Characters of a header; bytes of a table's schema.
HEADER_SIZE = 16 << 20
#: Characters of short texts: this many, or this many per byte.
TEXT_SIZE, TEXT_EXPANSION = 1 << 18, 64
#: Arrays in a file, and columns of a table.
MOST_PARTS, MOST_COLUMNS = 1 << 17, 1 << 18

_VALUE_BYTES = 8


class CodecError(ValueError):
    """Compressed bytes are damaged, cut short, of a later version, or of another kind."""


class OversizedError(CodecError, TooLargeError):
    """Compressed bytes would become more than they may; ``max_size`` allows more."""


class DecodingBudget:
    """Counts what is decoded of one file; refuses what is too much before the work starts."""

    def __init__(self, file_size: int, max_size: int | None = None) -> None:
        self._file_size, self._max_size = file_size, max_size
        self._taken = self._models = self._work = 0

    def check(self, n_bytes: int) -> None:
        """Refuse the file if it becomes this many bytes or more."""
        _refuse(Budget(self._file_size, self._max_size).allowed, n_bytes, self._file_size)

    def take(self, n_bytes: int, block_size: int) -> None:
        """Count what a block of ``block_size`` bytes becomes."""
        allowed = self._max_size or max(BLOCK_SIZE, EXPANSION * block_size)
        _refuse(allowed, n_bytes, block_size, "a block is too large: ")
        self._taken += n_bytes
        self.check(self._taken)

    def take_work(self, n_values: int) -> None:
        """Count the time of decoding, in values of the fastest model (``decoding_cost``)."""
        self._work += n_values
        allowed = WORK_EXPANSION * Budget(self._file_size, self._max_size).allowed
        what = "its model takes as long as one of a far larger file: "
        _refuse(allowed, _VALUE_BYTES * self._work, self._file_size, what)

    def take_models(self, n_bytes: int, models_size: int) -> None:
        """Count what stored models of ``models_size`` bytes in total become."""
        self._models += n_bytes
        allowed = self._max_size or max(MODELS_SIZE, MODELS_EXPANSION * models_size)
        _refuse(allowed, self._models, models_size, "its models are too large: ")


def _refuse(allowed: int, n_bytes: int, size: int, what: str = "") -> None:
    try:
        refuse_over(allowed, n_bytes, size)
    except TooLargeError as error:
        raise OversizedError(f"{what}{error}.") from None
