"""The first training step of PyTorch's DistributedDataParallel on one rank, without devices.

    ddp_worker.py CASE.json RECORD.json ...

CASE has `model`, `settings` and `world_size` as the records of tests/golden/torch/ddp have them, and
RECORD is such a record, as far as torch_golden_test reads it. Of tensors without data the reducer
cannot rebuild its buckets: they are those that PyTorch's own function makes of the order in which
gradients come, as the second step would have them.
"""

import contextlib
import sys

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import golden_steps
import plain_modules
from call_recorder import Recorder
from fully_shard_worker import Held, checkpointed, clip, optimizer_of

MEBIBYTE = 1 << 20


def build(m, settings):
    if m["model_type"] == "gpt2":
        model = plain_modules.Gpt2(m)
    else:
        model = plain_modules.Llama(m, sequence=settings["seq"])
    checkpointed(model, settings)
    return model


def order_of_gradients(model):
    """Parameters as their gradients come; filled while backward runs."""
    ready = []
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: ready.append(p))
    return ready


def reduces_nothing(_, bucket):
    """In place of the all-reduce, whose future has no value where the process group is a fake."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def rebuilt(ready, settings):
    cap = settings["bucket_cap_mb"]
    limits = [cap * MEBIBYTE] if cap else [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES,
                                           25 * MEBIBYTE]
    parts, _ = torch.distributed._compute_bucket_assignment_by_size(ready, limits,
                                                                    [False] * len(ready))
    return [{"bytes": sum(ready[i].numel() * ready[i].element_size() for i in part)}
            for part in parts]


class HeldByDdp(Held):
    """The buckets are what is alive before the first step beside parameters and input."""

    def __init__(self, *given):
        super().__init__(*given)
        known = {p.untyped_storage()._cdata for p in self.model.parameters()}
        known |= {t.untyped_storage()._cdata for t in self.inputs}
        self.buckets = [reference() for key, (reference, count) in self.recorder.storages.items()
                        if key not in known and count >= MEBIBYTE]

    def mark(self):
        marked = super().mark()
        views = {p.grad.untyped_storage()._cdata for p in self.model.parameters()
                 if p.grad is not None}
        buckets = sum(b.nbytes() for b in self.buckets if b._cdata not in views)
        marked["reduce_buffer"] = buckets
        marked["activation"] -= buckets
        return {name: count for name, count in marked.items() if count}


def step(model, optimizer, held, settings, recorder):
    """Bytes at the marks of a step."""
    memory = {"marks": {}}
    tokens, labels = held.inputs
    for i in range(settings["microbatches"]):
        last = i + 1 == settings["microbatches"]
        with contextlib.nullcontext() if last else model.no_sync():
            logits = model(tokens)
            loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
            del logits
            memory["marks"]["after_forward"] = held.mark()
            loss.backward()
    del loss
    memory["marks"]["after_backward"] = held.mark()
    if settings["clip"]:
        clip(list(model.parameters()))
    optimizer.step()
    memory["peak"] = held.mark() | {"total": recorder.peak}
    optimizer.zero_grad()
    return memory


def run(case):
    settings = case["settings"]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0,
                                         world_size=case["world_size"])
    group = torch.distributed.group.WORLD.group_name
    recorder = Recorder({group: "dp_replicate"})
    with FakeTensorMode(allow_non_fake_inputs=True), recorder:
        model = build(case["model"], settings)
        tokens, labels = (torch.zeros((settings["batch"], settings["seq"]), dtype=torch.int64)
                          for _ in range(2))
        ready = order_of_gradients(model)
        model = DistributedDataParallel(
            model, init_sync=False, bucket_cap_mb=settings["bucket_cap_mb"],
            gradient_as_bucket_view=settings["gradient_as_bucket_view"])
        model.register_comm_hook(None, reduces_nothing)
        optimizer = optimizer_of(model.parameters(), settings["optimizer"])
        held = HeldByDdp(recorder, model, optimizer, [tokens, labels])
        recorder.start()
        memory = step(model, optimizer, held, settings, recorder)
        buckets = rebuilt(ready[-len(list(model.parameters())):], settings)
    return {"id": case["id"], "model": case["model"], "world_size": case["world_size"],
            "mesh": [["dp_replicate", case["world_size"]]], "strategy": {"settings": settings},
            "batch": {"per_rank": settings["batch"], "sequence": settings["seq"],
                      "microbatches": settings["microbatches"]},
            "params_local": [], "rebuilt_buckets": buckets, "memory": {"steps": [memory]}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(golden_steps.record_each(run))
