#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write span records, for whatif(1), from a PyTorch training loop.

Put Spans into your loop as train() below does, one file for each rank, then

    whatif spans-*.jsonl

As a program it is an example: data-parallel training on CPUs over gloo, in
which rank 1 can be made to work several times for each micro-batch:

    record-spans.py --ranks 2 --slow 3 --out spans
"""
import argparse
import contextlib
import json
import os
import time


class Spans:
    """Spans of one rank. What is asynchronous (a GPU) is waited for at both
    ends of a span, so that it costs some overlap: record a few steps, not
    all. Collectives have to end when their span does: no async_op, and
    gradients reduced by hand, not behind your back as DDP does."""

    def __init__(self, path, dp, pp=0, job=None, wait=lambda: None):
        self.file = open(path, "w", encoding="utf-8")
        self.where = {"dp": dp, "pp": pp, **({"job": job} if job else {})}
        self.wait, self.step, self.seq = wait, 0, {}

    def begin_step(self, step):
        self.step, self.seq = step, {}

    @contextlib.contextmanager
    def __call__(self, op, **which):
        """which: mb=, the micro-batch; chunk=, the model chunk."""
        self.wait()
        ts, start = time.time(), time.monotonic_ns()
        yield
        self.wait()
        dur = (time.monotonic_ns() - start) / 1e9
        seq = self.seq[op] = self.seq.get(op, -1) + 1
        print(json.dumps({"type": "span", "ts": ts, **self.where, "op": op,
                          "seq": seq, "step": self.step, "dur": dur, **which}),
              file=self.file)

    def close(self):
        self.file.close()


def train(rank, args, torch, dist):
    """The loop: a small network, args.mb micro-batches a step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    spans = Spans(f"{args.out}-{rank}.jsonl", dp=rank, wait=wait)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.Tanh(),
                                torch.nn.Linear(1024, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    repeat = args.slow if rank == 1 else 1
    for step in range(args.warmup + args.steps):
        spans.begin_step(step)
        dist.barrier()
        for mb in range(args.mb):
            x = torch.randn(args.batch, 256)
            with spans("forward-compute", mb=mb):
                for _ in range(repeat):
                    loss = (model(x) - x).square().mean()
            with spans("backward-compute", mb=mb):
                for k in range(repeat):
                    loss.backward(retain_graph=k + 1 < repeat)
        with spans("grads-reduce-scatter"):
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= args.ranks * args.mb
        with spans("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        if step + 1 == args.warmup:  # caches, allocators: not the job's pace
            spans.file.seek(0)
            spans.file.truncate()
    spans.close()


def run(rank, args):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{args.meet}",
                            rank=rank, world_size=args.ranks)
    train(rank, args, torch, dist)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--mb", type=int, default=4)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--slow", type=int, default=1, metavar="N")
    p.add_argument("--out", default="spans")
    args = p.parse_args()
    args.meet = os.path.abspath(f"{args.out}.meet")
    import torch.multiprocessing as mp

    mp.spawn(run, args=(args,), nprocs=args.ranks)
    with contextlib.suppress(FileNotFoundError):
        os.remove(args.meet)


if __name__ == "__main__":
    main()
