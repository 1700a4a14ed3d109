"""What the hand-over from the helper to Python costs: python python/bench/handover.py

Large batches: GB/s of batches of 10 MB that the pipeline has in memory, so that nothing else takes
time; next to it, how fast this machine copies memory. Small batches: how many of 64 numbers come in
a second. And the time from `import leat` to the first batch, in a process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PIPELINE = """
import { Dataset } from "@leat/leat";
const batch = { image: new Uint8Array(10_000_000).fill(1), label: new Int32Array(64) };
export const large = Dataset.from([batch]).repeat();
export const small = Dataset.from([{ x: new Float32Array(64), i: 1 }]).repeat();
"""
FIRST = "import time; t = time.perf_counter(); import leat; next(iter(leat.load({!r}, export='small'))); print(time.perf_counter() - t)"


def copied(seconds: float) -> float:
    """GB/s of numpy's copy of 10 MB."""
    import numpy as np

    source, target = np.ones(10_000_000, np.uint8), np.ones(10_000_000, np.uint8)
    return rate(iter(lambda: np.copyto(target, source), 0), seconds, 10_000_000) / 1e9


def rate(batches: object, seconds: float, weight: int = 1) -> float:
    """Batches per second, times `weight`."""
    count, start = 0, time.perf_counter()
    for count, _ in enumerate(batches, 1):  # type: ignore[arg-type]
        if time.perf_counter() - start > seconds:
            break
    return weight * count / (time.perf_counter() - start)


def main() -> None:
    """Prints the medians of some rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="of the shared file; default: for temporary files")
    options = parser.parse_args()
    import leat

    with tempfile.TemporaryDirectory() as folder:
        pipeline = Path(folder) / "pipeline.ts"
        pipeline.write_text(PIPELINE)
        figures: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            figures.setdefault("copy of 10 MB, GB/s", []).append(copied(options.seconds / 3))
            for name, weight in (("large", 10_000_256), ("small", 1)):
                with leat.load(pipeline, export=name, folder=options.folder) as loader:
                    batches = iter(loader)
                    rate(batches, 0.5)
                    unit = "batches of 10 MB, GB/s" if name == "large" else "batches of 64 numbers, 1/s"
                    measured = rate(batches, options.seconds, weight)
                    figures.setdefault(unit, []).append(measured / (1e9 if name == "large" else 1))
            first = subprocess.run([sys.executable, "-c", FIRST.format(str(pipeline))], capture_output=True, check=True)
            figures.setdefault("import to first batch, s", []).append(float(first.stdout))
        for name, values in figures.items():
            print(f"{name:32}{statistics.median(values):12,.2f}   ({min(values):,.2f} to {max(values):,.2f})")


if __name__ == "__main__":
    main()
