"""Does bad input end with the command's one line?"""
from typing import Any, Callable

import numpy as np
import pytest

import moehub


def line_of(call: Callable[[], Any]) -> str:
    with pytest.raises(moehub.InputError) as raised:
        call()
    assert isinstance(raised.value, ValueError)
    return str(raised.value)


def test_the_command_says_the_same(complaint: Any) -> None:
    assert line_of(lambda: moehub.compare(gpus=0)) == complaint("compare", "--gpus", "0")
    assert line_of(lambda: moehub.compare(["moe-hbu"])) == complaint(
        "compare", "--systems", "moe-hbu")
    assert line_of(lambda: moehub.machine("dgx-h10")) == complaint(
        "run", "--machine", "dgx-h10")
    assert line_of(lambda: moehub.run(set=["link.latancy=3 ns"])) == complaint(
        "run", "--set", "link.latancy=3 ns")
    assert line_of(lambda: moehub.run(routing="zipf")) == complaint("run", "--routing", "zipf")
    assert line_of(lambda: moehub.predict("gemm", m=1)) == complaint("predict", "gemm", "m=1")


def test_the_command_says_the_same_of_plans(complaint: Any) -> None:
    for fix in ("tp=3", {"tp": 3}):
        assert line_of(lambda: moehub.plan(fix=fix, gpus=16)) == complaint(
            "plan", "--fix", "tp=3", "--gpus", "16")


def test_the_command_says_the_same_of_placing(complaint: Any) -> None:
    assert line_of(lambda: moehub.place([])) == complaint("place")


def test_keywords_that_cannot_stand_together() -> None:
    assert line_of(lambda: moehub.compare("ideal", tokens=64, tokens_per_gpu=1024)) == (
        "--tokens-per-gpu excludes --tokens")
    assert line_of(lambda: moehub.run(page_pool="1MiB")) == "--page-pool requires --page-rows"
    assert line_of(lambda: moehub.time_model(attention_system="cais")) == (
        "--attention-system requires --attention-tp")


@pytest.mark.parametrize("keywords, line", [
    ({"verify": "no"}, "verify: found 'no', allowed: True, False"),
    ({"tokens": object}, "tokens: found <class 'object'>, allowed: texts, numbers, paths, lists "
                         "and dicts of them"),
    ({"machine": moehub.model("mixtral-8x7b")}, "--machine: found an object of another kind"),
    ({"host": moehub.model("mixtral-8x7b")}, "--host: found an object, allowed: a name"),
    ({"pass_": "back"}, '--pass: found "back", allowed: forward, backward; did you mean '
                        '"backward"?'),
    ({"tokens": 2**70}, '--tokens: found "1180591620717411303424", allowed: a whole number from 1 '
                        'to 16777216'),
])
def test_values_that_are_no_values(keywords: Any, line: str) -> None:
    assert line_of(lambda: moehub.run(**keywords)) == line


class ItsOwnItem:
    def item(self) -> Any:
        return self

    def __repr__(self) -> str:
        return "itself"


def test_what_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["a"] = endless
    for call in (lambda: moehub.run("ideal", set=endless),
                 lambda: moehub.machine("dgx-h800", set=endless),
                 lambda: moehub.machine("dgx-h800", a=endless)):
        assert line_of(call).startswith("set: found dicts in dicts at a.a.a.")
    assert line_of(lambda: moehub.run("ideal", tokens=ItsOwnItem())).startswith(
        "tokens: found itself, allowed: ")


WHOLE = "allowed: a whole number"
PLAIN = "allowed: texts, numbers, paths, lists and dicts of them"
MIXTRAL = "mixtral-8x7b"


@pytest.mark.parametrize("call, line", [
    (lambda: moehub.run(routing=np.zeros((8, 2), int)),
     "routing: found an array, allowed: moehub.routing(array, experts=…)"),
    (lambda: moehub.place([np.zeros((8, 2), int)]),
     "profile: found an array, allowed: moehub.routing(array, experts=…)"),
    (lambda: moehub.run(layout=np.zeros((8, 2), int)),
     "layout: found an array, allowed: moehub.layout(array, experts=…)"),
    (lambda: moehub.run(gpus=np.zeros((8, 2), int)), f"gpus: found array([0, 0]), {PLAIN}"),
    (lambda: moehub.run(gpus=bytearray(b"4")), f"gpus: found bytearray(b'4'), {PLAIN}"),
    (lambda: moehub.layout([[0]], experts=2**31),
     f'experts: found "2147483648", {WHOLE} from 1 to 65535'),
    (lambda: moehub.layout([[0]], experts=4, name=3),  # type: ignore[arg-type]
     "name: found 3, allowed: a text or a path"),
    (lambda: moehub.layout([[0, 1], [2]], experts=4), "layout: found no array: "),
    (lambda: moehub.layout(np.array([[2**64 - 1]], np.uint64), experts=4),
     "layout: found expert 18446744073709551615, allowed: 0 to 3, or -1 for an empty slot"),
    (lambda: moehub.layout(np.zeros((1 << 20, 1 << 20, 0), int), experts=4),
     "layout: found 1048576 layers of 1048576 GPUs with 0 slots, allowed: 1 to 16777216 slots"),
    (lambda: moehub.routing("uniform", model=MIXTRAL, seed=-1),
     f'seed: found "-1", {WHOLE}, 0 or more'),
    (lambda: moehub.routing("uniform", model=MIXTRAL, tokens=float("nan")),  # type: ignore
     f'tokens: found "nan", {WHOLE}, 1 or more'),
    (lambda: moehub.routing("uniform", model=MIXTRAL, tokens=1, layers=2**30),
     f'layers: found "1073741824", {WHOLE} from 1 to 1000'),
    (lambda: moehub.machine("dgx-h800", set=[1]), "--set: expected KEY=VALUE"),  # type: ignore
    (lambda: moehub.machine(3), "name: found 3, allowed: a text or a path"),  # type: ignore
    (lambda: moehub.presets("model"), 'kind: found "model", allowed: machines, models, '),
    (lambda: moehub.presets(None),  # type: ignore[arg-type]
     "kind: found None, allowed: a text or a path"),
])
def test_values_of_wrong_types_and_sizes(call: Callable[[], Any], line: str) -> None:
    assert line_of(call).startswith(line)


