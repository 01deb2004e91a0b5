"""Mixture-of-Experts systems on many GPUs, simulated packet by packet.

    import moehub

    answer = moehub.compare(["ideal", "megatron-te", "moe-hub"], machine="dgx-h800",
                            model="mixtral-8x7b", tokens=8192, routing="normal:0.032")
    for row in answer["results"]:
        print(row["system"], row["time_us"])

Functions take what the commands of the program take, under the same names with underscores, and
return what these print with --json, as dicts. Machines, models, systems, routings and layouts are
names, files or objects; objects are loaded once and used often. Bad input raises InputError with
the command's line. Simulations run without the interpreter's lock: threads work side by side.
"""
from __future__ import annotations

import copyreg
import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

import numpy as _numpy
import numpy.typing as _npt

from . import _moehub
from ._moehub import (Gpu, InputError, LayerResult, Layout, Machine, Model, Routing, System,
                      __version__)

__all__ = [
    "Gpu", "InputError", "LayerResult", "Layout", "Machine", "Model", "Routing", "System",
    "collective", "compare", "gpu", "layout", "machine", "model", "place", "plan", "predict",
    "presets", "routing", "run", "simulate", "system", "systems", "time_model",
]

Value = Union[str, int, float, bool]
MachineLike = Union[str, "os.PathLike[str]", Machine]
ModelLike = Union[str, "os.PathLike[str]", Model]
SystemLike = Union[str, "os.PathLike[str]", System]
RoutingLike = Union[str, "os.PathLike[str]", Routing]
LayoutLike = Union[str, "os.PathLike[str]", Layout]
Systems = Union[SystemLike, Iterable[SystemLike]]
Document = dict[str, Any]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flat(prefix: str, changes: Mapping[str, Any]) -> list[str]:
    settings: list[str] = []
    for key, value in changes.items():
        if isinstance(value, Mapping):
            settings += _flat(f"{prefix}{key}.", value)
        else:
            settings.append(f"{prefix}{key}={_text(value)}")
    return settings


def _settings(set: Iterable[str], changes: Mapping[str, Any]) -> list[str]:
    return ([set] if isinstance(set, str) else list(set)) + _flat("", changes)


