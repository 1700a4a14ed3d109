"""Leat's side in Python: reads tensors with `leat.torch`, from this clone's package."""

import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "python" / "src"))

import leat  # noqa: E402
import leat.torch  # noqa: E402

from side import serve, Taking  # noqa: E402


def reading(export, units):
    def opened(files):
        loader = leat.load(TOP / "bench" / "peers" / "leat" / "python.ts", export=export, args=files)
        return Taking(leat.torch.Loader(loader), units)

    return opened


def rows(export):
    return reading(export, lambda batch: batch.shape[0])


PIPELINES = {
    "python-images": rows("images"),
    "python-text": rows("text"),
    "python-numbers": rows("numbers"),
    "python-10mb": reading("large", lambda _: 1),
    "python-small": reading("small", lambda _: 1),
}

if __name__ == "__main__":
    serve(PIPELINES)
