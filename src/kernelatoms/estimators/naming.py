"""Errors of Python itself name no class that users do not know."""

from typing import TypeVar

Class = TypeVar("Class", bound=type)


def unnamed(cls: Class) -> Class:
    """Let the methods of a base class go by their own names alone.

    Python names a function by its place: ``KSVD(atoms=3)`` would be an error of
    ``LinearLearner.__init__()``, which the user has not called.
    """
    for member in list(vars(cls).values()):
        while hasattr(member, "__qualname__") and hasattr(member, "__code__"):
            member.__qualname__ = member.__name__
            member = getattr(member, "__wrapped__", None)
    return cls