def test_a_sweep_loads_by_name() -> None:
    for call in (lambda: moehub.sweep(sweep={"tokens": [64]}, machine=moehub.machine("dgx-h800")),
                 lambda: moehub.compare([moehub.system("ideal")], sweep={"tokens": [64]})):
        assert "found an object in a sweep, allowed: a name or file" in line_of(call)


def test_a_trace_wants_a_time_line() -> None:
    assert line_of(lambda: moehub.run(gpus=2, tokens=64, trace_rows=3)) == (
        "--trace-rows requires --trace")
    assert "allowed: of compare() and run() with timeline=True" in line_of(
        lambda: moehub.run(gpus=2, tokens=64).to_trace())


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path: Any) -> None:
    assert "cannot be written" in line_of(
        lambda: moehub.sweep(sweep={"tokens": [1 << 24]}, output=tmp_path / "no/a.sqlite"))


def test_expert_ids_do_not_wrap() -> None:
    many = np.array([[70_000, 6_000]], np.int64)
    assert line_of(lambda: moehub.routing(many, experts=100_000)) == (
        'experts: found "100000", allowed: a whole number from 1 to 65535')
    assert line_of(lambda: moehub.routing(many, experts=65_535)) == (
        "routing: found expert 70000, allowed: 0 to 65534")
    assert moehub.routing(many - 5_000, experts=65_535).chosen[0, 0, 0] == 65_000
    assert "found expert 65536" in line_of(lambda: moehub.layout([[65_536]], experts=4))


def test_sizes_of_machines(complaint: Any) -> None:
    assert line_of(lambda: moehub.machine("dgx-h800", gpus=2**40)) == (
        'gpus: found "1099511627776", allowed: a whole number, 1 or more')
    assert "dgx-h800: found 99 GPUs" in line_of(lambda: moehub.machine("dgx-h800", gpus=99))


@pytest.mark.parametrize("array, line", [
    (np.zeros((4, 2), float),
     "routing: found an array of float64, allowed: whole numbers"),
    (np.zeros(4, np.uint16),
     "routing: found shape (4), allowed: (layers, tokens, top_k) or (tokens, top_k)"),
    (np.zeros((0, 2), np.uint16),
     "routing: found shape (0, 2), allowed: 1 to 16777216 of each"),
    (np.array([[0, 8]]), "routing: found expert 8, allowed: 0 to 7"),
    (np.array([[-1, 3]]), "routing: found expert -1, allowed: 0 to 7"),
    (np.array([[0, 9]], np.uint16),
     "routing: token 0 of layer 0: found expert 9, allowed are 2 different ones of 0 to 7"),
    (np.array([[3, 3]], np.uint16),
     "routing: token 0 of layer 0: found expert 3 twice, allowed are 2 different ones of 0 to 7"),
])
def test_arrays_that_are_no_routing(array: Any, line: str) -> None:
    assert line_of(lambda: moehub.routing(array, experts=8)) == line


def test_a_routing_of_another_model(mixtral: moehub.Model) -> None:
    routing = moehub.routing(np.array([[0, 1, 2]] * 8, np.uint16), experts=64)
    assert line_of(lambda: moehub.run(model=mixtral, gpus=8, routing=routing)) == (
        "routing: found top-3 of 64 experts, allowed: top-2 of 8, as mixtral-8x7b has")


def test_layouts_that_cannot_be() -> None:
    assert line_of(lambda: moehub.layout([[0, 1], [2, 8]], experts=8)) == (
        "layout: found expert 8, allowed: 0 to 7, or -1 for an empty slot")
    assert "expert" in line_of(lambda: moehub.layout([[0, 1], [2, 2]], experts=4))


def test_a_noun_has_its_settings_already() -> None:
    machine = moehub.machine("dgx-h800", gpus=4)
    assert line_of(lambda: moehub.run(machine=machine, set=["link.latency=3 us"])) == (
        '--set: found "link.latency=3 us" beside a machine that is given, allowed: where it is '
        "made")


def test_an_attribute_that_is_not_there() -> None:
    with pytest.raises(AttributeError):
        moehub.machine("dgx-h100").nothing


def test_what_is_refused_stays_writable() -> None:
    chosen, weights = np.array([[3, 3]], np.uint16), np.ones((1, 2), np.float32)
    line_of(lambda: moehub.routing(chosen, experts=8, weights=weights))
    assert chosen.flags.writeable and weights.flags.writeable
    chosen[0, 1] = 4
    moehub.routing(chosen, experts=8, weights=weights)
    assert not chosen.flags.writeable and not weights.flags.writeable
