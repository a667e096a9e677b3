"""Collectives of one training step of FSDP2 on live models beside those of the plan.

    torch_steps.py SHARDSIM [--only TEXT] [--world 8] [--batch 2] [--sequence 64]

Models are those of model_costs.json and eager_cases.json, with few layers. The process group is
PyTorch's fake one, and tensors have no data: `fully_shard` is called on every layer, as the plan
repeats them, and on the model, with parameters in bf16 and gradients reduced in fp32. Compared are kind
and bytes of every call, in order.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import torch.distributed
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

import eager_records
import model_costs

KINDS = {"_allgather_base_": ("all-gather", 0), "_reduce_scatter_base_": ("reduce-scatter", 1),
         "allreduce_": ("all-reduce", 0)}

# Calls that are the same, in another order: the first layer reads pixels, which have no gradient, so
# that FSDP2 reduces it when all else is through, behind the root; the plan does with its backward.
IN_ANOTHER_ORDER = {"SegformerForImageClassification", "SegformerForSemanticSegmentation",
                    "PvtV2ForImageClassification", "DINOv3ConvNextModel",
                    "CvtForImageClassification"}

# Layers of Zamba share a block, which is in more units than one. SqueezeBERT calls the forward of its
# layers past their hooks, which FSDP2 does not survive; it takes no types beside each other, which
# ERNIE's routers are; layers of XLM and FlauBERT are no modules.
CANNOT_RUN = {"Ernie4_5_VLMoeForConditionalGeneration", "SqueezeBertForMaskedLM",
              "SqueezeBertForSequenceClassification", "XLMWithLMHeadModel",
              "XLMForSequenceClassification", "XLMForTokenClassification", "XLMForMultipleChoice",
              "FlaubertWithLMHeadModel", "FlaubertForTokenClassification",
              "FlaubertForMultipleChoice", "ZambaForCausalLM"}

# The first layer's table of distances, which all layers read, is with the root in the plan.
DISTANCES_IN_ROOT = {"LongT5ForConditionalGeneration", "T5ForQuestionAnswering",
                     "T5ForTokenClassification", "T5Model"}

# The list of a module that is all layers: the plan counts none of them.
LAYERS_IN_COMMON = {"AlbertForPreTraining": "albert.encoder.albert_layer_groups"}

# Parameters of four numbers in the part that reads no text: FSDP2 pads each of them over 8 devices, the
# plan, which has them in stacks, does not (8,128 bytes of the root's 3,462,016).
PADDED_ONE_BY_ONE = {"Emu3ForConditionalGeneration"}

# Its tower, which reads no text, is lists of layers within lists: the plan has units of them, which are
# never gathered, and here they are the root's; of Granite Vision 4 it is the other way about.
TOWER_IN_ROOT = {"Florence2ForConditionalGeneration", "Granite4VisionForConditionalGeneration"}


class Log(TorchDispatchMode):
    """Kind and bytes of every call of a process group."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func).split(".")
        if name[0] == "c10d":
            tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(args)
                       if isinstance(leaf, torch.Tensor)]
            kind, whole = KINDS[name[1]]
            self.calls.append([kind, tensors[whole].numel() * tensors[whole].element_size()])
        return func(*args, **(kwargs or {}))


def layers_of(module, prefixes, towers, name=""):
    """Items of the lists that the plan repeats; with `towers` of layers that do not run."""
    for child_name, child in module.named_children():
        path = f"{name}.{child_name}" if name else child_name
        if path in prefixes:
            yield from child
        elif isinstance(child, torch.nn.ModuleList) and towers:
            for item in child:
                inner = item if isinstance(item, torch.nn.ModuleList) else [item]
                yield from (one for one in inner if len(list(one.parameters())) > 4)
        else:
            yield from layers_of(child, prefixes, towers, path)


def wrapped(model, prefixes, towers, mesh):
    policy = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    for layer in layers_of(model, prefixes, towers):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def build(case):
    return (eager_records if "inputs" in case else model_costs).build(case)[0]


def configuration_of(case):
    with torch.device("meta"):
        config = build(case).config
    return json.loads(config.to_json_string(use_diff=False)) | {
        "architectures": [case["architecture"]]}


def issued(case, prefixes, mesh, batch, sequence):
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = build(case)
        model.tie_weights()
        model = wrapped(model.train(), prefixes, "inputs" not in case, mesh)
        with Log() as log:
            if "inputs" in case:
                loss = eager_records.loss_of(case, model(**eager_records.inputs_of(case)))
            else:
                out = model_costs.loss_of(model, case, batch, sequence, "cpu")[1]()
                loss = out.last_hidden_state.sum() if case.get("labels") == "none" else out.loss
            loss.backward()
    return log.calls


def planned(shardsim, config, case, world, batch, sequence):
    step = {"model": config, "step": "train", "batch": world * batch,
            "precision": {"compute": "bf16", "parameters": "bf16", "reduce": "fp32"}}
    if sequence is not None:
        step["sequence"] = sequence
    experiment = {"workload": step, "mesh": {"dp": world}, "strategy": "fsdp2",
                  "machine": "dgx-h100"}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "experiment.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(experiment, file)
        run = subprocess.run([shardsim, "plan", path, "--format", "json"], capture_output=True,
                             text=True, check=False)
    if run.returncode != 0:
        return run.stderr.strip(), set()
    plan = json.loads(run.stdout)
    tasks = [task for task in plan["programs"][0]["tasks"] if task["kind"] == "collective"]
    calls = [plan["collectives"][task["work"]] for task in tasks]
    prefixes = {part["tensor"].partition(".{}")[0] for task, call in zip(tasks, calls)
                for part in call.get("parts", []) if task["layer"] >= 0}
    return [[call["kind"], call["payload_bytes"]] for call in calls], prefixes


def cases():
    folder = os.path.dirname(os.path.abspath(model_costs.__file__))
    for name in ("model_costs.json", "eager_cases.json"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            yield from json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="", help="cases whose architecture contains this")
    parser.add_argument("--world", type=int, default=8)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=64)
    arguments = parser.parse_args()
    torch.distributed.init_process_group("fake", rank=0, world_size=arguments.world,
                                         store=FakeStore())
    mesh = init_device_mesh("cpu", (arguments.world,))
    eager_records.switch_off_what_reads_data()
    failed = count = 0
    for case in cases():
        name = case["architecture"]
        left_out = (name in CANNOT_RUN | DISTANCES_IN_ROOT | PADDED_ONE_BY_ONE | TOWER_IN_ROOT
                    or "_class_name" in case["config"] or eager_records.lacks_package(case))
        if arguments.only not in name or left_out:
            continue
        size = arguments.batch, arguments.sequence
        if "inputs" in case:
            reads_text = not {"input_ids", "labels"}.isdisjoint(case["inputs"])
            tokens = case.get("point", {}).get("sequence") if reads_text else None
            size = next(iter(case["inputs"].values()))[0], tokens
        config = configuration_of(case)
        found, prefixes = planned(arguments.shardsim, config, case, arguments.world, *size)
        if name in LAYERS_IN_COMMON:
            prefixes.add(LAYERS_IN_COMMON[name])
        try:
            expected = issued(case, prefixes, mesh, *size)
        except ValueError as error:
            if "scalar parameters" not in str(error):
                raise
            print(f"{name}: left out, {error}")
            continue
        count += 1
        same = found == expected or (name in IN_ANOTHER_ORDER and sorted(found) == sorted(expected))
        failed += not same
        print(f"{name}: {len(expected)} calls, {'equal' if same else 'different'}")
        if not same:
            print("  expected", expected)
            print("  found   ", found)
    print(f"{count} models, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
