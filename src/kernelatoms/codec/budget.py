"""What a compressed file may become: counted by all who decode some of it, refused before work."""

from kernelatoms.codec.errors import OversizedError
from kernelatoms.limits import (
    WORK_EXPANSION,
    TooLargeError,
    allowed_in_block,
    allowed_in_models,
    allowed_size,
    refuse_over,
)

_VALUE = 8


class Budget:
    """What may be decoded of one file.

    Parameters
    ----------
    file_size : int
        Bytes of the file.
    max_size : int or None
        What the user allows; None for the rule of ``limits``.
    """

    def __init__(self, file_size: int, max_size: int | None = None) -> None:
        self._file_size, self._max_size = file_size, max_size
        self._taken = self._models = self._work = 0

    def check(self, n_bytes: int) -> None:
        """Refuse the file if it becomes so many bytes, or more."""
        _refuse(allowed_size(self._file_size, self._max_size), n_bytes, self._file_size)

    def take(self, n_bytes: int, block_size: int) -> None:
        """Count what a block of ``block_size`` bytes becomes; refuse what is too much."""
        allowed = allowed_in_block(block_size, self._max_size)
        _refuse(allowed, n_bytes, block_size, "a block is too large: ")
        self._taken += n_bytes
        self.check(self._taken)

    def take_work(self, n_values: int) -> None:
        """Count how long decoding takes, in values of the plainest model (see ``costs``)."""
        self._work += n_values
        allowed = WORK_EXPANSION * allowed_size(self._file_size, self._max_size)
        what = "its model takes as long as one of a far larger file: "
        _refuse(allowed, _VALUE * self._work, self._file_size, what)

    def take_models(self, n_bytes: int, models_size: int) -> None:
        """Count what stored models of ``models_size`` bytes, all together, become."""
        self._models += n_bytes
        allowed = allowed_in_models(models_size, self._max_size)
        _refuse(allowed, self._models, models_size, "its models are too large: ")


def _refuse(allowed: int, n_bytes: int, size: int, what: str = "") -> None:
    try:
        refuse_over(allowed, n_bytes, size)
    except TooLargeError as error:
        raise OversizedError(f"{what}{error}.") from None
