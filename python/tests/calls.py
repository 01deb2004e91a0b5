"""A small call of every function that answers a question, and the same as a command line.

`{folder}` stands for a folder of the test's own; TRACE.npy, PART-1.sqlite and such are made by
conftest.py.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Call(NamedTuple):
    function: str
    keywords: dict[str, Any]
    command: str  # words with ; between

    def __str__(self) -> str:
        return f"{self.function} {self.command}"


CALLS = [
    Call("compare", {"systems": ["ideal", "megatron-te", "moe-hub"], "gpus": 8, "tokens": 64,
                     "routing": "zipf:1", "seed": 7},
         "compare;--systems;ideal,megatron-te,moe-hub;--gpus;8;--tokens;64;--routing;zipf:1;"
         "--seed;7"),
    Call("compare", {"gpus": 4, "tokens": 64}, "compare;--gpus;4;--tokens;64"),
    Call("compare", {"systems": "moe-hub,deepep", "gpus": 4, "tokens": 128, "replicas": 4,
                     "replica_policy": "least-loaded", "pass_": "backward", "host": "graph",
                     "fused_activation": True, "page_rows": 64, "page_pool": 1 << 26,
                     "baseline": "deepep", "set": {"link.latency": "300 ns",
                                                   "model": {"expert_ffn": 2048}}, "verify": True},
         "compare;--systems;moe-hub,deepep;--gpus;4;--tokens;128;--replicas;4;--replica-policy;"
         "least-loaded;--pass;backward;--host;graph;--fused-activation;--page-rows;64;--page-pool;"
         "64MiB;--baseline;deepep;--set;link.latency=300 ns;--set;model.expert_ffn=2048;--verify"),
    Call("compare", {"systems": ["ideal", "cais"], "layer_type": "tp", "sublayer": "all",
                     "tokens": 512},
         "compare;--layer-type;tp;--sublayer;all;--systems;ideal,cais;--tokens;512"),
    Call("run", {"system": "deepep", "gpus": 8, "tokens": 64, "grain": "packet"},
         "run;--system;deepep;--gpus;8;--tokens;64;--grain;packet"),
    Call("run", {"layer_type": "tp", "tokens": 512}, "run;--layer-type;tp;--tokens;512"),
    Call("gain", {"models": ["mixtral-8x7b"], "gpus": 4, "tokens": 64},
         "gain;--models;mixtral-8x7b;--gpus;4;--tokens;64"),
    Call("time_model", {"systems": ["ideal", "moe-hub"], "gpus": 8, "tokens": 512,
                        "training": True},
         "model;--systems;ideal,moe-hub;--gpus;8;--tokens;512;--training"),
    Call("time_model", {"systems": ["ideal", "cais"], "model": "llama-7b", "tokens": 512},
         "model;--model;llama-7b;--systems;ideal,cais;--tokens;512"),
    Call("time_model", {"decode": True, "gpus": 8, "batch_per_gpu": 16, "context": 512},
         "model;--decode;--gpus;8;--batch-per-gpu;16;--context;512"),
    Call("time_model", {"decode": True, "find": "batch", "tpot": "50 ms", "gpus": 8, "context": 512},
         "model;--decode;--find;batch;--tpot;50 ms;--gpus;8;--context;512"),
    Call("time_model", {"prefill": True, "gpus": 8, "prompt": 512, "batch_per_gpu": [2, 4]},
         "model;--prefill;--gpus;8;--prompt;512;--batch-per-gpu;2,4"),
    Call("sweep", {"sweep": {"tokens": [64, 128], "link.latency": ["100 ns", "1 us"]},
                   "systems": ["ideal", "moe-hub"], "gpus": 2, "seeds": 2,
                   "output": "{folder}/sweep.sqlite"},
         "sweep;--sweep;tokens=64,128;--sweep;link.latency=100 ns,1 us;--systems;ideal,moe-hub;"
         "--gpus;2;--seeds;2;-o;{folder}/sweep.sqlite"),
    Call("merge", {"target": "{folder}/all.sqlite", "sources": ["{parts}-1", "{parts}-2"]},
         "merge;{folder}/all.sqlite;{parts}-1;{parts}-2"),
    Call("area", {"set": {"moe_hub.rat_entries": 32768}}, "area;--set;moe_hub.rat_entries=32768"),
    Call("collective", {"op": "all_reduce", "bytes": "1M", "gpus": 4,
                        "set": ["link.latency=300 ns"]},
         "collective;--op;all_reduce;--bytes;1M;--gpus;4;--set;link.latency=300 ns"),
    Call("predict", {"kernel": "gemm", "m": 4096, "n": 7168, "k": 2048, "gpu": "b200",
                     "dtype": "fp8", "explain": True},
         "predict;gemm;m=4096;n=7168;k=2048;--gpu;b200;--dtype;fp8;--explain"),
    Call("validate", {"file": ROOT / "validation/published_moe_comm.csv", "above": "100 us"},
         f"validate;{ROOT}/validation/published_moe_comm.csv;--above;100 us"),
    Call("show", {"name": "dgx-h100", "set": {"link.latency": "1 us"}},
         "show;dgx-h100;--set;link.latency=1 us"),
    Call("lines", {"system": "moe-hub"}, "lines;moe-hub"),
    Call("reproduce", {}, "reproduce"),
    Call("plan", {"model": "mixtral-8x7b", "gpus": 16, "global_batch": 32, "top": 3,
                  "fix": {"pp": 2, "tp": 2, "ep": 4, "mb": 1}},
         "plan;--model;mixtral-8x7b;--gpus;16;--global-batch;32;--top;3;--fix;pp=2,tp=2,ep=4,mb=1"),
    Call("plan", {"model": "mixtral-8x7b", "gpus": 16, "global_batch": 32,
                  "explain": {"tp": 2, "pp": 2, "ep": 4}},
         "plan;--model;mixtral-8x7b;--gpus;16;--global-batch;32;--explain;tp=2,pp=2,ep=4"),
    Call("place", {"profile": ["{trace}"], "gpus": 4, "experts": 16, "method": "eplb",
                   "replicas": 4, "output": "{folder}/layout.json", "format": "json"},
         "place;--profile;{trace};--gpus;4;--experts;16;--method;eplb;--replicas;4;--format;json;"
         "-o;{folder}/layout.json"),
    Call("profile", {"files": ["{trace}"], "gpus": 4}, "profile;{trace};--gpus;4"),
]

# What two runs differ in.
VOLATILE = {"wall_seconds", "search_seconds"}


def filled(value: Any, places: dict[str, str]) -> Any:
    """With {folder} and other places in texts."""
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace("{" + name + "}", place)
        return value
    if isinstance(value, list):
        return [filled(one, places) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, places) for key, one in value.items()}
    return value
