"""``Figure``: matplotlib's, which shows itself as the last line of a notebook's cell.

Figures here are made without pyplot, and notebooks draw those of pyplot only.
"""

import io
from typing import Any

import matplotlib.figure

# Dots an inch in notebooks: two to a pixel at five inches' width, sharp on any screen.
_DPI = 144


class Figure(matplotlib.figure.Figure):
    """A figure that notebooks show, whether pyplot has been imported or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """Return the picture and its width in pixels, for IPython."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_DPI)
        return file.getvalue(), {"width": round(100 * self.get_figwidth())}
