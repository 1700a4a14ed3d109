"""Which part of a stream a process reads."""

from __future__ import annotations

import operator
import os
import sys
from typing import Literal, Optional, Tuple, Union

from ._errors import LeatError

Consumer = Union[Tuple[int, int], Literal["auto"], None]


def consumer_of(consumer: Consumer) -> Optional[Tuple[int, int]]:
    """The rank and the number of processes; None if one process reads everything."""
    if consumer is None:
        return None
    try:
        rank, world = map(operator.index, _ranks() if consumer == "auto" else consumer)
        is_right = 0 <= rank < world
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        raise LeatError("invalid_argument", f"consumer is (rank, world) with 0 <= rank < world, or 'auto', not {consumer!r}")
    return None if world == 1 and consumer == "auto" else (rank, world)


def require_alone() -> None:
    """Raises if "auto", which has given everything to this process, would now give it a part."""
    consumer = consumer_of("auto")
    if consumer is not None:
        raise LeatError(
            "failed_precondition",
            f"consumer='auto' gave this loader all batches, and this process has become rank {consumer[0]} of {consumer[1]} since: "
            "make the loader after torch.distributed.init_process_group() or jax.distributed.initialize()",
        )


def _ranks() -> tuple[int, int]:
    # Only if the program has imported torch or jax: importing them takes seconds.
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return jax.process_index(), jax.process_count()
    rank, world = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    if rank.isdecimal() and world.isdecimal() and int(rank) < int(world):
        return int(rank), int(world)
    raise LeatError(
        "invalid_argument",
        f"consumer='auto' takes the environment variables RANK and WORLD_SIZE, which are {rank!r} and {world!r}: set both, "
        "with 0 <= RANK < WORLD_SIZE",
    )
