"""The functions of DFTracer's native module, recorded by Weftline.

Values of events are pairs of a tag type and the value, as in the original, or plain values. Integers may have any size.
"""

from enum import IntEnum
from typing import Any, Dict, Mapping, Optional, Type

from dftracer import _recording

Tags = Optional[Mapping[str, Any]]


def initialize(log_file: Optional[str] = None, data_dirs: Optional[str] = None, process_id: int = -1) -> None:
    """Starts recording, if the environment enables it."""
    _recording.begin(log_file, data_dirs, process_id)


def get_time() -> int:
    """Microseconds of the wall clock; 0 when nothing is recorded."""
    return _recording.wall_us()


def get_config(key: str) -> str:
    """A setting by the name of its variable, with or without ``DFTRACER_``; empty when there is none of that name."""
    name = key.lower()
    name = name[len("dftracer_") :] if name.startswith("dftracer_") else name
    value = _recording.options().get(
        {"data_dir": "data_dirs", "inc_metadata": "metadata", "trace_compression": "compression"}.get(name, name)
    )
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return ":".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def enter_event() -> int:
    return 0


def exit_event() -> None:
    return None


def log_event(
    name: str, cat: str, start_time: int, duration: int,
    int_args: Tags = None, string_args: Tags = None, float_args: Tags = None,
    relations: Optional[Mapping[Any, Any]] = None
) -> None:  # fmt: skip
    """Records an event with a start and duration measured by ``get_time``."""
    args: Dict[str, Any] = {}
    for part in (int_args, string_args, float_args):
        for key, value in (part or {}).items():
            args[str(key)] = value[1] if isinstance(value, tuple) and len(value) == 2 else value
    if relations:
        from dftracer.python.tags import EntityRelation

        args["relations"] = str({name_of(EntityRelation, relation): list(ids) for relation, ids in relations.items()})
    _recording.emit_at(str(name), str(cat), int(start_time) * 1000, int(duration) * 1000, args or None)


def log_metadata_event(key: str, value: str) -> None:
    """Records metadata of the process."""
    _recording.emit_metadata("CM", {"name": str(key), "value": value})


def set_app_metadata_int(key: str, value: int) -> None:
    _recording.emit_metadata("CM", {"name": str(key), "value": int(value)})


def set_app_metadata_string(key: str, value: str) -> None:
    _recording.emit_metadata("CM", {"name": str(key), "value": str(value)})


def mark_used(name: str) -> None:
    """Records that the program uses a feature."""
    _recording.emit_metadata("CM", {"name": "used", "value": str(name)})


def declare_entity(type: str, key: Any, store: Any = 0, uri: str = "") -> int:
    """Records an entity, a piece of data. Its id is derived from type and key, so it is the same in all processes."""
    from dftracer.python.tags import EntityStore

    # 63 bits, so that readers whose integers have a sign can hold it.
    entity = _recording.id_of(f"{type}\0{key}") >> 1
    _recording.emit_metadata(
        "EH", {"id": entity, "type": str(type), "key": str(key), "store": name_of(EntityStore, store), "uri": str(uri)}
    )
    return entity


def declare_entity_type(type: str, role: Any = 0, description: str = "") -> None:
    from dftracer.python.tags import EntityRole

    _recording.emit_metadata("ET", {"type": str(type), "role": name_of(EntityRole, role), "description": str(description)})


def relate_entities(relation: Any, subject: int, object: int) -> None:
    from dftracer.python.tags import EntityRelation

    _recording.emit_metadata(
        "ER", {"relation": name_of(EntityRelation, relation), "subject": int(subject), "object": int(object)}
    )


def finalize() -> None:
    """Writes the trace. Optional: it is written when the process ends, in any way."""
    _recording.finish()


def name_of(kind: Type[IntEnum], value: Any) -> str:
    """The name of an enumeration's member; of any other value, its text."""
    try:
        return kind(value).name
    except (ValueError, TypeError):
        return str(value)
