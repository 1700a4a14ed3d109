"""A process started by a Leat node, written from docs/wire.md alone, with the standard library.

It introduces itself, answers each ask for "echo" with what came, and ends when its starter does.
Arguments: the slot file to read, the slot file to write, its name, its incarnation.
"""

import struct
import sys

INCOMING, OUTGOING, NODE, INCARNATION = sys.argv[1:]
PIPED, FREED = 0xFFFFFFFF, 0x80000000
PIPED_BYTES_MAX, SLOT_BYTES = 65536, 2**30 + 2**20


class Ext:
    def __init__(self, code, data):
        self.code, self.data = code, data


def unpack(b, i=0):
    """(value, position after it): as much of msgpack as envelopes need."""
    t = b[i]
    if t <= 0x7F:
        return t, i + 1
    if t >= 0xE0:
        return t - 256, i + 1
    if t in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[t], i + 1
    if t in NUMBERS:
        size = struct.calcsize(NUMBERS[t])
        return struct.unpack_from(NUMBERS[t], b, i + 1)[0], i + 1 + size
    if 0xD4 <= t <= 0xD8:
        n, i = 1 << (t - 0xD4), i + 1
        return Ext(b[i], b[i + 1 : i + 1 + n]), i + 1 + n
    if 0x80 <= t <= 0x9F:
        n, i, kind = t & 15, i + 1, "map" if t < 0x90 else "array"
    elif 0xA0 <= t <= 0xBF:
        n, i, kind = t & 31, i + 1, "str"
    else:
        kind, form = LENGTHS[t]
        n, i = struct.unpack_from(form, b, i + 1)[0], i + 1 + struct.calcsize(form)
    if kind == "str":
        return b[i : i + n].decode(), i + n
    if kind == "bin":
        return b[i : i + n], i + n
    if kind == "ext":
        return Ext(b[i], b[i + 1 : i + 1 + n]), i + 1 + n
    items = []
    for _ in range(n if kind == "array" else 2 * n):
        item, i = unpack(b, i)
        items.append(item)
    return (items if kind == "array" else dict(zip(items[::2], items[1::2]))), i


NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
LENGTHS = {0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"), 0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I")}
LENGTHS |= {0xC7: ("ext", ">B"), 0xC8: ("ext", ">H"), 0xC9: ("ext", ">I")}
LENGTHS |= {0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}


def pack(value):
    if value is None or value is False or value is True:
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if 0 <= value < 128:
            return bytes([value])
        return struct.pack(">BI", 0xCE, value) if 0 <= value < 2**32 else struct.pack(">Bd", 0xCB, value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return struct.pack(">BI", 0xC6, len(value)) + value
    if isinstance(value, Ext):
        return struct.pack(">BIB", 0xC9, len(value.data), value.code) + value.data
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


def message(envelope, payloads=()):
    packed = pack(envelope)
    out = struct.pack(">BI", 0xCE, len(packed)) + packed
    for payload in payloads:
        out += b"\xc0" * (-(len(out) + 5) % 64) + struct.pack(">BI", 0xC6, len(payload)) + payload
    return out


def read_message(b):
    envelope, i = unpack(b, 5)
    payloads = []
    while i < len(b):
        item, i = unpack(b, i)
        if item is not None:
            payloads.append(item)
    return envelope, payloads


class Link:
    def __init__(self):
        self.incoming, self.outgoing = open(INCOMING, "rb", 0), open(OUTGOING, "r+b", 0)
        self.free = [0, 1]
        self.messages = []

    def send(self, m):
        if len(m) <= PIPED_BYTES_MAX:
            return self.write(struct.pack("<II", len(m), PIPED) + m)
        while not self.free:
            self.read()
        slot = self.free.pop()
        self.outgoing.seek(slot * SLOT_BYTES)
        view = memoryview(m)
        while view:
            view = view[self.outgoing.write(view) :]
        self.write(struct.pack("<II", len(m), slot))

    def write(self, frame):
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()

    def read(self):
        """Reads one header, and what it says. False at the end."""
        header = sys.stdin.buffer.read(8)
        if len(header) < 8:
            return False
        length, place = struct.unpack("<II", header)
        if length == 0 and place >= FREED and place != PIPED:
            self.free.append(place - FREED)
        elif place == PIPED:
            self.messages.append(sys.stdin.buffer.read(length))
        else:
            self.incoming.seek(place * SLOT_BYTES)
            parts = []
            while sum(map(len, parts)) < length:
                parts.append(self.incoming.read(length - sum(map(len, parts))))
            self.messages.append(b"".join(parts))
            self.write(struct.pack("<II", 0, FREED + place))
        return True

    def receive(self):
        while not self.messages:
            if not self.read():
                return None
        return read_message(self.messages.pop(0))


link = Link()
link.send(message({"kind": "hello", "version": 1, "role": "dialler", "node": NODE, "incarnation": INCARNATION, "messageBytesMax": 2**30}))
hello, _ = link.receive()
assert hello["kind"] == "hello" and hello["role"] == "listener", hello
number = 0
while (came := link.receive()) is not None and came[0]["kind"] != "bye":
    ask, payloads = came
    assert ask["kind"] == "ask" and ask["method"] == "echo", ask
    number += 1
    source = {"node": NODE, "path": ask["target"]["path"], "incarnation": INCARNATION + "-1"}
    reply = {"kind": "reply", "source": source, "target": ask["source"], "number": number, "id": ask["id"], "body": ask["body"]}
    link.send(message(reply, payloads))
