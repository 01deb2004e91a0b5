"""Does timeline=True give what happened, of MoE and of tensor-parallel layers?"""
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
    assert result.traffic.sum() == result.to_dict()["traffic_bytes"]["payload"] > 0
    assert np.trace(result.traffic) == 0


def test_a_version() -> None:
    assert moehub.__version__.count(".") == 2
