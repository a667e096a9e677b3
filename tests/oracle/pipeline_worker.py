"""One training step of torch.distributed.pipelining on one rank, without devices: what it sends, in
order, and what it holds.

    pipeline_worker.py CASE.json RECORD.json ...

As fully_shard_worker.py, with the records of tests/golden/torch/pipeline: stages of as many layers
each, every stage sharded by FSDP2 or, without it, in bf16.
"""

import sys

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import tensor as dtensor
from torch.distributed.pipelining import PipelineStage, schedules
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore

import fully_shard_worker
import golden_steps
import plain_modules
from call_recorder import Recorder

IN_V = ("ZBVZeroBubble", "DualPipeV")  # rank r has stages r and 2 ranks - 1 - r


def stages_of(rank, ranks, settings):
    if settings["schedule"] in IN_V:
        return [rank, 2 * ranks - 1 - rank]
    return [rank + ranks * i for i in range(settings["v"])]


def build_stage(case, settings, meshes, stage, stages, group):
    model = case["model"]
    each = model["num_hidden_layers"] // stages
    first, last = stage == 0, stage == stages - 1
    shards = settings["dp_shard"] > 1
    torch.set_default_dtype(torch.float32 if shards else torch.bfloat16)
    module = plain_modules.Llama(model, layers=range(stage * each, (stage + 1) * each), first=first,
                                 last=last, sequence=settings["seq"])
    if settings["tp"] > 1:
        fully_shard_worker.tensor_parallel(module, meshes.get("tp"), settings)
    fully_shard_worker.checkpointed(module, settings)
    if shards:
        fully_shard_worker.sharded(module, meshes, settings, None)
    split = settings["tp"] if settings["sp"] else 1
    between = (settings["mb_size"], settings["seq"] // split, model["hidden_size"])
    given = {"dtype": torch.bfloat16, "requires_grad": True}
    tokens = torch.zeros((settings["mb_size"], settings["seq"]), dtype=torch.int64)
    logits = (settings["mb_size"], settings["seq"], model["vocab_size"])
    return PipelineStage(module, stage, stages, torch.device("cpu"), group=group,
                         input_args=tokens if first else torch.empty(between, **given),
                         output_args=torch.empty(logits if last else between, **given))


def loss_of(logits, labels):
    return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def clip(parameters, group):
    """Norms of the ranks' stages together, as torchtitan does it."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters], foreach=True)
    if isinstance(norm, dtensor.DTensor):
        norm = norm.full_tensor()
    norm **= 2
    torch.distributed.all_reduce(norm, group=group)
    norm **= 0.5
    torch.nn.utils.clip_grads_with_norm_(parameters, 1.0, norm, foreach=True)


def run(case):
    settings = case["settings"]
    settings["batch"] = settings["microbatches"] * settings["mb_size"]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"],
                                         world_size=case["world_size"])
    fully_shard_worker.without_memory_of_shapes()
    fully_shard_worker.see_resized_storages()
    fully_shard_worker.meshes_have_data()
    meshes = fully_shard_worker.Meshes(case, settings)
    group = meshes.get("pp").get_group()
    recorder = Recorder(meshes.names)
    microbatches, ranks = settings["microbatches"], settings["pp"]
    kind = schedules.get_schedule_class(settings["schedule"])
    with FakeTensorMode(allow_non_fake_inputs=True), recorder:
        stages = [build_stage(case, settings, meshes, stage, ranks * settings["v"], group)
                  for stage in stages_of(settings["pp_rank"], ranks, settings)]
        single = issubclass(kind, schedules.PipelineScheduleSingle)
        schedule = kind(stages[0] if single else stages, microbatches, loss_fn=loss_of)
        models = torch.nn.ModuleList([stage.submod for stage in stages])
        optimizer = fully_shard_worker.optimizer_of(models.parameters(), settings["optimizer"])
        shape = settings["batch"], settings["seq"]
        tokens, labels = (torch.zeros(shape, dtype=torch.int64) for _ in range(2))
        held = fully_shard_worker.Held(recorder, models, optimizer, [tokens, labels])
        given = [tokens] if any(stage.is_first for stage in stages) else []
        wanted = {"target": labels} if any(stage.is_last for stage in stages) else {}
        for _ in range(settings["steps"]):
            recorder.start()
            recorder.phase = "schedule"
            schedule.step(*given, losses=[] if wanted else None, **wanted)
            memory = {"marks": {"after_schedule": held.mark()}}
            recorder.phase = "clip"
            clip([p for p in models.parameters() if p.grad is not None], group)
            recorder.phase = "optimizer"
            optimizer.step()
            memory["peak"] = held.mark() | {"total": recorder.peak}
            optimizer.zero_grad()
    return fully_shard_worker.record_of(case, settings, meshes, recorder, models, optimizer, memory)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(golden_steps.record_each(run))