def _said(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a caller said: `pass_` is the option pass, None is nothing."""
    said = {name: value for name, value in arguments.items() if value is not None}
    if "pass_" in said:
        said["pass"] = said.pop("pass_")
    return said


def machine(name: str | os.PathLike[str], *, gpus: int | None = None,
            set: Iterable[str] = (), **changes: Any) -> Machine:
    """A machine by preset or TOML file, of so many GPUs.

    Values are changed as `set=["link.latency=250 ns"]` or `link={"latency": "250 ns"}`; keys and
    units are those of `moehub show`.
    """
    return _moehub.load_machine(os.fspath(name), _settings(set, changes), gpus)


def model(name: str | os.PathLike[str], *, set: Iterable[str] = (), **changes: Any) -> Model:
    """A model's shape by preset or TOML file; values are changed as machine() does."""
    return _moehub.load_model(os.fspath(name), _settings(set, changes))


def gpu(name: str | os.PathLike[str], *, set: Iterable[str] = (), **changes: Any) -> Gpu:
    """A card by preset or TOML file; values are changed as machine() does."""
    return _moehub.load_gpu(os.fspath(name), _settings(set, changes))


def system(name: str | os.PathLike[str], *, set: Iterable[str] = (), **changes: Any) -> System:
    """A system by preset or TOML file; values are changed as machine() does."""
    return _moehub.load_system(os.fspath(name), _settings(set, changes))


def _load(kind: str, *said: Any) -> Any:
    return getattr(_moehub, f"load_{kind}")(*said)


# Copies, and what other processes get, are loaded again from the same source.
copyreg.pickle(Machine, lambda one: (_load, ("machine", one.source, one.settings, one.gpus)))
copyreg.pickle(Model, lambda one: (_load, ("model", one.source, one.settings)))
copyreg.pickle(Gpu, lambda one: (_load, ("gpu", one.source, one.settings)))
copyreg.pickle(System, lambda one: (_load, ("system", one.source, one.settings)))


def _shape(model: ModelLike | None) -> Model | None:
    if model is None or isinstance(model, Model):
        return model
    return _moehub.load_model(os.fspath(model), [])


def presets(kind: str) -> list[str]:
    """Names of presets: of machines, models, gpus, systems, engines, trainers or generations."""
    return _moehub.presets(kind)


def systems(layer_type: str = "moe") -> list[Document]:
    """Systems of MoE layers, or of tensor-parallel sub-layers ("tp"): name, title, program and
    how many lines it has."""
    if layer_type not in ("moe", "tp"):
        raise InputError(f'layer_type: found "{layer_type}", allowed: moe, tp')
    return _moehub.systems(layer_type == "tp")


def routing(source: str | os.PathLike[str] | _npt.ArrayLike, *,
            model: ModelLike | None = None, experts: int | None = None,
            weights: _npt.ArrayLike | None = None, tokens: int = 8192, layers: int = 1,
            seed: int = 1, name: str = "array") -> Routing:
    """Which experts tokens choose: drawn ("uniform", "zipf:1", …), read from an .npy file, or an
    array of experts [layers, tokens, top_k] or [tokens, top_k].

    `model` says how many experts there are, and of drawn ones how many a token chooses; of files
    and arrays `experts` may say it instead. `tokens`, `layers` and `seed` are of drawn routings,
    `weights` (float, the array's shape; without them 1/top_k) and `name` of arrays.

    An array of uint16 in C order is used where it lies and made read-only, and so are weights of
    float32; others are copied once. Ids are checked: 0 to experts - 1, none twice for a token.
    """
    shape = _shape(model)
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
    return _moehub.routing_from_array(_numpy.asarray(source), count, weights, name)


def layout(experts_on: _npt.ArrayLike, *, experts: int, name: str = "array") -> Layout:
    """Which GPU holds which experts: whole numbers [layers, gpus, slots], or [gpus, slots] for
    one layer; -1 is an empty slot."""
    return _moehub.layout_from_array(_numpy.asarray(experts_on), experts, name)


def compare(systems: Systems | None = None, *, machine: MachineLike | None = None,
            model: ModelLike | None = None, gpus: int | None = None, tokens: int | None = None,
            routing: RoutingLike | None = None, seed: int | None = None,
            baseline: str | None = None, tokens_per_gpu: int | None = None,
            layer: int | None = None, layer_type: str | None = None,
            sublayer: str | None = None, pass_: str | None = None, grain: str | None = None,
            set: Iterable[str] | None = None, host: str | None = None,
            fused_activation: bool | None = None, fp8: bool | None = None,
            tp: int | None = None, layout: LayoutLike | None = None,
            replicas: int | None = None, replica_policy: str | None = None,
            region_rows: int | None = None, page_rows: int | None = None,
            page_pool: str | int | None = None, verify: bool | None = None,
            threads: int | None = None) -> Document:
    """A MoE or tensor-parallel layer under several systems, side by side, or under all that can
    run it: what `moehub compare --json` prints."""
    return _moehub.compare("compare", _said(locals()))


def run(system: SystemLike | None = None, *, machine: MachineLike | None = None,
        model: ModelLike | None = None, gpus: int | None = None, tokens: int | None = None,
        routing: RoutingLike | None = None, seed: int | None = None,
        tokens_per_gpu: int | None = None, layer: int | None = None,
        layer_type: str | None = None,
        sublayer: str | None = None, pass_: str | None = None, grain: str | None = None,
        set: Iterable[str] | None = None, host: str | None = None,
        fused_activation: bool | None = None, fp8: bool | None = None,
        tp: int | None = None, layout: LayoutLike | None = None,
        replicas: int | None = None, replica_policy: str | None = None,
        region_rows: int | None = None, page_rows: int | None = None,
        page_pool: str | int | None = None, verify: bool | None = None) -> Document:
    """A layer under one system, moe-hub or (of tensor-parallel layers) cais without a name: what
    `moehub run --json` prints."""
    return _moehub.compare("run", _one_system(_said(locals())))


def simulate(system: SystemLike | None = None, *, machine: MachineLike | None = None,
             model: ModelLike | None = None, gpus: int | None = None, tokens: int | None = None,
             routing: RoutingLike | None = None, seed: int | None = None,
             tokens_per_gpu: int | None = None, layer: int | None = None,
             layer_type: str | None = None,
             sublayer: str | None = None, pass_: str | None = None, grain: str | None = None,
             set: Iterable[str] | None = None, host: str | None = None,
             fused_activation: bool | None = None, fp8: bool | None = None,
             tp: int | None = None, layout: LayoutLike | None = None,
             replicas: int | None = None, replica_policy: str | None = None,
             region_rows: int | None = None, page_rows: int | None = None,
             page_pool: str | int | None = None, verify: bool | None = None,
             timeline: bool = False) -> LayerResult:
    """As run(), with everything that the simulation gives: links over time, intervals and, with
    `timeline`, kernels, units and traffic from GPU to GPU, as arrays."""
    said = _said(locals())
    del said["timeline"]
    return _moehub.simulate(_one_system(said), timeline)


def _one_system(said: dict[str, Any]) -> dict[str, Any]:
    usual = "cais" if said.get("layer_type") == "tp" else "moe-hub"
    said["systems"] = [said.pop("system", usual)]
    return said


def time_model(systems: Systems | None = None, *, machine: MachineLike | None = None,
               model: ModelLike | None = None, gpus: int | None = None,
               tokens: int | None = None, tokens_per_gpu: int | None = None,
               sequence: int | None = None, training: bool | None = None,
               graphs: bool | None = None, attention_tp: int | None = None,
               attention_system: str | None = None, overlap_gradients: bool | None = None,
               kernels: str | None = None, baseline: str | None = None,
               routing: RoutingLike | None = None, seed: int | None = None,
               layer: int | None = None, grain: str | None = None,
               set: Iterable[str] | None = None, host: str | None = None,
               fused_activation: bool | None = None, fp8: bool | None = None,
               tp: int | None = None, layout: LayoutLike | None = None,
               replicas: int | None = None, replica_policy: str | None = None,
               region_rows: int | None = None, page_rows: int | None = None,
               page_pool: str | int | None = None, verify: bool | None = None,
               threads: int | None = None) -> Document:
    """A whole model under several systems, forward or in training: what `moehub model --json`
    prints. Serving (--decode, --prefill) is the program's."""
    return _moehub.time_model(_said(locals()))


def place(profiles: Routing | str | os.PathLike[str] | Iterable[Routing | str | os.PathLike[str]],
          *, evaluate: Iterable[Routing | str | os.PathLike[str]] = (),
          machine: MachineLike | None = None, gpus: int | None = None,
          model: ModelLike | None = None, nodes: int | None = None, groups: int | None = None,
          replicas: int | None = None, memory: str | int | None = None,
          weight_bits: int | None = None, method: str | None = None,
          objective: str | None = None, load_cap: float | None = None,
          load_blocks: int | None = None, worst_profile: bool | None = None,
          unequal: bool | None = None, batch: int | None = None,
          current: str | os.PathLike[str] | None = None, max_moves: int | None = None,
          time_limit: float | None = None, seed: int | None = None,
          threads: int | None = None, pareto: bool | None = None,
          system: str | None = None, simulate: Iterable[str] | None = None,
          experts: int | None = None, profile_kind: str | None = None,
          dense_layers: int | None = None) -> tuple[Document, Layout]:
    """Experts on GPUs from recorded routing: what `moehub place --json` prints, and the layout.

    Profiles are files, FILE[:from-to][@weight], or routings; `evaluate` are held out from the
    search and judge the layout. Ctrl-C stops the search and raises KeyboardInterrupt.
    """
    said = _said(locals())
    said["profile"] = _listed(said.pop("profiles"))
    said["evaluate"] = _listed(evaluate)
    for noun in (machine, model):
        if isinstance(noun, (Machine, Model)) and noun.settings:
            raise InputError(f'place: found {noun!r} with settings, allowed: a preset or a file')
    if isinstance(machine, Machine):
        said["machine"] = machine.source
        said.setdefault("gpus", machine.gpus)
    dense = dense_layers or 0
    shape = _shape(model)
    if shape is not None:
        said["model"] = shape.source
        dense = shape.dense_layers
    answer, found = _moehub.place(said, dense)
    return answer, found


def plan(*, model: ModelLike | None = None, machine: MachineLike | None = None,
         gpus: int | None = None, sequence: int | None = None,
         global_batch: int | None = None, precision: str | None = None,
         trainer: str | os.PathLike[str] | None = None,
         system: str | Iterable[str] | None = None, routing: str | None = None,
         fix: str | None = None, top: int | None = None, explain: str | None = None,
         no_mtp: bool | None = None, set: Iterable[str] | None = None,
         threads: int | None = None) -> Document:
    """The fastest parallel layouts of a training run, or with `explain` one in full: what
    `moehub plan --json` prints."""
    said = _said(locals())
    settings = _listed(set or ())
    if isinstance(machine, Machine):
        said["machine"] = machine.source
        said.setdefault("gpus", machine.gpus)
        settings = machine.settings + settings
    if isinstance(model, Model):
        said["model"] = model.source
        settings = [f"model.{one}" for one in model.settings] + settings
    said["set"] = settings
    return _moehub.plan(said)


def collective(op: str = "all_to_all", *, algorithm: str | None = None,
               machine: MachineLike | None = None, gpus: int | None = None,
               bytes: int | str | None = None, element: str | None = None,
               grain: str | None = None, set: Iterable[str] | None = None) -> Document:
    """One collective on a machine's fabric: what `moehub collective --json` prints."""
    said = _said(locals())
    given = said.pop("machine") if isinstance(machine, Machine) else None
    return _moehub.collective(said, given)


def predict(kernel: str, *, gpu: str | os.PathLike[str] | Gpu = "h200-sxm",
            kernels: str | None = None, dtype: str | None = None, cache: str | None = None,
            distribution: str | None = None, no_gate: bool | None = None,
            set: Iterable[str] | None = None, **shape: int) -> Document:
    """The time of one kernel on one card, as predict("gemm", m=4096, n=7168, k=2048): what
    `moehub predict --json` prints."""
    said = _said({"KERNEL": kernel, "kernels": kernels, "dtype": dtype, "cache": cache,
                  "distribution": distribution, "no_gate": no_gate, "set": set,
                  "SHAPE": [f"{key}={value}" for key, value in shape.items()]})
    if isinstance(gpu, Gpu):
        return _moehub.predict(said, gpu)
    said["gpu"] = gpu
    return _moehub.predict(said, None)


def _listed(values: Any) -> list[Any]:
    single = isinstance(values, (str, os.PathLike, Routing))
    return [values] if single else list(values)
