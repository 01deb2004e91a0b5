"""What moehub's Python package calls; use that."""
from typing import Any

import numpy as np
import numpy.typing as npt

from ._results import PathLike, Record, Settings

__version__: str


class InputError(ValueError):
    """Bad input: one line that says what was found and what is allowed."""

class _Noun:
    source: str
    settings: list[str]
    def to_dict(self) -> Record: ...
    def to_toml(self) -> str: ...
    def __getattr__(self, key: str) -> Any: ...

class Machine(_Noun):
    """GPUs, links, switches, nodes and NICs."""
    @staticmethod
    def load(source: PathLike, set: Settings, changes: dict[str, Any],
             gpus: int | None) -> Machine: ...
    gpus: int

class Model(_Noun):
    """Shape of a transformer."""
    @staticmethod
    def load(source: PathLike, set: Settings, changes: dict[str, Any]) -> Model: ...

class Gpu(_Noun):
    """A card and its constants."""
    @staticmethod
    def load(source: PathLike, set: Settings, changes: dict[str, Any]) -> Gpu: ...

class System(_Noun):
    """How a layer is executed."""
    @staticmethod
    def load(source: PathLike, set: Settings, changes: dict[str, Any]) -> System: ...

class Routing:
    """For every layer and token its experts and their weights."""
    chosen: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float32]
    experts: int
    top_k: int
    layers: int
    tokens: int
    name: str
    seed: int | None

class Layout:
    """Which GPU holds which experts, for every MoE layer."""
    experts_on: npt.NDArray[np.int32]
    gpus: int
    experts: int
    layers: int
    layer_numbers: list[int]
    name: str
    def to_text(self, format: str = "sglang") -> str: ...

class LayerResult:
    """A simulated layer."""
    system: str
    time_us: float
    time_ps: int
    links: list[dict[str, Any]]
    intervals: dict[str, npt.NDArray[np.int64]]
    traffic: npt.NDArray[np.int64] | None
    timeline: dict[str, Any] | None
    def to_dict(self) -> Record: ...

class Forms:
    """An answer as text, CSV, page and trace."""
    def text(self, path: PathLike | None = None) -> str: ...
    def notebook(self, path: PathLike | None = None) -> str: ...
    def csv(self, path: PathLike | None = None) -> str: ...
    def html(self, path: PathLike | None = None) -> str: ...
    def trace(self, path: PathLike | None = None) -> str: ...
    def simulated(self, rows: list[Record]) -> list[LayerResult]: ...

def ask(function: str, keywords: dict[str, Any]) -> object: ...
def questions() -> list[dict[str, Any]]: ...
def presets(kind: str) -> list[str]: ...
def systems(tp: bool) -> list[Record]: ...
def routing_from_array(array: npt.NDArray[Any], experts: int, weights: npt.ArrayLike | None,
                       name: str) -> Routing: ...
def generate_routing(text: str, model: Model, tokens: int, layers: int, seed: int) -> Routing: ...
def read_routing(file: str, experts: int) -> Routing: ...
def layout_from_array(array: npt.NDArray[Any], experts: int, name: str) -> Layout: ...
