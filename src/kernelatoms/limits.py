"""What a file may cost its reader: the limits of all readers, in one place.

A small file can say that it holds terabytes. Every reader therefore asks here how much a file may
become, in memory or on disk, and refuses what is larger before it starts. Time follows size: no
reader takes more than time linear in the bytes that it was allowed.
"""

#: A file may grow to this size, or to ``EXPANSION`` times its own bytes where that is more.
MAX_SIZE = 4 << 30
EXPANSION = 256


def allowed_size(file_size: int, max_size: int | None = None) -> int:
    """Return the bytes that a file of ``file_size`` bytes may become.

    ``max_size`` is what the user allows (``--max-size`` on the command line); None stands for
    the rule above.
    """
    return max(MAX_SIZE, EXPANSION * file_size) if max_size is None else max_size
