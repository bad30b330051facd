"""The tree that programs use."""

from dftracer.python.ai_common import AI

ai = AI()
compute = ai.compute
data = ai.data
dataloader = ai.dataloader
comm = ai.comm
device = ai.device
checkpoint = ai.checkpoint
pipeline = ai.pipeline

__all__ = ["ai", "checkpoint", "comm", "compute", "data", "dataloader", "device", "pipeline"]
