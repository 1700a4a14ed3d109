"""torch's DataLoader. If there are several cores, it has a worker process for each."""

import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

from side import serve, Taking
from tfrecord_index import Records

CORES = len(os.sched_getaffinity(0))
WORKERS = 0 if CORES == 1 else CORES
NORMALISE = v2.Compose(
    [
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225], inplace=True),
    ]
)
torch.set_num_threads(1)


def endless(loader):
    while True:
        yield from loader


def rows(loader):
    return Taking(endless(loader), lambda batch: batch.shape[0])


class Mapped(Dataset):
    def __init__(self, source, transform):
        self.source = source
        self.transform = transform

    def __len__(self):
        return len(self.source)

    def __getitem__(self, index):
        return self.transform(self.source[index])


def decoded(jpeg):
    data = torch.frombuffer(bytearray(jpeg), dtype=torch.uint8)
    return decode_jpeg(data, mode=ImageReadMode.RGB)


FLIP_NORMALISE = v2.Compose([v2.RandomHorizontalFlip(), NORMALISE])
RANDOM_CROP = v2.Compose(
    [v2.RandomResizedCrop(224, antialias=False), v2.RandomHorizontalFlip(), NORMALISE]
)


def resize_crop(jpeg):
    # torchvision cannot decode a part of a JPEG. Cropping first leaves fewer pixels to resize.
    pixels = decoded(jpeg)
    height, width = pixels.shape[1:]
    side = round(min(height, width) * 224 / 256)
    top, left = (height - side) // 2, (width - side) // 2
    cropped = v2.functional.crop(pixels, top, left, side, side)
    return FLIP_NORMALISE(v2.functional.resize(cropped, [224, 224], antialias=False))


def random_crop(jpeg):
    return RANDOM_CROP(decoded(jpeg))


def images(transform, batch):
    def opened(files):
        loader = parallel(Mapped(Records(files["images"]), transform), batch)
        return Taking(endless(loader), lambda _: 1) if batch is None else rows(loader)

    return opened


class Lines(Dataset):
    """Lines of text, by index."""

    def __init__(self, paths):
        self.lines = [line for path in paths for line in open(path, encoding="utf-8")]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return self.lines[index]


def tokens(line, length=64):
    result = np.zeros(length, np.int32)
    words = line.split()[:length]
    result[: len(words)] = [hash(word) % 30_000 for word in words]
    return result


class Same(IterableDataset):
    """Yields the same batch endlessly."""

    def __init__(self, size):
        self.batch = np.ones(size, np.uint8)

    def __iter__(self):
        while True:
            yield self.batch


def parallel(dataset, batch):
    return DataLoader(dataset, batch_size=batch, num_workers=WORKERS, persistent_workers=WORKERS > 0)


def handed_over(size):
    return lambda _: Taking(endless(parallel(Same(size), None)), lambda _: 1)


class Buckets(IterableDataset):
    """Padded batches of texts of similar length."""

    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        share, shares = (0, 1) if info is None else (info.id, info.num_workers)
        buckets = [[] for _ in range(7)]
        for path in self.paths:
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file):
                    if number % shares != share:
                        continue
                    tokens = torch.tensor([hash(word) % 30_000 for word in line.split()])
                    bucket = buckets[min(6, len(tokens) // 16)]
                    bucket.append(tokens)
                    if len(bucket) == 64:
                        yield torch.nn.utils.rnn.pad_sequence(bucket, batch_first=True)
                        bucket.clear()


def number(x):
    return x * 2 + 1


PIPELINES = {
    "range-map-batch": lambda _: rows(
        DataLoader(Mapped(range(100_000_000), number), batch_size=1024)
    ),
    "shuffle-batch": lambda _: rows(DataLoader(np.arange(1_000_000), batch_size=1024, shuffle=True)),
    "decode": images(decoded, None),
    "resize-crop": images(resize_crop, 32),
    "random-resized-crop": images(random_crop, 32),
    "text-bucket-pad": lambda files: rows(parallel(Buckets(files["texts"]), None)),
    "python-images": images(resize_crop, 32),
    "python-text": lambda files: rows(parallel(Mapped(Lines(files["texts"]), tokens), 256)),
    "python-numbers": lambda _: rows(parallel(Mapped(range(100_000_000), number), 1024)),
    "python-10mb": handed_over(10_000_000),
    "python-small": handed_over(256),
}

if __name__ == "__main__":
    serve(PIPELINES)
