"""The records of TFRecord files by number, for libraries that read by index."""

import struct


class Records:
    def __init__(self, paths):
        self.paths = paths
        self.places = []
        for number, path in enumerate(paths):
            with open(path, "rb") as file:
                at = 0
                while head := file.read(12):
                    (length,) = struct.unpack("<Q", head[:8])
                    self.places.append((number, at + 12, length))
                    at += length + 16
                    file.seek(at)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        number, at, length = self.places[index]
        with open(self.paths[number], "rb") as file:
            file.seek(at)
            return file.read(length)
