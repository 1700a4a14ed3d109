"""Grain's datasets, in this process."""

import grain

from side import serve


def rows(dataset):
    iterator = iter(dataset)
    return lambda: next(iterator).shape[0]


def numbers():
    return grain.MapDataset.range(100_000_000)


def batched(dataset):
    return dataset.batch(1024).repeat()


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
}

if __name__ == "__main__":
    serve(PIPELINES)
