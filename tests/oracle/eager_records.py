"""FLOPs and saved activations of models as live PyTorch counts and keeps them, beside what
`shardsim model` says; with --write as records of tests/golden/models (its README says what stands in
one).

    eager_records.py SHARDSIM [--only TEXT] [--write FOLDER]

eager_cases.json lists them: an architecture, its configuration, the inputs' shapes. FLOPs are counted by
torch's FlopCounterMode on meta tensors; what is kept, by saved_tensors_hooks on tensors without data
of a CUDA device that need not be there, everything bf16. Attention is FlashAttention's operator, or
the memory-efficient one where something is added to the scores. Checks that read data (padding,
infinities) are switched off, and so is what chance decides (layers left out, masked spectra): cases
set their rates to 0. A case of diffusers has a "_class_name"; "masks": false leaves out masks of padding,
which classes demand; "lists" names what a class takes as a list of one tensor for each example.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers.core_model_loading import revert_weight_conversion
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.rt_detr_v2 import modeling_rt_detr_v2


WHOLE_NUMBERS = ("labels", "class_labels", "timestep", "input_ids", "bbox", "start_positions",
                 "end_positions")
NUMBER = [1]
MASKS = [True]  # whether what is said not to be seen counts; a case's "masks"
HIDDEN_KEYS = ("_use_default_values", "_class_name", "_diffusers_version", "_name_or_path")


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
              enable_gqa=False):
    """torch.nn.functional.scaled_dot_product_attention as CUDA devices dispatch it."""
    head, values = query.shape[-1], value.shape[-1]
    if attn_mask is not None and not MASKS[0]:
        attn_mask = None
    if attn_mask is None and head == values and head <= 256:
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if attn_mask is not None:
        shape = query.shape[0], query.shape[1], query.shape[2], key.shape[2]
        attn_mask = attn_mask.to(query.dtype).expand(shape)
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale)[0]


class Number(float):
    """An element of a tensor that is never made."""

    def item(self):
        return float(self)


class Numbers(list):
    def tolist(self):
        return [float(number) for number in self]

    def split(self, sizes):
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return [Numbers(self[start:start + size]) for start, size in zip(starts, sizes)]


class Finite:
    def all(self):
        return True


READ_LIST = torch.Tensor.tolist


def numbers_of(tensor):
    """A case's "number" for each element of a tensor that is never made."""
    if tensor.device.type == "meta" or isinstance(tensor, FakeTensor):
        return [NUMBER[0]] * tensor.numel()
    return READ_LIST(tensor)


def switch_off_what_reads_data():
    torch.nn.functional.scaled_dot_product_attention = attention
    linspace = torch.linspace
    # Of rates of stochastic depth, which go into Python's numbers; what is asked for on a device stays.
    torch.linspace = lambda first, last, n, **how: linspace(first, last, n, **how) if isinstance(
        how.get("device"), torch.device) else Numbers(
            Number(first + (last - first) * i / max(n - 1, 1)) for i in range(n))
    torch.isfinite = lambda _: Finite()
    modeling_rt_detr_v2.torch_compilable_check = lambda *_: None
    for kind in (torch.Tensor, FakeTensor):
        kind.tolist = numbers_of
    for name in ("init_weights", "initialize_weights"):
        setattr(transformers.PreTrainedModel, name, lambda self: None)


class Keeper:
    """What autograd saves: each storage where it is saved first."""

    def __init__(self, model, inputs):
        apart = [one if isinstance(one, list) else [one] for one in inputs]
        inputs = [tensor for one in apart for tensor in one if isinstance(tensor, torch.Tensor)]
        own = [*model.parameters(), *model.buffers()]
        self.known = {tensor.untyped_storage()._cdata for tensor in own}
        self.inputs = {tensor.untyped_storage()._cdata: tensor for tensor in inputs}
        self.open, self.rows, self.alive, self.read = [], [], [], set()
        for name, module in model.named_modules():
            module.register_forward_pre_hook(lambda m, _, name=name: self.open.append(name))
            module.register_forward_hook(lambda *_: (self.open.pop(), None)[1])

    def pack(self, tensor):
        storage = tensor.untyped_storage()
        self.alive.append(storage)
        number = storage._cdata
        if number in self.inputs:
            self.read.add(number)
        elif number not in self.known:
            self.known.add(number)
            self.rows.append([self.open[-1] if self.open else "", str(tensor.dtype)[6:],
                              list(tensor.shape), storage.nbytes()])
        return tensor


