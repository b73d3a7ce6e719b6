"""The one error of compressed bytes that cannot be read."""


class CodecError(ValueError):
    """Compressed bytes are damaged, cut short, of a later version, or no such bytes at all."""
