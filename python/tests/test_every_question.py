"""Does every function give what its command prints with --json, in all its forms?"""
import copy
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import moehub
from calls import CALLS, VOLATILE, Call, filled
from moehub import _functions


def stable(document: Any) -> Any:
    return {key: value for key, value in document.items() if key not in VOLATILE}


@pytest.fixture
def places(tmp_path: Path, trace: Path, parts: str) -> dict[str, str]:
    return {"folder": str(tmp_path), "trace": str(trace), "parts": parts}


def test_every_function_has_a_call() -> None:
    assert set(_functions.__all__) <= {call.function for call in CALLS}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call)[:60])
def test_the_same_as_the_command(call: Call, places: dict[str, str], command: Any,
                                 tmp_path: Path) -> None:
    by_command = command(*filled(call.command, places).split(";"))
    for file in tmp_path.iterdir():
        file.unlink()  # a sweep would go on with the command's
    result = getattr(moehub, call.function)(**filled(call.keywords, places))
    assert stable(result) == stable(by_command)
    assert isinstance(result, dict) and isinstance(result, Mapping)
    for key, value in by_command.items():
        if key not in VOLATILE and not hasattr(dict, key):
            assert getattr(result, key) == value


@pytest.mark.parametrize("call", {call.function: call for call in CALLS}.values(), ids=str)
def test_all_forms(call: Call, places: dict[str, str], tmp_path: Path) -> None:
    result = getattr(moehub, call.function)(**filled(call.keywords, places))
    assert len(str(result)) > 20 and repr(result) == str(result).rstrip("\n")
    assert "\x1b" not in str(result)
    html = result._repr_html_()
    assert html == "" or html.lstrip().startswith("<")
    assert result.to_csv(tmp_path / "a.csv") == (tmp_path / "a.csv").read_text()
    page = result.to_html(tmp_path / "a.html")
    assert page.startswith("<!DOCTYPE html>") and f"moehub.{call.function}(" in page
    assert (tmp_path / "a.html").read_text() == page
    for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(other) is moehub.Result and other == result
        assert str(other) == str(result) and other._repr_html_() == html
        assert other.to_csv() == result.to_csv()
    assert json.loads(json.dumps(result)) == result


def test_members_are_attributes() -> None:
    result = moehub.run("ideal", gpus=2, tokens=64)
    assert result.results[0].time_us == result["results"][0]["time_us"]
    assert result.schema.command == "run" and "results" in dir(result)
    with pytest.raises(AttributeError, match="nothing"):
        result.nothing
    with pytest.raises(AttributeError):
        result.results[0].nothing


def test_a_copy_from_elsewhere_has_no_page() -> None:
    other = pickle.loads(pickle.dumps(moehub.run("ideal", gpus=2, tokens=64)))
    with pytest.raises(moehub.InputError, match="to_html: found a copy from another process"):
        other.to_html()
    assert other.simulated == []


def test_sweeps_without_a_file_leave_none(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = moehub.sweep(sweep={"tokens": [64, 128]}, systems="ideal", gpus=2)
    assert [row.tokens for row in result.results] == [64, 128]
    assert result.database is None and "Results:" not in str(result)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_has_its_points() -> None:
    result = moehub.sweep(sweep={"tokens": [64, 128]}, systems="ideal", gpus=2, dry_run=True)
    assert [point.words for point in result.points] == ["tokens=64, ideal", "tokens=128, ideal"]
    assert all(point.refused is None for point in result.points)


def test_values_with_commas_are_swept() -> None:
    routings = ["zipf:1,transition:0.5", "uniform"]
    result = moehub.sweep(sweep={"routing": routings}, systems="ideal", gpus=2, tokens=64)
    assert [row.routing for row in result.results] == routings


def test_one_value_with_a_comma_is_one() -> None:
    routings = ["zipf:1,transition:0.5"]
    result = moehub.sweep(sweep={"routing": routings}, systems="ideal", gpus=2, tokens=64)
    assert [row.routing for row in result.results] == routings


@pytest.mark.parametrize("seeds, drawn", [([5], [5]), ((3,), [3]), ([5, 7], [5, 7]), (2, [1, 2])])
def test_a_list_of_one_seed_is_no_count(seeds: Any, drawn: list[int]) -> None:
    result = moehub.sweep(sweep={"tokens": [64]}, systems="ideal", gpus=2, seeds=seeds)
    assert [row.seed for row in result.results] == drawn


def test_a_sweep_of_a_comparison(tmp_path: Path) -> None:
    result = moehub.compare("ideal", gpus=2, sweep={"tokens": [64, 128]},
                            output=tmp_path / "a.sqlite")
    assert result.points == 2 and (tmp_path / "a.sqlite").exists()


def test_progress_is_told() -> None:
    told: list[tuple[str, float]] = []
    moehub.sweep(sweep={"tokens": [2048, 4096]}, systems="moe-hub", grain="packet", seeds=2,
                 progress=lambda what, share: told.append((what, share)))
    assert told and all(0 <= share <= 1 for _, share in told)
    assert {what for what, _ in told} <= {"checking", "simulating"}


def test_a_single_simulation_is_one_piece() -> None:
    told: list[str] = []
    moehub.run("ideal", tokens=4096, grain="packet", progress=lambda what, _: told.append(what))
    said = " ".join((moehub.run.__doc__ or "").split())
    assert not told and "progress: called after pieces of the work" in said


def test_what_progress_raises_ends_the_call() -> None:
    def enough(what: str, share: float) -> None:
        raise StopIteration("enough")
    with pytest.raises(StopIteration, match="enough"):
        moehub.sweep(sweep={"tokens": "65536..1048576+65536"}, systems="moe-hub", grain="packet",
                     threads=1, progress=enough)