class Keys(dict):
    """A configuration of diffusers, with what is read of one of transformers'."""

    model_type = "diffusers"

    def to_json_string(self, use_diff):
        return json.dumps(self)


def build_of_diffusers(case):
    import diffusers

    torch.set_default_dtype(torch.bfloat16)  # fake tensors cannot change theirs
    try:
        model = getattr(diffusers, case["architecture"]).from_config(case["config"])
    finally:
        torch.set_default_dtype(torch.float32)
    keys = {name: value for name, value in model.config.items() if name not in HIDDEN_KEYS}
    return model, Keys(keys | {"_class_name": case["architecture"]})


def build(case):
    keys = dict(case["config"])
    if "_class_name" in keys:
        return build_of_diffusers(case)
    config = CONFIG_MAPPING[keys.pop("model_type")](**keys)
    cls = getattr(transformers, case["architecture"])
    module = sys.modules[cls.__module__]
    if hasattr(module, "create_bidirectional_mask"):
        module.create_bidirectional_mask = lambda *_, **__: None
    return cls._from_config(config, dtype=torch.bfloat16), config


def lacks_package(case):
    """Whether the case is of a class that is built by a package that is not here."""
    return "needs" in case and importlib.util.find_spec(case["needs"]) is None


def inputs_of(case):
    """Tensors; what a case gives under "values" is given as it is."""
    def tensor(name, shape):
        dtype = torch.long if name in WHOLE_NUMBERS else torch.bfloat16
        return torch.zeros(shape, dtype=dtype)
    inputs = {name: tensor(name, shape) for name, shape in case["inputs"].items()}
    if "conditions" in case:  # further tensors, which a class takes as one dictionary
        inputs["added_cond_kwargs"] = {name: tensor(name, shape)
                                       for name, shape in case["conditions"].items()}
    for name in case.get("lists", ()):  # one for each example
        inputs[name] = list(inputs[name].unbind(0))
    return inputs


def loss_of(case, output):
    if "sum" in case:
        parts = [output[name] for name in case["sum"]]
        return sum(t.sum() for part in parts for t in (part if isinstance(part, (list, tuple)) else [part]))
    return output.loss if output.get("loss") is not None else output[0].sum()


def counted(case):
    """FLOPs by operator of the forward pass, and of both."""
    with torch.device("meta"):
        model = build(case)[0].train()
        inputs = inputs_of(case)
        with FlopCounterMode(display=False) as counter:
            loss = loss_of(case, model(**inputs, **case.get("values", {})))
            forward = dict(counter.get_flop_counts().get("Global", {}))
            loss.backward()
    both = counter.get_flop_counts().get("Global", {})
    short = lambda flops: {str(op).removeprefix("aten."): n for op, n in flops.items()}
    return short(forward), short(both)


def kept(case):
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        model = build(case)[0].train()
        inputs = inputs_of(case)
        keeper = Keeper(model, inputs.values())
        with torch.autograd.graph.saved_tensors_hooks(keeper.pack, lambda tensor: tensor):
            loss_of(case, model(**inputs, **case.get("values", {})))
    return keeper


def folded(shapes):
    """Names that differ in one number and have one shape, as one: "layers.{0-3}.weight"."""
    groups = {}
    for name, shape in shapes.items():
        number = re.search(r"(?<=\.)\d+(?=\.)", name)
        key = (name, None) if number is None else (
            name[:number.start()] + "{}" + name[number.end():], json.dumps(shape))
        groups.setdefault(key, []).append((name, number, shape))
    result = {}
    for (pattern, _), members in groups.items():
        numbers = sorted(int(number.group()) for _, number, _ in members if number)
        if len(members) == 1:
            result[members[0][0]] = members[0][2]
            continue
        parts, start = [], numbers[0]
        for i, number in enumerate(numbers):
            if i + 1 < len(numbers) and numbers[i + 1] == number + 1:
                continue
            parts.append(f"{start}" if start == number else f"{start}-{number}")
            start = numbers[i + 1] if i + 1 < len(numbers) else None
        result[pattern.replace("{}", "{" + ",".join(parts) + "}")] = members[0][2]
    return dict(sorted(result.items()))


