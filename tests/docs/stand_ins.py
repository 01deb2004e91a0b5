"""Small files in place of those that readers have: recorded routing, made from a fixed seed."""

import random
import struct
from pathlib import Path


def npy(shape: tuple[int, ...], values: list[int]) -> bytes:
    """A NumPy file of int32."""
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return head + struct.pack(f"<{len(values)}i", *values)


def recorded_tokens(tokens: int, layers: int, experts: int, top_k: int) -> bytes:
    """Ids [tokens, layers, top_k]: some experts are chosen far more often than others."""
    draw = random.Random(1)
    weights = [[draw.lognormvariate(0, 0.7) for _ in range(experts)] for _ in range(layers)]
    ids = []
    for _ in range(tokens):
        for layer in range(layers):
            keys = [draw.random() ** (1 / weight) for weight in weights[layer]]
            ids += sorted(range(experts), key=keys.__getitem__)[-top_k:]
    return npy((tokens, layers, top_k), ids)


def write_stand_ins(folder: Path) -> None:
    """The files that pages name: DeepSeek-V2-Lite's routing, 26 layers of 64 experts, 6 chosen."""
    recorded = recorded_tokens(512, 26, 64, 6)
    for name in ("trace.npy", "law.npy"):
        (folder / name).write_bytes(recorded)
