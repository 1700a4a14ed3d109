"""A reader of Leat messages, written from docs/wire.md alone: msgpack and the standard library.

Reads vectors.json from standard input and writes what it makes of each message, as JSON.
"""

import json
import math
import struct
import sys

import msgpack

DTYPES = {  # code on the wire: (name, struct letter)
    0: ("int8", "b"), 1: ("uint8", "B"), 2: ("int16", "h"), 3: ("uint16", "H"), 4: ("int32", "i"),
    5: ("uint32", "I"), 6: ("int64", "q"), 7: ("uint64", "Q"), 8: ("float16", "e"), 9: ("float32", "f"),
    10: ("float64", "d"), 11: ("bool", "B"), 12: ("string", None), 13: ("bytes", None),
}


def read_message(frame):
    """(envelope, payloads) of one message: any streaming decoder of msgpack will do."""
    stream = msgpack.Unpacker(raw=False, strict_map_key=True)
    stream.feed(frame)
    stream.unpack()  # the length of the envelope: only who wants to skip the envelope needs it
    envelope = stream.unpack()
    payloads = []
    for item in stream:
        if item is not None:  # padding
            assert (stream.tell() - len(item)) % 64 == 0
            payloads.append(item)
    return envelope, payloads


def numbers(payload, letter):
    return list(struct.unpack(f"<{len(payload) // struct.calcsize(letter)}{letter}", payload))


def tensor(data, payloads):
    index, code, rank = struct.unpack_from(">IBB", data)
    shape = list(struct.unpack_from(f">{rank}I", data, 6))
    name, letter = DTYPES[code]
    if letter is not None:
        items = numbers(payloads[index], letter)
    else:
        ends, block = numbers(payloads[index], "I"), payloads[index + 1]
        items = [block[a:b] for a, b in zip(ends, ends[1:])]
        items = [i.decode() if name == "string" else i.hex() for i in items]
    assert math.prod(shape) == len(items)
    items = [str(i) for i in items] if name in ("int64", "uint64") else items
    return {"dtype": name, "shape": shape, "data": items}


def extension(ext, payloads):
    if ext.code == 0x54:
        return tensor(ext.data, payloads)
    if ext.code == 0x52:
        splits = numbers(payloads[struct.unpack_from(">I", ext.data)[0]], "q")
        return {"values": tensor(ext.data[4:], payloads), "rowSplits": splits}
    if ext.code == 0x50:
        return {"bytes": payloads[struct.unpack(">I", ext.data)[0]].hex()}
    assert ext.code == 0x41
    index, code = struct.unpack(">IB", ext.data)
    name, letter = DTYPES[code]
    if name == "uint8":
        return {"bytes": payloads[index].hex()}
    items = numbers(payloads[index], letter)
    return tensor(struct.pack(">IBBI", index, code, 1, len(items)), payloads)


def describe(value, payloads):
    if isinstance(value, msgpack.ExtType):
        return extension(value, payloads)
    if isinstance(value, dict):
        return {key: describe(item, payloads) for key, item in value.items()}
    if isinstance(value, list):
        return [describe(item, payloads) for item in value]
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, float) and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return {"number": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-0.0": "-0"}[str(value)]}
    return value


if __name__ == "__main__":
    results = []
    for vector in json.load(sys.stdin):
        envelope, payloads = read_message(bytes.fromhex(vector["hex"]))
        results.append(describe(envelope, payloads))
    json.dump(results, sys.stdout)
