"""Mixture-of-Experts systems on many GPUs, simulated packet by packet.

    import moehub

    answer = moehub.compare(["ideal", "megatron-te", "moe-hub"], machine="dgx-h800",
                            model="mixtral-8x7b", tokens=8192, routing="normal:0.032")
    for row in answer.results:
        print(row.system, row.time_us)

Functions ask what the commands of the program ask, with the same options as keywords, and return
what these print with --json: a dict whose members are attributes, too (Result). Machines, models,
cards, systems, routings and layouts are names, files or objects; objects are loaded once and used
often. Bad input raises InputError with the command's line. Work is done without the interpreter's
lock: threads work side by side, and Ctrl-C ends any call.
"""
from __future__ import annotations

import os
from typing import Any

import numpy as _numpy
import numpy.typing as _npt

from . import _functions, _moehub
from ._functions import *
from ._moehub import (Gpu, InputError, LayerResult, Layout, Machine, Model, Routing, System,
                      __version__)
from ._results import ModelLike, PathLike, Record, Result, Settings, SystemLike

__all__ = [
    *_functions.__all__,
    "Gpu", "InputError", "LayerResult", "Layout", "Machine", "Model", "Record", "Result",
    "Routing", "System", "gpu", "layout", "machine", "model", "presets", "routing", "simulate",
    "system", "systems",
]


def machine(name: PathLike, *, gpus: int | None = None, set: Settings = (),
            **changes: Any) -> Machine:
    """A machine by preset or TOML file, of so many GPUs.

    Values are changed as set={"link.latency": "250 ns"}, set=["link.latency=250 ns"] or
    link={"latency": "250 ns"}; keys and units are those of `moehub show`.
    """
    return Machine.load(name, set, changes, gpus)


def model(name: PathLike, *, set: Settings = (), **changes: Any) -> Model:
    """A model's shape by preset or TOML file; values are changed as machine() does."""
    return Model.load(name, set, changes)


def gpu(name: PathLike, *, set: Settings = (), **changes: Any) -> Gpu:
    """A card by preset or TOML file; values are changed as machine() does."""
    return Gpu.load(name, set, changes)


def system(name: PathLike, *, set: Settings = (), **changes: Any) -> System:
    """A system by preset or TOML file; values are changed as machine() does."""
    return System.load(name, set, changes)


def presets(kind: str) -> list[str]:
    """Names of presets: of machines, models, gpus, systems, engines, trainers, generations or
    shapes."""
    return _moehub.presets(kind)


def systems(layer_type: str = "moe") -> list[Record]:
    """Systems of MoE layers, or of tensor-parallel sub-layers ("tp"): name, title, program and
    how many lines it has."""
    if layer_type not in ("moe", "tp"):
        raise InputError(f'layer_type: found "{layer_type}", allowed: moe, tp')
    return _moehub.systems(layer_type == "tp")


def _array(what: str, values: _npt.ArrayLike) -> _npt.NDArray[Any]:
    try:
        return _numpy.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: found no array: {error}, allowed: lists of equal lengths, or "
                         "an array") from None


def routing(source: PathLike | _npt.ArrayLike, *, model: ModelLike | None = None,
            experts: int | None = None, weights: _npt.ArrayLike | None = None,
            tokens: int = 8192, layers: int = 1, seed: int = 1, name: str = "array") -> Routing:
    """Which experts tokens choose: drawn ("uniform", "zipf:1", …), read from an .npy file, or an
    array of experts [layers, tokens, top_k] or [tokens, top_k].

    `model` says how many experts there are, and of drawn ones how many a token chooses; of files
    and arrays `experts` may say it instead. `tokens`, `layers` and `seed` are of drawn routings,
    `weights` (float, the array's shape; without them 1/top_k) and `name` of arrays.

    An array of uint16 in C order is used where it lies and made read-only, and so are weights of
    float32; others are copied once. Ids are checked: 0 to experts - 1, none twice for a token.
    """
    shape = model if model is None or isinstance(model, Model) else Model.load(model, (), {})
    drawn = isinstance(source, str) and not (source.endswith(".npy") or "/" in source)
    if drawn:
        if shape is None:
            raise InputError("routing: found no model, allowed: with model=")
        return _moehub.generate_routing(str(source), shape, tokens, layers, seed)
    count = experts if experts is not None else shape.experts if shape is not None else None
    if count is None:
        raise InputError("routing: found neither experts nor model, allowed: with one of them")
    if isinstance(source, (str, os.PathLike)):
        return _moehub.read_routing(os.fspath(source), count)
    return _moehub.routing_from_array(_array("routing", source), count, weights, name)


def layout(experts_on: _npt.ArrayLike, *, experts: int, name: str = "array") -> Layout:
    """Which GPU holds which experts: whole numbers [layers, gpus, slots], or [gpus, slots] for
    one layer; -1 is an empty slot."""
    return _moehub.layout_from_array(_array("layout", experts_on), experts, name)


def simulate(system: SystemLike | None = None, **keywords: Any) -> LayerResult:
    """A layer under one system, with all that the simulation gives as arrays: links over time,
    intervals and, with `timeline`, kernels, units and traffic from GPU to GPU.

    Takes what run() takes, and is the same as run(…).simulated[0].
    """
    return _functions.run(system, **keywords).simulated[0]
