"""Are objects what their names are, and do they travel?"""
import copy
import pickle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import moehub


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


def test_names_beside_objects_stay_names(command: Any) -> None:
    changes = {"system.moe-hub.fused_activation": True}
    answer = moehub.compare(["megatron-te", moehub.system("ideal"), "moe-hub"], gpus=2, tokens=64,
                            set=changes)
    assert answer == command(
        "compare", "--systems", "megatron-te,ideal,moe-hub", "--gpus", "2", "--tokens", "64",
        "--set", "system.moe-hub.fused_activation=true")


def test_a_recorded_layer(command: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    chosen = np.argsort(rng.random((96, 3, 8)), axis=2)[:, :, :2].astype(np.uint8)
    file = tmp_path / "trace.npy"
    np.save(file, chosen)
    by_command = command("run", "--gpus", "8", "--routing", str(file), "--layer", "2")
    assert moehub.run(gpus=8, routing=file, layer=2) == by_command
    array = moehub.routing(chosen.transpose(1, 0, 2), experts=8, name=str(file))
    assert moehub.run(gpus=8, routing=array, layer=2) == by_command


def test_machines_and_cards(command: Any) -> None:
    machine = moehub.machine("dgx-h100", gpus=4, set={"link.latency": "300 ns"})
    by_command = command("collective", "--op", "all_reduce", "--bytes", "1M", "--gpus", "4",
                         "--set", "link.latency=300 ns")
    answer = moehub.collective("all_reduce", bytes=1 << 20, machine=machine)
    for document in (answer, by_command):
        document.pop("wall_seconds")
    assert answer == by_command
    assert moehub.collective("all_reduce", bytes="1M", machine=machine, gpus=8).gpus == 8
    assert moehub.predict("gemm", gpu=moehub.gpu("b200"), m=64, n=64, k=64) == command(
        "predict", "gemm", "m=64", "n=64", "k=64", "--gpu", "b200")
    assert moehub.area(machine=moehub.machine("dgx-h800", gpus=4)).machine == "dgx-h800"


def test_place_gives_the_layout(command: Any, trace: Path, tmp_path: Path) -> None:
    asked = {"gpus": 4, "method": "eplb", "replicas": 4}
    written = tmp_path / "layout.json"
    command("place", "--profile", str(trace), "--gpus", "4", "--experts", "16", "--method", "eplb",
            "--replicas", "4", "--format", "json", "-o", str(written))
    answer = moehub.place(trace, experts=16, **asked)
    assert answer.layout.to_text("json") == written.read_text()
    assert answer.layout.experts_on.shape == (4, 4, 5)
    routing = moehub.routing(np.load(trace).transpose(1, 0, 2), experts=16)
    by_array = moehub.place([routing], **asked)
    assert by_array.layout == answer.layout
    assert pickle.loads(pickle.dumps(answer)).layout == answer.layout


def test_nouns_are_what_show_prints(command: Any) -> None:
    for noun in (moehub.machine("dgx-h100"), moehub.model("deepseek-v3"), moehub.gpu("h100-sxm"),
                 moehub.system("moe-hub")):
        printed = command("show", noun.source)
        printed.pop("schema")
        assert noun.to_dict() == printed


def test_nouns_are_readable() -> None:
    machine = moehub.machine("dgx-h800", gpus=4, link={"latency": "250 ns"})
    assert machine.gpus == 4 and machine.link.latency == 250_000
    assert machine.settings == ["link.latency=250 ns"] and "250 ns" in machine.to_toml()
    assert moehub.machine("dgx-h800", set={"link.latency": "250 ns"}).link.latency == 250_000
    assert moehub.model("mixtral-8x7b").top_k == 2
    assert moehub.system("moe-hub").name == "moe-hub"
    assert "dgx-h800" in moehub.presets("machines")
    assert {"moe-hub", "deepep"} <= {one.name for one in moehub.systems()}
    assert {"cais"} <= {one.name for one in moehub.systems("tp")}


def test_settings_mean_the_same_everywhere() -> None:
    changes = MappingProxyType({"link": MappingProxyType({"latency": np.str_("250 ns")}),
                                "gpu.sms": np.int64(100)})
    settings = ["link.latency=250 ns", "gpu.sms=100"]
    machine = moehub.machine("dgx-h800", set=changes)
    assert machine.settings == moehub.machine("dgx-h800", **changes).settings == settings
    assert moehub.run("ideal", gpus=2, tokens=64, set=changes).set == settings
    assert moehub.system("moe-hub", fused_activation=np.bool_(True)).settings == [
        "fused_activation=true"]


def copies(one: Any) -> Any:
    return copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))


def test_nouns_are_copied_and_pickled(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "dgx-h800"\n')
    nouns = (moehub.machine("dgx-h800", gpus=4, set=["link.latency=250 ns"]),
             moehub.machine(file), moehub.model("mixtral-8x7b", top_k=1), moehub.gpu("h200-sxm"),
             moehub.system("moe-hub"))
    file.unlink()  # other machines have none of it
    for noun in nouns:
        for other in copies(noun):
            assert other is not noun and other.settings == noun.settings
            assert other.to_toml() == noun.to_toml() and repr(other) == repr(noun)


def test_routings_are_copied_and_pickled(mixtral: moehub.Model) -> None:
    weights = np.array([[[0.25, 0.75]] * 8] * 2, np.float32)
    array = moehub.routing(np.array([[[0, 5]] * 8] * 2), experts=8, weights=weights, name="mine")
    for routing in (array, moehub.routing("zipf:1", model=mixtral, tokens=64, layers=3, seed=5)):
        for other in copies(routing):
            assert (other.chosen == routing.chosen).all() and other.seed == routing.seed
            assert (other.weights == routing.weights).all()
            assert repr(other) == repr(routing)


def test_layouts_are_copied_and_pickled() -> None:
    layout = moehub.layout([[0, 1, 2, 3, 4, -1], [4, 5, 6, 7, 0, 1]], experts=8, name="mine")
    for other in copies(layout):
        assert other == layout and other.name == "mine"
        assert other.layer_numbers == layout.layer_numbers
