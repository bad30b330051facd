"""What the nodes of ``ai`` and their events are called."""

from enum import Enum

__all__ = [
    "BLOCK_NAME",
    "CTX_SEPARATOR",
    "CheckpointEvent",
    "CommunicationEvent",
    "ComputeEvent",
    "DataEvent",
    "DataLoaderEvent",
    "DeviceEvent",
    "INIT_NAME",
    "IOEvent",
    "ITER_COUNT_NAME",
    "ITER_NAME",
    "OtherEvent",
    "PipelineEvent",
    "ProfileCategory",
    "ROOT_CAT",
    "ROOT_NAME",
    "START_METADATA_NAME",
    "STOP_METADATA_NAME",
    "StringEnum",
    "get_iter_block_name",
    "get_iter_handle_name",
]

CTX_SEPARATOR = "."
ROOT_NAME = "ai_root"
ROOT_CAT = "ai_root"
ITER_NAME = "iter"
BLOCK_NAME = "block"
INIT_NAME = "init"
ITER_COUNT_NAME = "count"
START_METADATA_NAME = "start"
STOP_METADATA_NAME = "end"


class StringEnum(str, Enum):
    """An enumeration of texts, each of which is its own ``str``."""

    def __str__(self) -> str:
        return str(self.value)


class ProfileCategory(StringEnum):
    COMPUTE = "compute"
    DATA = "data"
    DATALOADER = "dataloader"
    COMM = "comm"
    DEVICE = "device"
    CHECKPOINT = "checkpoint"
    PIPELINE = "pipeline"
    OTHER = "other"


class ComputeEvent(StringEnum):
    FORWARD, BACKWARD, STEP = "forward", "backward", "step"


class DataEvent(StringEnum):
    PREPROCESS, ITEM = "preprocess", "item"


class DataLoaderEvent(StringEnum):
    FETCH = "fetch"


class CommunicationEvent(StringEnum):
    SEND, RECEIVE, BARRIER, BCAST = "send", "receive", "barrier", "bcast"
    REDUCE, ALL_REDUCE, REDUCE_SCATTER = "reduce", "all_reduce", "reduce_scatter"
    GATHER, ALL_GATHER, SCATTER, ALL_TO_ALL = "gather", "all_gather", "scatter", "all_to_all"


class DeviceEvent(StringEnum):
    TRANSFER = "transfer"


class CheckpointEvent(StringEnum):
    CAPTURE, RESTART = "capture", "restart"


class PipelineEvent(StringEnum):
    EPOCH, TRAIN, EVALUATE, TEST = "epoch", "train", "evaluate", "test"


class IOEvent(StringEnum):
    OPEN, READ, WRITE, CLOSE = "open", "read", "write", "close"


class OtherEvent(StringEnum):
    LOG = "log"


def get_iter_handle_name(name: str) -> str:
    """Name of the event for the getting of an item; a name that is one stays."""
    end = f"{CTX_SEPARATOR}{ITER_NAME}"
    return name if name.endswith(end) else f"{name}{end}"


def get_iter_block_name(name: str) -> str:
    """Name of the event for the using of an item; a name that is one stays."""
    end = f"{CTX_SEPARATOR}{BLOCK_NAME}"
    return name if name.endswith(end) else f"{name}{end}"
