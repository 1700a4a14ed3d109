"""Needs JAX: pip install "./python[jax]". Trains a small network on generated images, and continues exactly
where it was stopped.

    python python/examples/train_jax.py
    python python/examples/train_jax.py --checkpoint run.npz                 # kill it, and run it again
    XLA_FLAGS=--xla_force_host_platform_device_count=2 python …/train_jax.py # as with two devices
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import leat
import numpy as np

try:
    import jax
except ModuleNotFoundError:
    raise SystemExit('This example trains with JAX: pip install "./python[jax]"') from None
import jax.numpy as jnp
import leat.jax
from jax.sharding import NamedSharding, PartitionSpec

PIPELINE = Path(__file__).with_name("train_images.ts")
SIZE, RATE = 24, 2e-3


def network() -> dict[str, Any]:
    """The weights of two convolutions and a linear layer."""
    first, second, third = jax.random.split(jax.random.key(1), 3)
    weights = jax.nn.initializers.he_normal(in_axis=(0, 1, 2), out_axis=3)
    return {
        "first": weights(first, (5, 5, 1, 8)),
        "second": weights(second, (3, 3, 8, 16)),
        "last": jax.nn.initializers.he_normal()(third, (256, 3)),
    }


def guesses(model: dict[str, Any], images: Any) -> Any:
    """A score for each image and class."""
    x = images.reshape(-1, SIZE, SIZE, 1)
    for layer in ("first", "second"):
        x = jax.lax.conv_general_dilated(x, model[layer], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x)
    return x.reshape(x.shape[0], -1) @ model["last"]


def loss_of(model: dict[str, Any], batch: Any) -> tuple[Any, Any]:
    """The loss, and the share of correct guesses."""
    scores = guesses(model, batch["image"])
    right = jax.nn.one_hot(batch["label"], 3)
    correct = (scores.argmax(1) == batch["label"]).mean()
    return -(right * jax.nn.log_softmax(scores)).sum(1).mean(), correct


@jax.jit
def train(state: dict[str, Any], batch: Any) -> tuple[dict[str, Any], Any, Any]:
    """One step of Adam."""
    (loss, correct), slopes = jax.value_and_grad(loss_of, has_aux=True)(state["model"], batch)
    step = state["step"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], slopes)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["square"], slopes)
    rate = RATE * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    model = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), state["model"], mean, square)
    return {"model": model, "mean": mean, "square": square, "step": step}, loss, correct


def main() -> None:
    """Trains, and prints the loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--checkpoint", type=Path, help="where to save every 10 steps, and to continue from")
    options = parser.parse_args()

    mesh = jax.make_mesh((jax.device_count(),), ("batch",))
    divided, everywhere = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    loader = leat.jax.Loader(leat.load(PIPELINE, args={"images": 4_096}, seed=7), sharding=divided)
    model = network()
    zeros = jax.tree.map(jnp.zeros_like, model)
    state = jax.device_put({"model": model, "mean": zeros, "square": zeros, "step": jnp.zeros(())}, everywhere)
    batches = iter(loader)
    if options.checkpoint is not None and options.checkpoint.exists():
        saved = np.load(options.checkpoint)
        leaves, structure = jax.tree.flatten(state)
        state = jax.device_put(structure.unflatten([saved[str(i)] for i in range(len(leaves))]), everywhere)
        batches.set_state(saved["loader"].tobytes())

    step = int(state["step"])
    while step < options.steps:
        for batch in batches:
            state, loss, correct = train(state, batch)
            step += 1
            if step % 10 == 0:
                print(f"step {step}: loss {loss:.4f}, {correct:.0%} correct", flush=True)
            if step % 10 == 0 and options.checkpoint is not None:
                kept = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
                temporary = options.checkpoint.with_suffix(".new.npz")
                np.savez(temporary, **kept, loader=np.frombuffer(batches.get_state(), np.uint8))
                temporary.replace(options.checkpoint)
            if step == options.steps:
                break
        else:
            batches = iter(loader)


if __name__ == "__main__":
    main()
