"""As :mod:`dftracer.dftracer`: there is one recorder, and it needs no variant for debugging."""

from dftracer.dftracer import (
    declare_entity,
    declare_entity_type,
    enter_event,
    exit_event,
    finalize,
    get_config,
    get_time,
    initialize,
    log_event,
    log_metadata_event,
    mark_used,
    relate_entities,
    set_app_metadata_int,
    set_app_metadata_string,
)

__all__ = [
    "declare_entity",
    "declare_entity_type",
    "enter_event",
    "exit_event",
    "finalize",
    "get_config",
    "get_time",
    "initialize",
    "log_event",
    "log_metadata_event",
    "mark_used",
    "relate_entities",
    "set_app_metadata_int",
    "set_app_metadata_string",
]
