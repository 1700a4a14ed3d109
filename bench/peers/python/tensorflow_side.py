"""tf.data, and tf.data service for the cases of the service."""

import glob
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

from side import serve, Taking

AUTOTUNE = tf.data.AUTOTUNE
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
# As in torchvision and Leat. tf.data's default is faster and less exact.
DCT = "INTEGER_ACCURATE"
SIZES = {"1kb": 1_000, "150kb": 150_000, "1mb": 1_000_000, "10mb": 10_000_000}


def rows(dataset):
    return Taking(dataset, lambda batch: int(batch.shape[0]))


def numbers():
    return tf.data.Dataset.range(100_000_000).repeat()


def zipped(_files):
    batches = tf.data.Dataset.zip({"a": numbers(), "b": numbers()}).batch(1024)
    return Taking(batches, lambda batch: int(batch["a"].shape[0]))


def records(paths):
    return tf.data.TFRecordDataset(paths, num_parallel_reads=4)


def normalised(pixels):
    return (pixels / 255.0 - MEAN) / STD


def resize_crop(jpeg):
    size = tf.io.extract_jpeg_shape(jpeg)[:2]
    side = tf.cast(tf.round(tf.cast(tf.reduce_min(size), tf.float32) * (224 / 256)), tf.int32)
    top, left = tf.unstack((size - side) // 2)
    pixels = tf.image.decode_and_crop_jpeg(
        jpeg, [top, left, side, side], channels=3, dct_method=DCT
    )
    pixels = tf.image.resize(pixels, [224, 224])
    return normalised(tf.image.random_flip_left_right(pixels))


def random_resized_crop(jpeg):
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(jpeg),
        tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        min_object_covered=0.0,
        area_range=(0.08, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    pixels = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3, dct_method=DCT)
    pixels = tf.image.resize(pixels, [224, 224])
    return normalised(tf.image.random_flip_left_right(pixels))


def images(transform, batch):
    def opened(files):
        dataset = records(files["images"]).repeat().map(transform, num_parallel_calls=AUTOTUNE)
        if batch is None:
            return Taking(dataset.prefetch(AUTOTUNE), lambda _: 1)
        return rows(dataset.batch(batch, drop_remainder=True).prefetch(AUTOTUNE))

    return opened


def texts(files):
    lines = tf.data.TextLineDataset(files["texts"]).repeat()
    tokens = lines.map(
        lambda line: tf.strings.to_hash_bucket_fast(tf.strings.split(line, " "), 30_000),
        num_parallel_calls=AUTOTUNE,
    )
    return rows(
        tokens.bucket_by_sequence_length(
            lambda tokens: tf.shape(tokens)[0],
            bucket_boundaries=[16, 32, 48, 64, 80, 96],
            bucket_batch_sizes=[64] * 7,
        ).prefetch(AUTOTUNE)
    )


def as_numpy(dataset):
    return Taking(dataset.prefetch(AUTOTUNE).as_numpy_iterator(), lambda batch: batch.shape[0])


def images_in_python(files):
    dataset = records(files["images"]).repeat().map(resize_crop, num_parallel_calls=AUTOTUNE)
    return as_numpy(dataset.batch(32, drop_remainder=True))


def texts_in_python(files, length=64):
    def tokens(line):
        found = tf.strings.to_hash_bucket_fast(tf.strings.split(line, " ")[:length], 30_000)
        return tf.pad(tf.cast(found, tf.int32), [[0, length - tf.shape(found)[0]]])

    lines = tf.data.TextLineDataset(files["texts"]).repeat()
    return as_numpy(lines.map(tokens, num_parallel_calls=AUTOTUNE).batch(256))


def serve_service(pipe, journal, workers):
    service = tf.data.experimental.service
    config = service.DispatcherConfig(port=0, fault_tolerant_mode=journal is not None, work_dir=journal)
    dispatcher = service.DispatchServer(config)
    address = dispatcher.target.split("//")[1]
    config = service.WorkerConfig(dispatcher_address=address)
    running = [service.WorkerServer(config) for _ in range(workers)]
    pipe.send(dispatcher.target)
    try:
        pipe.recv()
    except EOFError:
        del running


def start_service(journaled=False, workers=1):
    """Starts a service. Returns its address, and a pipe: closing it ends the service."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    journal = tempfile.mkdtemp() if journaled else None
    process = multiprocessing.get_context("spawn").Process(
        target=serve_service, args=(there, journal, workers), daemon=True
    )
    process.start()
    return here.recv(), here


def payload(size):
    def dataset():
        index = np.arange(size, dtype=np.int64)
        data = ((index * 7 + (index >> 8)) & 255).astype(np.uint8)
        return tf.data.Dataset.from_tensors({"x": data})

    return dataset


def service(dataset, compression=None, policy="OFF", journaled=False):
    def opened(_files):
        address, here = start_service(journaled)
        remote = tf.data.experimental.service.distribute(
            processing_mode=getattr(tf.data.experimental.service.ShardingPolicy, policy),
            service=address,
            compression=compression,
        )
        take = Taking(dataset().repeat().apply(remote), lambda _: 1)

        def step(_kept=here):
            return take()

        return step

    return opened


class Training:
    """Trains synchronously on simulated accelerators, each of which takes a batch per step."""

    def __init__(self, readers, bucket, constant_ms, token_ms):
        # A round begins when all readers request it, so each reader needs a thread.
        self.pool = ThreadPoolExecutor(len(readers))
        self.readers = list(self.pool.map(iter, readers))
        self.bucket = bucket
        self.constant_ms = constant_ms
        self.token_ms = token_ms
        self.late_ms = self.busy_ms = self.steps_ms = self.real = self.padded = 0

    def step(self):
        batches = list(self.pool.map(next, self.readers))
        buckets = {(batch.shape[1] - 1) // self.bucket for batch in batches} if self.bucket else ()
        if len(buckets) > 1:
            raise RuntimeError(f"a step has batches of the buckets {buckets}")
        real = sum(np.count_nonzero(batch.numpy()) for batch in batches)
        sizes = [int(batch.shape[0] * batch.shape[1]) for batch in batches]
        times = [self.constant_ms + self.token_ms * size for size in sizes]
        self.real += real
        self.padded += sum(sizes)
        self.busy_ms += sum(times)
        self.steps_ms += len(times) * max(times)
        if self.steps_ms == 0:
            return 1
        started = time.perf_counter()
        time.sleep(max(0, max(times) - self.late_ms) / 1000)
        self.late_ms += 1000 * (time.perf_counter() - started) - max(times)
        return int(real)

    def also(self):
        idle = {} if self.steps_ms == 0 else {"% idle": 100 * (1 - self.busy_ms / self.steps_ms)}
        return {**idle, "% padding": 100 * (1 - self.real / self.padded)}


def sequences(files):
    lines = tf.data.TextLineDataset(files["sequences"]).repeat().shuffle(1000)
    return lines.map(lambda line: tf.strings.to_number(tf.strings.split(line, " "), tf.int32))


def padded(consumers, constant_ms=10, token_ms=0.01):
    """The baseline without a service: each trainer pads its own batches."""

    def opened(files):
        readers = [sequences(files).padded_batch(16).prefetch(1) for _ in range(consumers)]
        training = Training(readers, None, constant_ms, token_ms)
        return training.step, training.also

    return opened


def coordinated(consumers, workers, bucket, constant_ms=10, token_ms=0.01):
    def opened(files):
        address, here = start_service(workers=workers)
        boundaries = [1 + bound for bound in range(bucket, 512, bucket)]
        rounds = (
            sequences(files)
            .bucket_by_sequence_length(
                lambda tokens: tf.shape(tokens)[0], boundaries, [16] * (len(boundaries) + 1)
            )
            .group_by_window(
                lambda batch: tf.cast((tf.shape(batch)[1] - 1) // bucket, tf.int64),
                lambda _bucket, batches: batches,
                window_size=consumers,
            )
        )
        readers = [
            rounds.apply(
                tf.data.experimental.service.distribute(
                    processing_mode="parallel_epochs",
                    service=address,
                    job_name="coordinated",
                    consumer_index=index,
                    num_consumers=consumers,
                    compression=None,
                )
            )
            for index in range(consumers)
        ]
        training = Training(readers, bucket, constant_ms, token_ms)

        def step(_kept=here):
            return training.step()

        return step, training.also

    return opened


def checkpoint(_files):
    folder = tempfile.mkdtemp()
    iterator = iter(tf.data.Dataset.range(10_000_000).shuffle(10_000, seed=1).batch(32).repeat())
    saved = tf.train.Checkpoint(iterator=iterator)

    def step():
        next(iterator)
        saved.write(folder + "/state")
        return 1

    def also():
        return {"bytes": sum(os.path.getsize(path) for path in glob.glob(folder + "/state*"))}

    return step, also


PIPELINES = {
    "range-batch": lambda _: rows(numbers().batch(1024)),
    "range-map-batch": lambda _: rows(numbers().map(lambda x: x * 2 + 1).batch(1024)),
    "range-map-filter-batch": lambda _: rows(
        numbers().map(lambda x: x * 2 + 1).filter(lambda x: x % 3 != 0).batch(1024)
    ),
    "shuffle-batch": lambda _: rows(numbers().shuffle(10_000, seed=1).batch(1024)),
    "flat-map-batch": lambda _: rows(
        numbers().flat_map(lambda x: tf.data.Dataset.range(x, x + 100)).batch(1024)
    ),
    "zip-batch": zipped,
    "padded-batch": lambda _: rows(
        numbers().map(lambda x: tf.zeros([1 + x % 16], tf.int32)).padded_batch(1024)
    ),
    "map-prefetch": lambda _: rows(numbers().map(lambda x: x + 1).batch(1024).prefetch(4)),
    "decode": images(lambda jpeg: tf.io.decode_jpeg(jpeg, channels=3, dct_method=DCT), None),
    "resize-crop": images(resize_crop, 32),
    "random-resized-crop": images(random_resized_crop, 32),
    "text-bucket-pad": texts,
    "records-large": lambda files: Taking(records(files["images"]).repeat(), lambda _: 1),
    "records-small": lambda files: rows(records(files["records"]).batch(256).repeat()),
    "records-shuffle": lambda files: rows(
        records(files["records"]).shuffle(10_000).batch(256).repeat()
    ),
    **{f"service-{name}": service(payload(size)) for name, size in SIZES.items()},
    **{f"host-{name}": service(payload(size)) for name, size in SIZES.items()},
    "service-1mb-compressed": service(payload(SIZES["1mb"]), "AUTO"),
    # Every element is a split.
    "service-splits": service(
        lambda: tf.data.Dataset.range(256), policy="DYNAMIC", journaled=True
    ),
    "padded-4": padded(4),
    "padded-16": padded(16),
    "coordinated-4": coordinated(4, workers=1, bucket=128),
    "coordinated-16": coordinated(16, workers=4, bucket=64),
    "coordinated-rounds": coordinated(4, workers=1, bucket=128, constant_ms=0, token_ms=0),
    "checkpoint-shuffle": checkpoint,
    "python-images": images_in_python,
    "python-text": texts_in_python,
    "python-numbers": lambda _: as_numpy(numbers().map(lambda x: x * 2 + 1).batch(1024)),
}

if __name__ == "__main__":
    sys.exit(serve(PIPELINES))
