"""What tests of the engine share."""

from machines import machine

__all__ = ["machine"]
