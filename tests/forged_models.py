"""Model files that ``save_model`` would not write."""

import hashlib
import io
import json
import zipfile

import skops.io

HEADER = "kernelatoms.json"


def members_of(path):
    """Return what the members of a model file hold, by name."""
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def header_of(members, version=1, record=None):
    """Return the header that belongs to members, with the right digests."""
    digests = {
        name: hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
        for name, data in members.items()
        if name != HEADER
    }
    return with_digest({"format_version": version, "members": digests, "record": record or {}})


def with_digest(header):
    """Return the text of a header with its own digest."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    return json.dumps({**header, "digest": hashlib.sha256(text.encode()).hexdigest()})


def write(path, members, version=1, record=None, method=zipfile.ZIP_DEFLATED):
    """Write members as a model file, to a path or a stream."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in {**members, HEADER: header_of(members, version, record)}.items():
            file.writestr(name, content)


def archive_of(obj, version=1):
    """Return the bytes of a model file of any object."""
    data = io.BytesIO()
    write(data, members_of(io.BytesIO(skops.io.dumps(obj))), version)
    return data.getvalue()


def forge(model, path):
    """Write a model without a look at it."""
    path.write_bytes(archive_of(model))
    return path
