"""The loop of a Python side. bench/peers/side.ts describes its protocol."""

import json
import sys
import time

import numpy as np

LEAD_IN = 0.2


class Taking:
    """A step that takes an element and returns its number of units."""

    def __init__(self, elements, units):
        self.elements = iter(elements)
        self.units = units

    def __call__(self):
        return self.units(next(self.elements))

    def sample(self):
        """Returns the next image, the first of its batch, with the channels last."""
        element = np.asarray(next(self.elements))
        image = element[0] if element.ndim == 4 else element
        image = np.moveaxis(image, 0, -1) if image.shape[0] == 3 else image
        return {"shape": image.shape, "values": image.ravel().tolist()}


def run(step, ms):
    started = time.perf_counter()
    units = 0
    took = 0.0
    while True:
        units += step()
        took = 1000 * (time.perf_counter() - started)
        if took >= ms:
            return units, took


def serve(pipelines):
    """Runs a pipeline of `pipelines` in windows.

    `pipelines` has, by name, functions of the files that return `step`, or `(step, also)`. `also()`
    returns other measurements by name.
    """
    name, files = sys.argv[1], json.loads(sys.argv[2])
    opened = pipelines[name](files)
    step, also = opened if isinstance(opened, tuple) else (opened, None)
    for line in sys.stdin:
        if line.strip() == "sample":
            print(json.dumps(step.sample()), flush=True)
            continue
        ms = float(line)
        run(step, LEAD_IN * ms)
        units, took = run(step, (1 - LEAD_IN) * ms)
        more = {} if also is None else {"also": also()}
        print(json.dumps({"rate": 1000 * units / took, **more}), flush=True)
