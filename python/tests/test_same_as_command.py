"""Is a function's dict what its command prints with --json?"""
from pathlib import Path
from typing import Any

import numpy as np

import moehub

SYSTEMS = ["ideal", "megatron-te", "moe-hub"]
SMALL = ["--gpus", "8", "--tokens", "64"]


def test_compare(command: Any) -> None:
    assert moehub.compare(SYSTEMS, gpus=8, tokens=64, routing="zipf:1", seed=7) == command(
        "compare", "--systems", ",".join(SYSTEMS), *SMALL, "--routing", "zipf:1", "--seed", "7")


def test_compare_all_that_can_run(command: Any) -> None:
    assert moehub.compare(gpus=8, tokens=64) == command("compare", *SMALL)


def test_compare_with_everything_changed(command: Any) -> None:
    answer = moehub.compare(
        ["moe-hub", "deepep"], gpus=4, tokens=128, replicas=4, replica_policy="least-loaded",
        pass_="backward", host="graph", fused_activation=True, page_rows=64, page_pool="64MiB",
        baseline="deepep", set=["link.latency=300 ns", "model.expert_ffn=2048"], verify=True)
    assert answer == command(
        "compare", "--systems", "moe-hub,deepep", "--gpus", "4", "--tokens", "128", "--replicas",
        "4", "--replica-policy", "least-loaded", "--pass", "backward", "--host", "graph",
        "--fused-activation", "--page-rows", "64", "--page-pool", "64MiB", "--baseline", "deepep",
        "--set", "link.latency=300 ns", "--set", "model.expert_ffn=2048", "--verify")


def test_objects_say_what_they_are(command: Any) -> None:
    machine = moehub.machine("dgx-h800", gpus=4, link={"latency": "300 ns"})
    model = moehub.model("mixtral-8x7b", expert_ffn=2048)
    routing = moehub.routing("normal:0.032", model=model, tokens=128, seed=3)
    answer = moehub.compare([moehub.system("moe-hub"), "ideal"], machine=machine, model=model,
                            routing=routing)
    assert answer == command(
        "compare", "--systems", "moe-hub,ideal", "--gpus", "4", "--tokens", "128", "--routing",
        "normal:0.032", "--seed", "3", "--set", "link.latency=300 ns", "--set",
        "model.expert_ffn=2048")


def test_run(command: Any) -> None:
    assert moehub.run("deepep", gpus=8, tokens=64, grain="packet") == command(
        "run", "--system", "deepep", *SMALL, "--grain", "packet")
    assert moehub.run(gpus=8, tokens=64) == command("run", *SMALL)


def test_tensor_parallel_layers(command: Any) -> None:
    assert moehub.compare(["ideal", "cais"], layer_type="tp", sublayer="all",
                          tokens=512) == command(
        "compare", "--layer-type", "tp", "--sublayer", "all", "--systems", "ideal,cais",
        "--tokens", "512")
    assert moehub.run(layer_type="tp", tokens=512) == command(
        "run", "--layer-type", "tp", "--tokens", "512")


def test_a_recorded_layer(command: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    chosen = np.argsort(rng.random((96, 3, 8)), axis=2)[:, :, :2].astype(np.uint8)
    file = tmp_path / "trace.npy"
    np.save(file, chosen)
    by_command = command("run", "--gpus", "8", "--routing", str(file), "--layer", "2")
    assert moehub.run(gpus=8, routing=file, layer=2) == by_command
    array = moehub.routing(chosen.transpose(1, 0, 2), experts=8, name=str(file))
    assert moehub.run(gpus=8, routing=array, layer=2) == by_command


def test_models(command: Any) -> None:
    assert moehub.time_model(["ideal", "moe-hub"], gpus=8, tokens=512, training=True) == command(
        "model", "--systems", "ideal,moe-hub", "--gpus", "8", "--tokens", "512", "--training")
    assert moehub.time_model(["ideal", "cais"], model="llama-7b", tokens=512) == command(
        "model", "--model", "llama-7b", "--systems", "ideal,cais", "--tokens", "512")


def test_plan(command: Any) -> None:
    assert moehub.plan(model="mixtral-8x7b", gpus=16, global_batch=32, fix="pp=2,tp=2,ep=4,mb=1",
                       top=3) == command(
        "plan", "--model", "mixtral-8x7b", "--gpus", "16", "--global-batch", "32", "--fix",
        "pp=2,tp=2,ep=4,mb=1", "--top", "3")
    assert moehub.plan(model="mixtral-8x7b", gpus=16, global_batch=32,
                       explain="tp=2,pp=2,ep=4") == command(
        "plan", "--model", "mixtral-8x7b", "--gpus", "16", "--global-batch", "32", "--explain",
        "tp=2,pp=2,ep=4")


def without(document: Any, *keys: str) -> Any:
    return {key: value for key, value in document.items() if key not in keys}


def test_place(command: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    chosen = np.argsort(rng.random((400, 4, 16)), axis=2)[:, :, :2].astype(np.uint16)
    file = tmp_path / "trace.npy"
    np.save(file, chosen)
    written = tmp_path / "layout.json"
    by_command = command("place", str(file), "--gpus", "4", "--experts", "16", "--method", "eplb",
                         "--replicas", "4", "--format", "json", "-o", str(written))
    answer, layout = moehub.place(file, gpus=4, experts=16, method="eplb", replicas=4)
    assert layout.to_text("json") == written.read_text()
    assert layout.experts_on.shape == (4, 4, 5)
    timed_or_written = ("search_seconds", "file", "format", "server")
    assert without(answer, *timed_or_written) == without(by_command, *timed_or_written)
    routing = moehub.routing(chosen.transpose(1, 0, 2), experts=16, name=str(file))
    by_array, same = moehub.place(routing, gpus=4, method="eplb", replicas=4)
    assert same == layout
    assert without(by_array, *timed_or_written) == without(by_command, *timed_or_written)


def test_collective(command: Any) -> None:
    by_command = command("collective", "--op", "all_reduce", "--bytes", "1M", "--gpus", "4",
                         "--set", "link.latency=300 ns")
    answer = moehub.collective("all_reduce", bytes="1M", gpus=4, set=["link.latency=300 ns"])
    machine = moehub.machine("dgx-h100", gpus=4, set=["link.latency=300 ns"])
    for one in (answer, moehub.collective("all_reduce", bytes=1 << 20, machine=machine)):
        assert without(one, "wall_seconds") == without(by_command, "wall_seconds")


def test_predict(command: Any) -> None:
    by_command = command("predict", "gemm", "m=4096", "n=7168", "k=2048", "--gpu", "b200",
                         "--dtype", "fp8")
    assert moehub.predict("gemm", gpu="b200", dtype="fp8", m=4096, n=7168, k=2048) == by_command
    assert moehub.predict("gemm", gpu=moehub.gpu("b200"), dtype="fp8", m=4096, n=7168,
                          k=2048) == by_command


def test_nouns(command: Any) -> None:
    for noun in (moehub.machine("dgx-h100"), moehub.model("deepseek-v3"), moehub.gpu("h100-sxm"),
                 moehub.system("moe-hub")):
        printed = command("show", noun.source)
        printed.pop("schema", None)
        assert noun.to_dict() == printed
