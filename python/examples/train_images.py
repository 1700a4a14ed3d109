"""Needs PyTorch: pip install "./python[torch]". Trains a small network on generated images, and continues
exactly where it was stopped.

    python python/examples/train_images.py
    python python/examples/train_images.py --checkpoint run.pt    # kill it, and run it again
    torchrun --nproc-per-node 2 python/examples/train_images.py   # two processes, each with half of the batches
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import leat

try:
    import torch
except ModuleNotFoundError:
    raise SystemExit('This example trains with PyTorch: pip install "./python[torch]"') from None
import leat.torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PIPELINE = Path(__file__).with_name("train_images.ts")
SIZE = 24


def network() -> nn.Module:
    """Two convolutions and a linear layer."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Unflatten(1, (1, SIZE, SIZE)),
        *(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, stride=2), nn.ReLU()),
        *(nn.Flatten(), nn.LazyLinear(3)),
    )


def main() -> None:
    """Trains, and prints the loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--checkpoint", type=Path, help="where to save every 10 steps, and to continue from")
    options = parser.parse_args()
    torch.set_num_threads(1)
    is_distributed, rank = "WORLD_SIZE" in os.environ, int(os.environ.get("RANK", "0"))
    if is_distributed:
        torch.distributed.init_process_group("gloo")

    loader = leat.torch.Loader(leat.load(PIPELINE, args={"images": 4_096}, seed=7, consumer="auto"))
    model = network()
    model(torch.zeros(1, SIZE * SIZE))  # Gives the last layer its shape.
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, correct = 0, 0.0
    if options.checkpoint is not None and options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loaders"][rank])
        step = saved["step"]
    trained = DistributedDataParallel(model) if is_distributed else model

    while step < options.steps:
        for batch in loader:
            step += 1
            guessed = trained(batch["image"])
            loss = nn.functional.cross_entropy(guessed, batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct = (guessed.argmax(1) == batch["label"]).float().mean().item()
            if step % 10 == 0 and rank == 0:
                print(f"step {step}: loss {loss.item():.4f}, {correct:.0%} correct", flush=True)
            if step % 10 == 0 and options.checkpoint is not None:
                # One file has the positions of all ranks, so that all continue from the same step.
                loaders: list[Any] = [loader.state_dict()]
                if is_distributed:
                    loaders *= torch.distributed.get_world_size()
                    torch.distributed.all_gather_object(loaders, loaders[rank])
                if rank == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    temporary = options.checkpoint.with_suffix(".new")
                    torch.save({**state, "loaders": loaders, "step": step}, temporary)
                    temporary.replace(options.checkpoint)
            if step == options.steps:
                break
    if is_distributed:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
