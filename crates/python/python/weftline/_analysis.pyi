"""The native module of analyses: see crates/pyanalysis/src."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Optional, Union, final

from typing_extensions import Self

__all__ = ["Error", "Report", "Run", "Stream", "Table", "VERSION", "event_columns", "presets", "views"]

VERSION: Final[str]

class Error(Exception):
    """A run cannot be analysed; the message says why and what to do."""

@final
class Run:
    """An opened run."""

    def __new__(
        cls,
        paths: list[str],
        *,
        groups: list[str] = ...,
        index: bool = True,
        threads: Optional[int] = None,
        progress: Optional[Callable[[str, int, int], object]] = None,
    ) -> Self: ...
    @property
    def title(self) -> str:
        """What was named."""
    def report(
        self,
        *,
        preset: Optional[str] = None,
        views: list[str] = ...,
        time: Union[int, float, str, timedelta, None] = None,
        where: Optional[str] = None,
        from_: Union[int, float, str, timedelta, None] = None,
        to: Union[int, float, str, timedelta, None] = None,
    ) -> Report:
        """What `weft report` shows."""
    def view(
        self,
        view: str,
        *,
        preset: Optional[str] = None,
        layer: Optional[str] = None,
        time: Union[int, float, str, timedelta, None] = None,
        where: Optional[str] = None,
        from_: Union[int, float, str, timedelta, None] = None,
        to: Union[int, float, str, timedelta, None] = None,
    ) -> Table:
        """A view of one layer, or of all layers side by side."""
    def metrics(self, views: list[str], *, time: Union[int, float, str, timedelta, None] = None, where: Optional[str] = None) -> Table:
        """Events grouped by views, category, operation and name, from which views are made."""
    def profiles(self, *, time: Union[int, float, str, timedelta, None] = None, period: Union[int, float, str, timedelta, None] = None) -> Table:
        """Totals of DFTracer's aggregation."""
    def system(self, *, time: Union[int, float, str, timedelta, None] = None) -> Table:
        """Samples of hosts per time bucket."""
    def events(
        self,
        *,
        columns: Optional[list[str]] = None,
        where: Optional[str] = None,
        from_: Union[int, float, str, timedelta, None] = None,
        to: Union[int, float, str, timedelta, None] = None,
    ) -> Stream:
        """Events, as a stream of batches."""
    def samples(
        self,
        *,
        where: Optional[str] = None,
        from_: Union[int, float, str, timedelta, None] = None,
        to: Union[int, float, str, timedelta, None] = None,
    ) -> Stream:
        """Samples of hosts and processes, one row per value, as a stream of batches."""
    def sql(self, program: Union[str, os.PathLike[str]], query: str) -> Stream:
        """The result of a query by `weft-sql`."""
    def info(self) -> dict[str, Any]:
        """What the run holds, and the state of its index."""

@final
class Report:
    """What `weft report` shows of a run."""

    @property
    def title(self) -> str:
        """What was analysed."""
    @property
    def job(self) -> dict[str, Any]:
        """Properties of the whole job by name."""
    @property
    def sections(self) -> dict[str, Table]:
        """The tables by name."""
    @property
    def findings(self) -> list[dict[str, Any]]:
        """What is wrong, the worst first."""
    @property
    def skipped(self) -> list[str]:
        """Rules that could not be judged, and why."""
    @property
    def text(self) -> str:
        """As `weft report` prints it."""
    @property
    def html(self) -> str:
        """A self-contained HTML page."""
    def to_json(self) -> str:
        """As `weft report --json` prints it."""
    def _repr_html_(self) -> str:
        """The page in a frame: its styles are not those of the notebook."""

@final
class Table:
    """A table in memory: columns by name, values may be `None`. pyarrow, pandas, Polars and DuckDB take it as it is."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def units(self) -> dict[str, str]:
        """What each column measures, by name: `s`, `ns`, `bytes`, `bytes/s`, `1/s`, `count`, `share`, `percent`, `id`, `number` …"""
    def __len__(self) -> int: ...
    def __contains__(self, column: str, /) -> bool: ...
    def __getitem__(self, column: str, /) -> list[Any]: ...
    def rows(self) -> list[dict[str, Any]]:
        """The rows, each as a dictionary."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream interface."""
    def __arrow_c_schema__(self) -> object:
        """Arrow's C schema interface."""
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, made by pyarrow."""
    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""

@final
class Stream:
    """A result that is read batch by batch; pyarrow, pandas, Polars and DuckDB accept it. It can be read several times."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's C stream interface."""
    def __arrow_c_schema__(self) -> object:
        """Arrow's C schema interface."""
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, made by pyarrow."""
    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""

def event_columns() -> list[str]:
    """The columns of events, in order."""

def presets() -> list[str]:
    """The presets by name."""

def views() -> list[str]:
    """The views by name."""
