"""Records: the outer layer of a replay file, readable while it is written.

A file is `FRLREP`, the version as two bytes, then records: one byte that says the kind, the length and the CRC-32 of
the payload and the CRC-32 of these nine bytes, four bytes each (all numbers little-endian), then the payload. What a
writer had not finished when it was stopped is left out by the reader; everything else that does not fit is an error.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO
from zlib import crc32

MAGIC = b"FRLREP"
VERSION = 1
START = MAGIC + struct.pack("<H", VERSION)
HEADER, BEGIN, CHUNK, EVENTS, END, TOTAL = b"H", b"B", b"C", b"V", b"E", b"T"
"""Kinds: about the file; a game begins; frames of it; events in it; it is over; all are (of demonstrations, which are
whole or none). All but chunks are JSON objects."""
MOST_BYTES = {HEADER: 1 << 22, BEGIN: 1 << 16, CHUNK: 1 << 24, EVENTS: 1 << 20, END: 1 << 16, TOTAL: 1 << 16}
"""Of a payload; a longer one is refused before any memory is taken for it."""

_HEAD = struct.Struct("<cII")
_CHECK = struct.Struct("<I")


def pack(kind: bytes, payload: bytes) -> bytes:
    """A record.

    Raises:
        ValueError: The payload is longer than any reader takes.
    """
    if len(payload) > MOST_BYTES[kind]:
        raise ValueError(f"a replay holds at most {MOST_BYTES[kind]:,} bytes in a record {kind.decode()}")
    head = _HEAD.pack(kind, len(payload), crc32(payload))
    return head + _CHECK.pack(crc32(head)) + payload


def pack_json(kind: bytes, content: Mapping[str, Any]) -> bytes:
    """A record of JSON; a ValueError for NaN and infinity."""
    return pack(kind, json.dumps(content, separators=(",", ":"), allow_nan=False).encode())


def unpack(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Kind and payload of each record from the beginning of a file on, up to the last one that is whole.

    Raises:
        ValueError: No replay, one of a newer version, or damaged; a line that does not name the file.
    """
    start = file.read(len(START))
    if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
        raise ValueError("no replay of fabric-rl")
    if len(start) < len(START):
        return
    version = int.from_bytes(start[len(MAGIC) :], "little")
    if version > VERSION:
        raise ValueError(f"a replay of format {version}, this fabric-rl reads up to {VERSION}; install a newer one")
    if not version:
        raise ValueError("a damaged replay: it has no version")
    while len(head := file.read(_HEAD.size + _CHECK.size)) == _HEAD.size + _CHECK.size:
        kind, length, check = _HEAD.unpack_from(head)
        if _CHECK.unpack_from(head, _HEAD.size)[0] != crc32(head[: _HEAD.size]) or length > MOST_BYTES.get(kind, -1):
            raise ValueError("a damaged replay: a record's head does not fit its checksum")
        payload = file.read(length)
        if len(payload) < length:
            return
        if crc32(payload) != check:
            raise ValueError("a damaged replay: a record does not fit its checksum")
        yield kind, payload


def unpack_json(payload: bytes) -> dict[str, Any]:
    """Return the object of a record."""
    content: dict[str, Any] = json.loads(payload)
    return content
