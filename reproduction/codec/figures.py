"""Bytes, bits, ratios and errors on the four data sets, and paper 4's ratios in real bytes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.codec import ratios, sizes
from reproduction.codec.claims import (
    beside_best,
    claims_bytes,
    claims_errors,
    claims_models,
    claims_ratios,
)
from reproduction.codec.methods import absent
from reproduction.figure import PaperFigure

if TYPE_CHECKING:
    from kernelatoms.report import Picture


def _take(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Return what takes one measure out of a run's, where it has it."""
    return lambda measures: measures.get(name)


# Drawing brings matplotlib, which listing the figures does not need.
def _rate_pictures(data: str) -> "Callable[[Path], Sequence[Picture]]":
    def pictures(folder: Path) -> "Sequence[Picture]":
        from reproduction.codec.pictures import rate_pictures

        return rate_pictures(data, folder)

    return pictures


_SET = {"planetlab": "PlanetLab", "traffic": "Traffic", "pm25": "PM2.5", "syn360": "Syn360"}
_DATA = {
    "planetlab": "Round-trip times of 490 nodes in 18 slices, symmetric; a row is a node in a "
    "slice, 490 values. ",
    "traffic": "Speeds on 49 roads every ten minutes of 15 days; a row is a snapshot. ",
    "pm25": "PM2.5 at 36 stations in 8,759 hours, whole numbers with gaps; a row is an hour, and "
    "its error is that of the values that are there. ",
    "syn360": "1,500 signals of 15 random cubic maps of a cube, 360 values each. ",
}
_RULES = (
    "float32; the largest error of a row over its norm is at most the target on every row, and "
    "all stored bytes are counted: streams, models, norms, places of gaps, a header of 32 bytes "
    "for those that have none. Rivals choose the best of all their settings and orders of axes, "
    "rows as they are or at unit norm (norms to 1/4 to 1/32 octave, which divide and multiply "
    "again and so cost no error), one half of symmetric slices or all, and the bound on values "
    "is searched for until the worst row just holds. They get gaps bridged by straight lines, "
    "and whole numbers rounded. SZ3 by pysz, ZFP by zfpy, SPERR and SZ2 by hdf5plugin; PCA: mean, "
    "components and scores rounded, the rank searched; SVD: factors as int8, or int16 where that "
    'is too coarse. "Rounding" is a grid for the values and zstandard or xz, which is on nobody\'s '
    "list of rivals and beats some that are. A.7 of the FKSC paper taken literally has no bound "
    "and stands in a column of its own. - where no file holds the bound, or a model does not fit. "
)


def _figures(data: str) -> tuple[PaperFigure, ...]:
    common: dict[str, Any] = {
        "source": "", "study": sizes.STUDIES[data], "reported": {}, "xlabel": "largest row error",
        "nowhere": "no bound", "place": "{:.1%}", "by_method": True, "log": True, "absent": absent,
    }  # fmt: skip
    return (
        PaperFigure(
            name=f"codec/{data}",
            title=f"{_SET[data]}: bytes",
            text=_DATA[data] + _RULES,
            measured=_take("bytes"),
            claims=lambda curves: claims_bytes(curves, data) + claims_models(curves),
            ylabel="bytes",
            number="{:,.0f}",
            **common,
        ),
        PaperFigure(
            name=f"codec/{data}-bits",
            title=f"{_SET[data]}: bits a value",
            text=_DATA[data] + "The same files, in bits a value.",
            measured=_take("bits"),
            claims=lambda curves: [],
            ylabel="bits a value",
            number="{:.3f}",
            pictures=_rate_pictures(data),
            **common,
        ),
        PaperFigure(
            name=f"codec/{data}-ratio",
            title=f"{_SET[data]}: bytes over those of the best rival",
            text=_DATA[data] + "The best of SZ3, ZFP, SPERR, SZ2, PCA and SVD is 1.",
            measured=_take("bytes"),
            claims=lambda curves: [],
            ylabel="bytes / bytes of the best rival",
            number="{:.3f}",
            compared=beside_best,
            **common,
        ),
        PaperFigure(
            name=f"codec/{data}-errors",
            title=f"{_SET[data]}: the largest error of a row",
            text=_DATA[data] + "What came out, in percent of the row's norm.",
            measured=_take("largest"),
            claims=claims_errors,
            ylabel="largest row error / norm",
            number="{:.4%}",
            **common,
        ),
    )


def _ratio_figure(data: str) -> PaperFigure:
    return PaperFigure(
        name=f"codec/table2-{data}",
        title=f"Table 2's ratios in real bytes: {_SET[data]}",
        text="The test columns, square dictionary and FKSC codes of `fksc/table2`, seed 0. The "
        "paper counts values over nonzeros; a file needs an index (int32) and a value (float32) "
        "for each of these, the norms of the columns and the dictionary. Shown is float32 bytes "
        "of the columns over bytes stored. KernelCodec stores the same columns, in their own "
        "scale, with every one within the mean error of A.7's.",
        source="",
        study=ratios.STUDIES[data],
        measured=_take("ratio"),
        reported={},
        claims=claims_ratios,
        xlabel="values / nonzeros",
        ylabel="float32 bytes / stored bytes",
        place="{:.2f}",
        number="{:.2f}",
        log=True,
    )


FIGURES = tuple(figure for data in _SET for figure in (*_figures(data), _ratio_figure(data)))
