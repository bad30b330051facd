#!/usr/bin/env python3
"""A training job in miniature: generate samples, load them in worker processes, train, write checkpoints.

Nothing but the standard library and annotations, and the same output on every run. It does its I/O the way real jobs do: many
small sample files read in shuffled order by forked workers, batches sent back through pipes, sharded checkpoints that are written,
synced and renamed into place. `weftline.ai` gives the parts of the loop the names that reports know.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import struct
from pathlib import Path

from weftline import ai

FEATURES = 16
SAMPLE_BYTES = 8192
BATCH = 16
CHECKPOINT_SHARDS = 8
SHARD_BYTES = 256 * 1024
HEADER = struct.Struct(f"<{FEATURES + 1}f")
# Batches a worker may be ahead of the trainer.
PREFETCH = 2
# How much work it is to decode a sample: more than the workers can do while the model computes.
DECODING = 150
# How often the model goes over a batch.
PASSES = 40


def generate(directory: Path, count: int) -> None:
    """Writes `count` samples: a label, its features, and a payload that makes them as large as small pictures."""
    truth = [math.sin(index + 1) for index in range(FEATURES)]
    for number in range(count):
        source = random.Random(number)
        features = [source.uniform(-1, 1) for _ in range(FEATURES)]
        label = sum(weight * value for weight, value in zip(truth, features))
        folder = directory / f"class-{number % 8}"
        folder.mkdir(parents=True, exist_ok=True)
        payload = source.randbytes(SAMPLE_BYTES - HEADER.size)
        (folder / f"sample-{number:05}.bin").write_bytes(HEADER.pack(label, *features) + payload)


@ai.data.item
def load(path: Path) -> tuple[float, list[float]]:
    """Reads one sample; checksums of the payload stand for the decoding that a real loader does."""
    raw = path.read_bytes()
    label, *features = HEADER.unpack_from(raw)
    if not all(sum(raw[start % 7 :: 7]) for start in range(DECODING)):
        raise ValueError(f"{path}: empty sample")
    return label, features


def worker(batches: list[list[Path]], pipe, slots) -> None:
    """A loader process: reads its share of the batches, never more than PREFETCH ahead."""
    for batch in batches:
        slots.acquire()
        pipe.send([load(path) for path in batch])
    pipe.close()


class Loader:
    """Hands out an epoch's batches in order; batch k comes from worker k modulo their number."""

    def __init__(self, paths: list[Path], workers: int):
        batches = [paths[start : start + BATCH] for start in range(0, len(paths), BATCH)]
        self.count = len(batches)
        self.workers = []
        for index in range(workers):
            receiver, sender = multiprocessing.Pipe(duplex=False)
            slots = multiprocessing.Semaphore(PREFETCH)
            process = multiprocessing.Process(target=worker, args=(batches[index::workers], sender, slots))
            process.start()
            sender.close()
            self.workers.append((process, receiver, slots))

    def __iter__(self):
        for number in range(self.count):
            _, receiver, slots = self.workers[number % len(self.workers)]
            yield receiver.recv()
            slots.release()
        for process, _, _ in self.workers:
            process.join()
            if process.exitcode != 0:
                raise RuntimeError(f"loader worker ended with {process.exitcode}")


@ai.compute.step
def step(weights: list[float], batch: list[tuple[float, list[float]]], rate: float) -> float:
    """Steps of gradient descent on a linear model; returns the batch's mean squared error at the end."""
    loss = 0.0
    for _ in range(PASSES):
        gradient = [0.0] * FEATURES
        loss = 0.0
        for label, features in batch:
            error = sum(weight * value for weight, value in zip(weights, features)) - label
            loss += error * error
            for index, value in enumerate(features):
                gradient[index] += 2 * error * value
        for index in range(FEATURES):
            weights[index] -= rate * gradient[index] / len(batch)
    return loss / len(batch)


@ai.checkpoint.capture
def checkpoint(directory: Path, epoch: int, weights: list[float]) -> None:
    """Writes the model in shards, each synced and renamed into place, and a manifest last."""
    directory.mkdir(parents=True, exist_ok=True)
    block = struct.pack(f"<{FEATURES}f", *weights)
    for shard in range(CHECKPOINT_SHARDS):
        path = directory / f"epoch-{epoch}-shard-{shard}.ckpt"
        partial = path.with_suffix(".tmp")
        with open(partial, "wb") as file:
            for _ in range(SHARD_BYTES // 4096):
                file.write(block * (4096 // len(block)))
            file.flush()
            os.fsync(file.fileno())
        os.rename(partial, path)
    manifest = {"epoch": epoch, "shards": CHECKPOINT_SHARDS, "features": FEATURES}
    (directory / f"epoch-{epoch}.json").write_text(json.dumps(manifest) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where samples and checkpoints go")
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    multiprocessing.set_start_method("fork")
    samples = options.directory / "samples"
    generate(samples, options.samples)
    paths = sorted(samples.glob("*/*.bin"))
    print(f"{len(paths)} samples of {SAMPLE_BYTES} bytes", flush=True)

    weights = [0.0] * FEATURES
    for epoch in range(1, options.epochs + 1):
        with ai.pipeline.epoch(epoch=epoch):
            random.Random(epoch).shuffle(paths)
            loader = Loader(paths, options.workers)
            losses = [step(weights, batch, rate=0.005) for batch in ai.dataloader.fetch.iter(loader, epoch=epoch)]
            checkpoint(options.directory / "checkpoints", epoch, weights)
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} over {len(losses)} batches", flush=True)


if __name__ == "__main__":
    main()
