"""Records what TensorFlow and Pillow make of a small image, for image_facts_test.ts.

    pip install tensorflow-cpu==2.20.0 pillow==11.3.0
    python3 tests/data/media/record.py > tests/data/media/image_facts.jsonl

The first line has the image; each further line is a fact.
torchvision v2 has the same operations on colours as Pillow, and is compared with it in its own tests.
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps

HEIGHT, WIDTH = 9, 7
pixels = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
picture = Image.fromarray(pixels)
print(json.dumps({"shape": pixels.shape, "pixels": pixels.reshape(-1).tolist()}))


def fact(operation, args, result):
    result = np.asarray(result)
    values = [round(value.item(), 4) for value in result.reshape(-1)]
    print(json.dumps({"operation": operation, "args": args, "shape": result.shape, "values": values}))


for method in ["bilinear", "bicubic", "area", "nearest"]:
    for antialias in [False, True]:
        if antialias and method in ["area", "nearest"]:
            continue
        for size in [(4, 3), (5, 14), (18, 5), (9, 7), (1, 1)]:
            image = tf.cast(pixels, tf.float32)
            result = tf.image.resize(image, size, method=method, antialias=antialias)
            fact("resize", [size, {"method": method, "antialias": antialias}], result)

fact("crop", [{"x": 1, "y": 2, "width": 4, "height": 5}], tf.image.crop_to_bounding_box(pixels, 2, 1, 5, 4))
fact("pad", [{"top": 1, "left": 2, "bottom": 0, "right": 3}], tf.image.pad_to_bounding_box(pixels, 1, 2, 10, 12))
fact("flip", ["horizontal"], tf.image.flip_left_right(pixels))
fact("flip", ["vertical"], tf.image.flip_up_down(pixels))
fact("grayscale", [], tf.image.rgb_to_grayscale(pixels))
fact("grayscale", [{"channels": 3}], tf.image.grayscale_to_rgb(tf.image.rgb_to_grayscale(pixels)))
for delta in [-0.5, -0.2, 0.1, 0.45]:
    fact("adjustHue", [delta], tf.image.adjust_hue(pixels, delta))
for factor in [0.0, 0.4, 1.0, 1.7]:
    fact("adjustBrightness", [factor], ImageEnhance.Brightness(picture).enhance(factor))
    fact("adjustContrast", [factor], ImageEnhance.Contrast(picture).enhance(factor))
    fact("adjustSaturation", [factor], ImageEnhance.Color(picture).enhance(factor))
for factor in [0.1, 1.9]:
    fact("adjustSharpness", [factor], ImageEnhance.Sharpness(picture).enhance(factor))
fact("posterize", [5], ImageOps.posterize(picture, 5))
fact("solarize", [100], ImageOps.solarize(picture, 100))
fact("autoContrast", [], ImageOps.autocontrast(picture))
large = Image.fromarray(np.tile(pixels, (3, 3, 1)))
fact("equalize", [], ImageOps.equalize(large))
for matrix in [(1, 0.3, 0, 0, 1, 0), (1, 0, 2, -0.2, 1, 1)]:
    fact("affine", [matrix, 9], picture.transform(picture.size, Image.AFFINE, matrix, Image.NEAREST, fillcolor=(9, 9, 9)))
for degrees in [20, -30]:
    fact("rotation", [degrees], picture.rotate(degrees, Image.NEAREST))

values = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11.75


def tensor_fact(operation, args, result):
    result = result.numpy()
    print(json.dumps({"operation": f"tensors.{operation}", "args": args, "shape": result.shape, "values": result.reshape(-1).tolist()}))


for dtype in ["int32", "uint8", "int64", "float16", "bool"]:
    tensor_fact("cast", [dtype], tf.cast(np.abs(values) if dtype == "uint8" else values, dtype))
for depth in [3, 5]:
    tensor_fact("oneHot", [[0, 4, 2, -1], depth, {"onValue": 5, "offValue": 2}], tf.one_hot([0, 4, 2, -1], depth, 5, 2))
for axis in [0, 1, 2, 3, -1, -4]:
    tensor_fact("stack", [{"axis": axis}], tf.stack([values, values * 2, values - 1], axis=axis))
for axis in [0, 1, 2, -1]:
    tensor_fact("gather", [[1, 0, 1], {"axis": axis}], tf.gather(values, [1, 0, 1], axis=axis))
for constant in [0, 7]:
    tensor_fact("pad", [[[1, 0], [2, 1], [0, 3]], constant], tf.pad(values, [[1, 0], [2, 1], [0, 3]], constant_values=constant))
