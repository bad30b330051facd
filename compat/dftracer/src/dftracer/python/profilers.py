"""The recording interface of this package as a protocol, and an implementation that records nothing."""

from typing import Any, Dict, List, Optional, Protocol

Tags = Optional[Dict[str, Any]]
Relations = Optional[Dict[Any, List[int]]]


class ProfilerProtocol(Protocol):
    """What a module or an object must have to record for this package; by itself, each of these does nothing."""

    def initialize(self, log_file: Optional[str] = None, data_dirs: Optional[str] = None, process_id: int = -1) -> None:
        return None

    def get_time(self) -> int:
        return 0

    def get_config(self, key: str) -> str:
        return ""

    def enter_event(self) -> None:
        return None

    def exit_event(self) -> None:
        return None

    def log_event(
        self, name: str, cat: str, start_time: int, duration: int,
        int_args: Tags = None, string_args: Tags = None, float_args: Tags = None, relations: Relations = None
    ) -> None:  # fmt: skip
        return None

    def log_metadata_event(self, key: str, value: str) -> None:
        return None

    def declare_entity(self, type: str, key: str, store: Any, uri: str) -> int:
        return 0

    def declare_entity_type(self, type: str, role: Any, description: str) -> None:
        return None

    def relate_entities(self, relation: Any, subject: int, object: int) -> None:
        return None

    def set_app_metadata_int(self, key: str, value: int) -> None:
        return None

    def set_app_metadata_string(self, key: str, value: str) -> None:
        return None

    def mark_used(self, name: str) -> None:
        return None

    def finalize(self) -> None:
        return None


class NoOpProfiler(ProfilerProtocol):
    """Records nothing."""
