"""The loop of a Python side. bench/peers/side.ts describes its protocol."""

import json
import sys
import time

LEAD_IN = 0.2


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
        ms = float(line)
        run(step, LEAD_IN * ms)
        units, took = run(step, (1 - LEAD_IN) * ms)
        more = {} if also is None else {"also": also()}
        print(json.dumps({"rate": 1000 * units / took, **more}), flush=True)
