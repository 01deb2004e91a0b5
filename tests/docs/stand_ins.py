"""Small files in place of those that readers have: recorded routing, made from a fixed seed."""

import functools
import math
import random
import struct
from pathlib import Path


def npy(shape: tuple[int, ...], values: list[int]) -> bytes:
    """A NumPy file of int32."""
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return head + struct.pack(f"<{len(values)}i", *values)


@functools.cache
def recorded_tokens(tokens: int, layers: int, experts: int, top_k: int) -> bytes:
    """Ids [tokens, layers, top_k]. A token is about one of eight topics, and each topic likes some
    experts of every layer better than others."""
    draw = random.Random(1)
    topics = [[[draw.gauss(0, 1) for _ in range(experts)] for _ in range(layers)] for _ in range(8)]
    ids = []
    for _ in range(tokens):
        topic = topics[draw.randrange(8)]
        for layer in range(layers):
            scores = [liked - math.log(-math.log(draw.random())) for liked in topic[layer]]
            ids += sorted(range(experts), key=scores.__getitem__)[-top_k:]
    return npy((tokens, layers, top_k), ids)


def write_stand_ins(folder: Path) -> None:
    """The files that pages name: routing of DeepSeek-V2-Lite (26 layers, top-6 of 64 experts) and of
    Phi-3.5-MoE (32 layers, top-2 of 16)."""
    for name in ("trace.npy", "law.npy"):
        (folder / name).write_bytes(recorded_tokens(512, 26, 64, 6))
    (folder / "recorded.npy").write_bytes(recorded_tokens(1024, 32, 16, 2))
