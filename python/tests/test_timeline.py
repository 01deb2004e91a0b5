"""Does timeline=True give what happened, of MoE and of tensor-parallel layers?"""
import json
import re
from typing import Any

import numpy as np
import pytest

import moehub


@pytest.mark.parametrize("asked", [
    {"system": "moe-hub", "tokens": 256},
    {"system": "cais", "layer_type": "tp", "tokens": 256},
])
def test_kernels_units_and_traffic(asked: dict[str, Any]) -> None:
    result = moehub.simulate(**asked, timeline=True)
    assert moehub.simulate(**asked).timeline is None
    timeline = result.timeline
    assert timeline is not None
    spans = timeline["spans"]
    assert len(spans["gpu"]) > 0 and len(spans["gpu"]) == len(spans["end_ps"])
    assert (spans["begin_ps"] <= spans["end_ps"]).all()
    assert spans["end_ps"].max() <= result.time_ps
    assert set(spans["kernel"]) <= set(range(len(timeline["kernels"])))
    assert sum(int(series["values"].sum()) for series in timeline["sms"]) > 0
    gpus = 8
    assert result.traffic.shape == (gpus, gpus)
    assert result.traffic.sum() == result.to_dict().payload_bytes > 0
    assert np.trace(result.traffic) == 0


def test_pages_and_traces_over_time() -> None:
    asked = {"systems": ["ideal", "moe-hub"], "gpus": 4, "tokens": 256}
    plain, recorded = moehub.compare(**asked), moehub.compare(**asked, timeline=True)
    assert recorded == plain
    assert len(recorded.to_html()) > len(plain.to_html())
    trace = json.loads(recorded.to_trace())
    assert {"moe-hub", "ideal"} <= set(re.findall(r"moe-hub|ideal", json.dumps(trace)))
    assert [one.system for one in recorded.simulated] == ["ideal", "moe-hub"]
    assert [one.to_dict() for one in recorded.simulated] == recorded.results
    model = moehub.time_model("moe-hub", gpus=4, tokens=256, timeline=True)
    assert len(model.to_html()) > len(moehub.time_model("moe-hub", gpus=4, tokens=256).to_html())


def test_rows_that_a_trace_follows() -> None:
    result = moehub.run(gpus=2, tokens=64, timeline=True, trace_rows=3)
    assert len(result.simulated[0].timeline["rows"]) == 3


def test_sub_layers_have_their_rows() -> None:
    result = moehub.compare(["ideal", "cais"], layer_type="tp", sublayer="all", tokens=256)
    rows = [one.to_dict() for one in result.simulated]
    assert rows == result.sub_layers and len(rows) == 8
    assert [one.time_us for one in result.simulated] == [row.time_us for row in rows]


def test_a_version() -> None:
    assert moehub.__version__.count(".") == 2
