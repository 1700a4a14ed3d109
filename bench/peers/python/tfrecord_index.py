"""Reads records of TFRecord files by index, for libraries that need random access."""

import struct


class Records:
    def __init__(self, paths):
        self.paths = paths
        self.positions = []
        for number, path in enumerate(paths):
            with open(path, "rb") as file:
                offset = 0
                while head := file.read(12):
                    (length,) = struct.unpack("<Q", head[:8])
                    self.positions.append((number, offset + 12, length))
                    offset += length + 16
                    file.seek(offset)

    def __len__(self):
        return len(self.positions)

    def __getitem__(self, index):
        number, offset, length = self.positions[index]
        with open(self.paths[number], "rb") as file:
            file.seek(offset)
            return file.read(length)
