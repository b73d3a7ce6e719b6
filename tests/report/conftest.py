"""What tests of pages share."""

from pictures import drawn, undrawn_pictures

__all__ = ["drawn", "undrawn_pictures"]
