"""SPDL. FFmpeg decodes on threads, one for each core; torch normalises batches."""

import math
import os
import random

import spdl.io
import torch
from spdl.pipeline import PipelineBuilder

from side import serve, Taking
from tfrecord_index import Records

CORES = len(os.sched_getaffinity(0))
MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])
torch.set_num_threads(1)


def decoded(jpeg, filters=lambda _codec: []):
    packets = spdl.io.demux_image(bytes(jpeg))
    filter_desc = ",".join([*filters(packets.codec), "format=pix_fmts=rgb24"])
    return spdl.io.decode_packets(packets, filter_desc=filter_desc)


def pixels(frames):
    return spdl.io.to_torch(spdl.io.convert_frames(frames))


def flipped():
    return ["hflip"] if random.random() < 0.5 else []


def centre(codec):
    side = round(min(codec.width, codec.height) * 224 / 256)
    return [f"crop={side}:{side}", "scale=224:224:flags=bilinear", *flipped()]


def random_region(codec):
    """Crops to a rectangle like that of torchvision's RandomResizedCrop."""
    width, height = codec.width, codec.height
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            break
    else:
        w, h = width, height
    x, y = random.randint(0, width - w), random.randint(0, height - h)
    return [f"crop={w}:{h}:{x}:{y}", "scale=224:224:flags=bilinear", *flipped()]


def normalised(frames):
    return pixels(frames).float().div_(255).sub_(MEAN).div_(STD)


def images(files, operation, batch):
    records = Records(files["images"])

    def numbers():
        while True:
            yield from range(len(records))

    builder = PipelineBuilder().add_source(numbers())
    builder.pipe(lambda number: operation(records[number]), concurrency=CORES)
    if batch is not None:
        builder.aggregate(batch).pipe(normalised)
    pipeline = builder.add_sink(4).build(num_threads=CORES)
    pipeline.start()
    step = Taking(pipeline.get_iterator(), lambda result: 1 if batch is None else result.shape[0])
    step.pipeline = pipeline  # It would end with its last reference.
    return step


PIPELINES = {
    "decode": lambda files: images(files, lambda jpeg: pixels(decoded(jpeg)), None),
    "resize-crop": lambda files: images(files, lambda jpeg: decoded(jpeg, centre), 32),
    "random-resized-crop": lambda files: images(
        files, lambda jpeg: decoded(jpeg, random_region), 32
    ),
}

if __name__ == "__main__":
    serve(PIPELINES)
