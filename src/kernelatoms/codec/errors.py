"""The errors of compressed bytes that cannot be read, or should not."""

from kernelatoms.limits import TooLargeError


class CodecError(ValueError):
    """Compressed bytes are damaged, cut short, of a later version, or no such bytes at all."""


class OversizedError(CodecError, TooLargeError):
    """Compressed bytes would become more than they may; ``max_size`` allows more."""
