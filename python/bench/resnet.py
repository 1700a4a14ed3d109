"""Trains ResNet-50 on the same JPEGs with DataLoader, with Leat, and with Leat that offloads a share of the
batches to workers where that pays (FastFlow). Prints images per second, and which part of the time the
accelerator trains. Needs: pip install "./python[torch]" torchvision

    python python/bench/resnet.py                          # generated JPEGs, a worker on this host
    python python/bench/resnet.py --images imagenet/train --service ws://dispatcher:5050
    python python/bench/resnet.py --tiny                   # does it run? ResNet-18, small images, few steps
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import leat
import leat.torch
import torch
import torchvision
from torch import nn
from torchvision.transforms import v2

PIPELINE = Path(__file__).with_name("resnet.ts")
CLASSES = 8
# Of each generated JPEG.
NAMES = 8


def generate(folder: Path, count: int) -> Path:
    """JPEGs of about ImageNet's size: coarse noise, enlarged. Each has several names: epochs are long, as in training."""
    random = torch.Generator().manual_seed(1)
    for i in range(count):
        coarse = torch.randint(0, 256, (1, 3, 24, 32), generator=random, dtype=torch.uint8).float()
        image = nn.functional.interpolate(coarse, (375, 500), mode="bicubic").clamp(0, 255).byte()[0]
        path = folder / f"class-{i % CLASSES}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        torchvision.io.write_jpeg(image, str(path), quality=90)
        for name in range(1, NAMES):
            os.link(path, path.with_stem(f"{i}-{name}"))
    return folder


@contextlib.contextmanager
def local_service(images: Path) -> Iterator[str]:
    """A dispatcher and a worker on this host: on others, workers have cores of their own."""
    programs: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> str:
        command = [sys.executable, "-m", "leat", *arguments, "--port", "0"]
        programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        for line in programs[-1].stdout or ():
            if found := re.search(r"ws://\S+:\d+", line):
                return found.group()
        raise SystemExit(f"leat {' '.join(arguments)} did not start")

    try:
        dispatcher = start("dispatcher")
        start("worker", "--dispatcher", dispatcher, "--data-root", str(images))
        yield dispatcher
    finally:
        for program in programs:
            program.terminate()
            program.wait()


def endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Epoch after epoch."""
    while True:
        yield from batches


def data_loader(images: Path, side: int, batch: int, workers: int) -> Iterator[Any]:
    """PyTorch's own: torchvision decodes, in a process for each core."""
    normalize = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    steps = [v2.RandomResizedCrop(side), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), normalize]

    def read(path: str) -> torch.Tensor:
        return torchvision.io.decode_image(path, torchvision.io.ImageReadMode.RGB)

    files = torchvision.datasets.ImageFolder(str(images), v2.Compose(steps), loader=read)
    options = {"num_workers": workers, "pin_memory": torch.cuda.is_available(), "drop_last": True, "shuffle": True}
    return endless(torch.utils.data.DataLoader(files, batch, persistent_workers=workers > 0, **options))


def leat_loader(service: str | None, **args: Any) -> leat.Loader:
    """Leat, with a service where that may prepare a share."""
    if service is None:
        return leat.load(PIPELINE, args=args, seed=1)
    return leat.load(PIPELINE, args={"service": service, **args}, seed=1, allow=["net"])


def leat_batches(device: torch.device, loader: leat.Loader) -> Iterator[Any]:
    for batch in endless(leat.torch.Loader(loader, device=device)):
        # Images come as rows of pixels, which is PyTorch's layout `channels_last`.
        yield batch["image"].permute(0, 3, 1, 2), batch["label"]


def trainer(device: torch.device, is_tiny: bool) -> Callable[[Any], None]:
    """A function that trains a step on a batch."""
    network = torchvision.models.resnet18 if is_tiny else torchvision.models.resnet50
    model = network(num_classes=1_000).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def train(batch: Any) -> None:
        images, labels = (part.to(device, non_blocking=True) for part in batch)
        with torch.autocast(device.type, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images.to(memory_format=torch.channels_last)), labels.long())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return train


def step_seconds(train: Callable[[Any], None], batches: Iterator[Any], steps: int) -> float:
    """Of a step, with the wait for its batch, after a quarter as many to get going."""
    for _ in range(max(2, steps // 4)):
        train(next(batches))
    _wait()
    started = time.perf_counter()
    for _ in range(steps):
        train(next(batches))
    _wait()
    return (time.perf_counter() - started) / steps


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    """Prints a row for each side, medians of some rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--images", type=Path, help="a folder with a folder of JPEGs for each class; default: generated")
    parser.add_argument("--service", help="a dispatcher whose workers see these files; default: a worker on this host")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100, help="of each side and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes of DataLoader")
    options = parser.parse_args()
    side = 224
    if options.tiny:
        side, options.batch, options.steps, options.rounds, options.workers = 32, 4, 4, 1, 1
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with contextlib.ExitStack() as stack:
        folder = options.images or generate(
            Path(stack.enter_context(tempfile.TemporaryDirectory())), 8 if options.tiny else 2_048
        )
        folder = folder.resolve()
        service = options.service or stack.enter_context(local_service(folder))
        train = trainer(device, options.tiny)
        made = {"folder": str(folder), "side": side, "batch": options.batch}
        # As fast as it can train: the same batch again and again.
        batch = [part.to(device) for part in next(leat_batches(device, leat_loader(None, **made)))]
        alone = step_seconds(train, endless([batch]), options.steps)
        print(f"{device}: training alone {options.batch / alone:,.1f} images/s", flush=True)

        def measure(sides: dict[str, Iterator[Any]]) -> None:
            took: dict[str, list[float]] = {name: [] for name in sides}
            for number in range(options.rounds):
                for name, batches in sides.items():
                    print(f"round {number + 1} of {options.rounds}: {name} …", file=sys.stderr, flush=True)
                    took[name].append(step_seconds(train, batches, options.steps))
            for name, seconds in took.items():
                median = sorted(seconds)[len(seconds) // 2]
                share = f"{alone / median:8.0%} of the time in steps"
                print(f"{name:18}{options.batch / median:12,.1f} images/s{share}", flush=True)

        loaded = data_loader(folder, side, options.batch, options.workers)
        measure({"DataLoader": loaded, "Leat": leat_batches(device, leat_loader(None, **made))})
        # Planning reads the pipeline through the service, which takes a while.
        planned = {"stepMs": 1_000 * alone, "profileSteps": min(50, options.steps)}
        offloading = leat_loader(service, **made, **planned)
        measure({"Leat, offloading": leat_batches(device, offloading)})
        print(offloading.explain(), file=sys.stderr)


if __name__ == "__main__":
    main()
