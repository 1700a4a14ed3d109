"""Grain's datasets, in this process; for the Python cases in one process per core."""

import multiprocessing
import os

import grain
from absl import flags
import numpy as np

from side import serve, Taking

CORES = len(os.sched_getaffinity(0))
# Grain's processes read flags, which only absl's own main function parses.
flags.FLAGS.mark_as_parsed()


def rows(dataset):
    return Taking(dataset, lambda batch: batch.shape[0])


def numbers():
    return grain.MapDataset.range(100_000_000)


def batched(dataset):
    return dataset.batch(1024).repeat()


def in_processes(dataset):
    # By default each process buffers 500 batches.
    here = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return dataset.to_iter_dataset(here).mp_prefetch(grain.MultiprocessingOptions(num_workers=CORES))


def images(files):
    # Uses torch's decoder, because Grain has none.
    from tfrecord_index import Records
    from torch_side import resize_crop

    records = grain.MapDataset.source(Records(files["images"])).repeat()
    return rows(in_processes(records.map(lambda jpeg: resize_crop(jpeg).numpy()).batch(32)))


def texts(files):
    from torch_side import Lines, tokens

    lines = grain.MapDataset.source(Lines(files["texts"])).repeat()
    return rows(in_processes(lines.map(tokens).batch(256)))


def handed_over(size):
    batch = np.ones(size, np.uint8)
    return lambda _: Taking(in_processes(numbers().map(lambda _: batch)), lambda _: 1)


PIPELINES = {
    "range-batch": lambda _: rows(batched(numbers())),
    "range-map-batch": lambda _: rows(batched(numbers().map(lambda x: x * 2 + 1))),
    "range-map-filter-batch": lambda _: rows(
        numbers().map(lambda x: x * 2 + 1).to_iter_dataset().filter(lambda x: x % 3 != 0).batch(1024)
    ),
    "map-prefetch": lambda _: rows(
        numbers()
        .map(lambda x: x + 1)
        .batch(1024)
        .repeat()
        .to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=4))
    ),
    "python-images": images,
    "python-text": texts,
    "python-numbers": lambda _: rows(in_processes(numbers().map(lambda x: x * 2 + 1).batch(1024))),
    "python-10mb": handed_over(10_000_000),
    "python-small": handed_over(256),
}

if __name__ == "__main__":
    serve(PIPELINES)
    # A process that waits for a free buffer does not end by itself.
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(0)
