"""Short JSON texts, deflated with a fixed dictionary.

Headers and models are short and similar: the dictionary saves two thirds of their bytes.
"""

import json
import zlib
from typing import Any

from kernelatoms.codec.limits import HEADER_SIZE, TEXT_EXPANSION, TEXT_SIZE, CodecError

# Part of format 1: it must never change. The most frequent texts come last.
_DICTIONARY = (
    b'"kind":"parquet","kind":"npz","kind":"model","styles":["whole":["rest":""open":1,"codec":'
    b'"zstd","group":"deflated":true"name":"labels.npy","name":"y.npy","name":"X.npy",\\r\\n\\t'
    b"|{'descr': '|b1', '|u1', '<M8[ns]', '<i4', '<i8', '<f2', '>f8', 'fortran_order': True, 's"
    b'hape\': (10, 365, 1000,), }[["atoms","|u1",[],"mean","<f4","<f8"kscdl","settings":{"alpha'
    b'":0.01,"atom_code":-118,"gamma":0.1,"mean_code":-70,"n_atoms":128,"ksvd","pca","columns",'
    b'"settings":{"lags":[1,2,144],"parents":8}interpolation","settings":{"stride":64}exact","s'
    b'ettings":{},"slice_rows":100,"symmetric":true}{"arrays":[],"n_columns":1000,"predictor":"'
    b'lags","settings":{"lag":1,"past":1},"slice_rows":0,"symmetric":false}{"kind":"csv","by":"'
    b'0.1.0","bound":[null,0.001],"parts":[{"dtype":"f8","model":0}],"table":{"line":"Date,time'
    b'stamp,time,index,id,date,value,temperature\\n","columns":10,"delimiter":";","approximate"'
    b':[1,2],"end":"mark":","names":1},"errors":[0.005,0.009,0.0099,0.01,0.1],"trials":[["exact'
    b'",10000],["kscdl",["ksvd",["pca",["interpolation",["columns",["lags",1000]],"size":100000'
    b'}{"kind":"array","bound":[0.001,null],"bound":[0.1,null],"bound":[0.05,null],{"kind":"npy'
    b'","by":"0.1.0","bound":[0.01,null],"parts":[{"head":"\\u0093NUMPY\\u0001\\u0000v\\u0000{'
    b"'descr': '<f8', 'fortran_order': False, 'shape': (100, 10), }                            "
    b'                              \\n","dtype":"f8","model":0}]}{\'descr\': \'<f4\', \'fortra'
    b"n_order': False, 'shape': (100, 10, 10), }"
)


def squeeze(tree: Any) -> bytes:
    """Return a JSON object as bytes; ``ValueError`` if it is too long."""
    text = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > HEADER_SIZE:
        raise ValueError(
            f"names and types of columns take {len(text):,} bytes, more than {HEADER_SIZE:,}."
        )
    tool = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    data = tool.compress(text) + tool.flush()
    if len(text) > max(TEXT_SIZE, TEXT_EXPANSION * len(data)):
        tool = zlib.compressobj(0, zlib.DEFLATED, -15)  # readers would refuse the expansion
        data = tool.compress(text) + tool.flush()
    return data


def unsqueeze(data: bytes, what: str, longest: int = HEADER_SIZE) -> dict[str, Any]:
    """Invert ``squeeze``; ``what`` names the text in the message of ``CodecError``."""
    most = min(longest, max(TEXT_SIZE, TEXT_EXPANSION * len(data)))
    try:
        tool = zlib.decompressobj(-15, _DICTIONARY)
        text = tool.decompress(data, most)
        if not tool.eof or tool.unused_data:
            raise ValueError("it is longer than it should be, or cut short")
        tree = json.loads(text)
    except (ValueError, RecursionError, zlib.error) as error:
        raise CodecError(f"{what} cannot be read: {error}.") from error
    if not isinstance(tree, dict):
        raise CodecError(f"{what} cannot be read: it is no JSON object.")
    return tree
