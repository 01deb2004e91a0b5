"""What functions return, and the types of what they take."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from ._moehub import Forms, Gpu, LayerResult, Layout, Machine, Model, Routing, System

PathLike = Union[str, "os.PathLike[str]"]
MachineLike = Union[PathLike, Machine]
ModelLike = Union[PathLike, Model]
GpuLike = Union[PathLike, Gpu]
SystemLike = Union[PathLike, System]
RoutingLike = Union[PathLike, Routing]
LayoutLike = Union[PathLike, Layout]
Settings = Union[str, Iterable[str], Mapping[str, Any]]
Progress = Callable[[str, float], object]


class Record(dict[str, Any]):
    """A dict whose members are attributes, too: row["time_us"] is row.time_us."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no member {name!r}, but {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


class Result(Record):
    """What a question is answered with: a dict with the members of the program's --json, which are
    attributes, too. Printed it is the program's text, in notebooks its tables.

    Copies that come from other processes have no page, no trace and no simulated layers.
    """

    layout: Layout
    """The layout that place() found."""
    _forms: Forms

    def __str__(self) -> str:
        return self._forms.text()

    def __repr__(self) -> str:
        return self._forms.text().rstrip("\n")

    def _repr_html_(self) -> str:
        return self._forms.notebook()

    def to_csv(self, path: PathLike | None = None) -> str:
        """The main table as CSV, as text and into a file where one is named."""
        return self._forms.csv(path)

    def to_html(self, path: PathLike | None = None) -> str:
        """A page with charts and tables for any browser, as text and into a file where one is
        named; with time lines where timeline=True recorded them."""
        return self._forms.html(path)

    def to_trace(self, path: PathLike | None = None) -> str:
        """What the Perfetto UI opens, of a call with timeline=True; into a file where one is
        named."""
        return self._forms.trace(path)

    @property
    def simulated(self) -> list[LayerResult]:
        """Of compare() and run() the simulated layers in the order of their rows, with links,
        intervals, traffic and time lines as arrays."""
        return self._forms.simulated(self.get("sub_layers", self.get("results", [])))
