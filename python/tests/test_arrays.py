"""Are arrays taken and given without copies, and right?"""
import gc

import numpy as np
import pytest

import moehub


def drawn(layers: int = 2, tokens: int = 64, experts: int = 8) -> np.ndarray:
    rng = np.random.default_rng(3)
    order = np.argsort(rng.random((layers, tokens, experts)), axis=2)
    return np.ascontiguousarray(order[:, :, :2].astype(np.uint16))


def test_uint16_in_c_order_is_used_where_it_lies() -> None:
    array = drawn()
    routing = moehub.routing(array, experts=8)
    assert np.shares_memory(routing.chosen, array)
    assert routing.chosen.__array_interface__["data"] == (array.ctypes.data, True)
    assert not array.flags.writeable and not routing.chosen.flags.writeable
    with pytest.raises(ValueError):
        array[0, 0, 0] = 1


def test_weights_are_used_where_they_lie() -> None:
    weights = np.full((2, 64, 2), 0.5, np.float32)
    routing = moehub.routing(drawn(), experts=8, weights=weights)
    assert np.shares_memory(routing.weights, weights)


@pytest.mark.parametrize("change", [
    lambda array: array.astype(np.int64), lambda array: array.astype(np.uint8),
    lambda array: np.asfortranarray(array), lambda array: array.tolist()])
def test_others_are_copied_and_stay_as_they_are(change) -> None:  # type: ignore
    other = change(drawn())
    routing = moehub.routing(other, experts=8)
    assert (routing.chosen == drawn()).all()
    if isinstance(other, np.ndarray):
        assert other.flags.writeable and not np.shares_memory(routing.chosen, other)


def test_memory_lives_as_long_as_anyone_looks() -> None:
    routing = moehub.routing(drawn(), experts=8)
    chosen = routing.chosen
    del routing
    gc.collect()
    assert (chosen == drawn()).all()


def test_the_same_routing_gives_the_same_layer(mixtral: moehub.Model) -> None:
    generated = moehub.routing("zipf:1", model=mixtral, tokens=64, layers=3, seed=5)
    assert generated.seed == 5 and generated.chosen.shape == (3, 64, 2)
    copied = moehub.routing(generated.chosen, experts=8, weights=generated.weights)
    times = {moehub.simulate("moe-hub", model=mixtral, gpus=8, routing=one, layer=2).time_ps
             for one in (generated, copied)}
    assert len(times) == 1


def test_links_and_intervals(mixtral: moehub.Model) -> None:
    result = moehub.simulate("deepep", model=mixtral, gpus=8, tokens=64)
    assert len(result.links) > 0
    for link in result.links:
        assert link["bins"].dtype == np.int64 and not link["bins"].flags.writeable
        assert abs(int(link["bins"].sum()) - link["busy_ps"]) <= max(1, link["busy_ps"] // 100)
    assert (result.intervals["end_ps"] > result.intervals["begin_ps"]).all()
    assert result.intervals["end_ps"].max() <= result.time_ps
    assert result.timeline is None and result.traffic is None


def test_a_result_has_its_commands_numbers() -> None:
    result = moehub.simulate("moe-hub", gpus=8, tokens=64)
    row = moehub.run("moe-hub", gpus=8, tokens=64)["results"][0]
    assert result.to_dict() == row and result.time_us == row["time_us"]


def test_layouts() -> None:
    standing = [[0, 2, 4, 6], [1, 3, 5, 7]]
    layout = moehub.layout(standing, experts=8)
    assert layout.experts_on.tolist() == [standing]
    answer = moehub.run("moe-hub", gpus=2, tokens=64, layout=layout)
    assert answer["layout"]["file"] == "array"
    assert '"physical_to_logical_map"' in layout.to_text("sglang")


def test_copies_of_experts() -> None:
    layout = moehub.layout([[0, 1, 2, 3, 4, -1], [4, 5, 6, 7, 0, 1]], experts=8)
    assert moehub.run("moe-hub", gpus=2, tokens=64, layout=layout)["replicas"] == 3