def in_files(model, state):
    if not isinstance(model, transformers.PreTrainedModel):
        return state
    return revert_weight_conversion(model, state)


def record_of(case):
    with torch.device("meta"):
        model, config = build(case)
    parameters = {name: list(p.shape) for name, p in model.named_parameters()}
    state = dict(model.state_dict())
    files = {name: list(t.shape) for name, t in in_files(model, state).items()}
    forward, both = counted(case)
    keeper = kept(case)
    batch = next(iter(case["inputs"].values()))[0]
    point = {"batch": batch, "inputs": case["inputs"], **case.get("point", {})}
    total = sum(row[3] for row in keeper.rows)
    elements = sum(p.numel() for p in model.parameters())
    embeddings = {id(m.weight): m.weight.numel() for m in model.modules()
                  if isinstance(m, torch.nn.Embedding)}
    record = {
        "model": case["name"], "architecture": case["architecture"], "family": config.model_type,
        "kind": case["kind"], "source": "written out for this test: the class's defaults, few layers",
        "dtype": "bfloat16",
        "config": json.loads(config.to_json_string(use_diff=False)) | {
            "architectures": [case["architecture"]]},
        "architecture_class": case["architecture"], "parameters": folded(parameters),
        "parameter_dtypes": {"bfloat16": elements}, "total_parameters": elements, "tied": [],
        "active_parameters": elements, "embedding_parameters": sum(embeddings.values()),
        "persistent_buffers": {name: [list(t.shape), str(t.dtype)[6:]]
                               for name, t in state.items() if name not in parameters},
        "flops": [point | {"forward": forward, "forward_total": sum(forward.values()),
                           "forward_backward": both, "forward_backward_total": sum(both.values())}],
        "saved_activations": [point | {
            "total_bytes": total, "tensors": len(keeper.rows), "per_layer": {},
            "inputs_saved_bytes": sum(keeper.inputs[n].untyped_storage().nbytes()
                                      for n in keeper.read)}],
        "notes": [f"torch {torch.__version__.split('+')[0]}, transformers "
                  f"{transformers.__version__}, Python {sys.version.split()[0]}",
                  "tests/oracle/eager_records.py --write"],
    }
    if {name: list(t.shape) for name, t in state.items()} != files:
        record["hub_tensors"] = folded(files)
    return record


def ask(shardsim, record):
    point = record["flops"][0]
    command = ["--batch", str(point["batch"])]
    for key, option in (("image", "--image"), ("sequence", "--sequence")):
        if key in point:
            command += [option, str(point[key])]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record["config"], file)
        run = subprocess.run([shardsim, "model", path, "--format", "json", *command],
                             capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr.strip()


def differences(record, report):
    if isinstance(report, str):
        return [report]
    point, saved = record["flops"][0], record["saved_activations"][0]["total_bytes"]
    messages = []
    for what, expected, found in (
            ("forward", point["forward_total"], report["flops"]["forward"]),
            ("both passes", point["forward_backward_total"], report["flops"]["forward_backward"])):
        if expected != found:
            messages.append(f"FLOPs of {what}: expected {expected}, found {found}")
    found = report["saved_activation_bytes"]
    if abs(found - saved) > 0.01 * saved:
        messages.append(f"saved activations: expected {saved}, found {found}")
    return messages


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--write", metavar="FOLDER", help="where records go")
    arguments = parser.parse_args()
    switch_off_what_reads_data()
    with open(os.path.join(os.path.dirname(__file__), "eager_cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    failed = 0
    for case in cases:
        if arguments.only not in case["name"]:
            continue
        if lacks_package(case):
            print(f"{case['name']}: left out, {case['needs']} is not installed")
            continue
        MASKS[0], NUMBER[0] = case.get("masks", True), case.get("number", 1)
        record = record_of(case)
        messages = differences(record, ask(arguments.shardsim, record))
        failed += bool(messages)
        print(f"{case['name']}: {'equal' if not messages else 'different'}")
        for message in messages:
            print(f"  {message}")
        if arguments.write:
            path = os.path.join(arguments.write, case["name"] + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(record, file, indent=1)
                file.write("\n")
    print(f"{len(cases)} models, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
