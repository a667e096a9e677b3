"""FLOPs and saved activations of models in eager PyTorch beside what `shardsim model` says of the same
configuration.

    model_costs.py SHARDSIM [--only TEXT] [--batch 2] [--sequence 64] [--write FOLDER]

Cases are those of model_costs.json, with few layers. FLOPs are what torch's FlopCounterMode counts on
the meta device, a grouped matmul's with a formula of its own; saved are the distinct storages that
autograd keeps on fake CUDA tensors (saved_tensors_hooks), parameters, buffers and inputs excluded.
Attention is FlashAttention's operator, and the efficient one where flash cannot (heads above 256,
values of another size, a bias); neither has a mask. Scans are stand-ins (cuda_kernels.py). Everything
is bf16 and in training mode, as in tests/golden/models/README.md, whose records --write makes of cases
that name one.

A case may say its "sequence"; its "labels"; a "mask" for classes that make one in fp32 where they are
given none, and one that "makes_mask" where modules read it; the "unknown" number that a tensor without
data has; "fake" and "cast", which see below; and a "share" by which saved may differ: transformers adds a
mask to a bias of distances in each layer, this program's attention does not, and LUKE clamps the places
of answers where they are. "scan": operations a token
of scans by formula, which no counter sees (RWKV: 20 a channel and layer; xLSTM: 2 c (K + V) + 4 K V a
head and layer).
"""

import argparse
import contextlib
import json
import os
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
import transformers.masking_utils
import transformers.models.fsmt.modeling_fsmt
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula
from transformers import AttentionInterface
from transformers.core_model_loading import revert_weight_conversion
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import cuda_kernels
from eager_records import folded
from models import ask_with, shapes_of

cuda_kernels.put_in_place()
# Checks of transformers and torch that read data, which these tensors do not have.
transformers.masking_utils.find_packed_sequence_indices = lambda *_, **__: None
transformers.models.fsmt.modeling_fsmt.make_padding_mask = lambda *_, **__: None
torch.distributions.Distribution.set_default_validate_args(False)
torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
read_number = torch.Tensor.item
unknown_number = 1.0  # of a tensor without data; cases may say another


def number_or_one(tensor):
    try:
        return read_number(tensor)
    except (RuntimeError, DataDependentOutputException):
        return unknown_number


torch.Tensor.item = number_or_one
read_truth = torch.Tensor.__bool__


def truth_or_true(tensor):
    try:
        return read_truth(tensor)
    except (RuntimeError, DataDependentOutputException):
        return True


torch.Tensor.__bool__ = truth_or_true
read_part, write_part = torch.Tensor.__getitem__, torch.Tensor.__setitem__


def all_of(mask):
    """Of a mask of examples, X-MOD's of a language: all are set."""
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.dim() != 1:
        return mask
    return torch.arange(mask.shape[0], device=mask.device)


torch.Tensor.__getitem__ = lambda tensor, mask: read_part(tensor, all_of(mask))
torch.Tensor.__setitem__ = lambda tensor, mask, value: write_part(tensor, all_of(mask), value)


@register_flop_formula(torch.ops.aten._grouped_mm)
def grouped_matmul_flops(rows, weight, *_, **__):
    out = weight[2] if len(weight) == 3 else weight[1]
    return 2 * rows[0] * rows[1] * out


def repeated(x, groups):
    batch, heads, tokens, width = x.shape
    wide = x[:, :, None].expand(batch, heads, groups, tokens, width)
    return wide.reshape(batch, heads * groups, tokens, width)


class WithSinks(torch.autograd.Function):
    """The kernel's result again; sinks have a gradient."""

    @staticmethod
    def forward(ctx, out, sinks):
        ctx.shape = sinks.shape
        return out.view_as(out)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient.new_zeros(ctx.shape)


def fused(_module, query, key, value, attention_mask=None, dropout=0.0, scaling=None, position_bias=None, s_aux=None,
          **_rest):
    if attention_mask is not None and attention_mask.requires_grad:  # Doge's, made of values
        position_bias = attention_mask
    flash = query.shape[-1] == value.shape[-1] <= 256 and position_bias is None
    if flash:
        out = torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout, False, False, scale=scaling)[0]
    else:
        groups = query.shape[1] // key.shape[1]
        if groups > 1:
            key, value = repeated(key, groups), repeated(value, groups)
        out = torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, position_bias, True, dropout, False, scale=scaling)[0]
    if s_aux is not None:
        out = WithSinks.apply(out, s_aux)
    return out.transpose(1, 2).contiguous(), None


makes_mask = False  # for classes whose modules read one; the kernel has its own


def mask_of(batch_size, q_length, kv_length, device=None, **_):
    if not makes_mask:
        return None
    return torch.zeros(batch_size, 1, q_length, kv_length, dtype=torch.bfloat16, device=device)


AttentionInterface.register("shardsim_fused", fused)
ALL_MASK_ATTENTION_FUNCTIONS.register("shardsim_fused", mask_of)


# Values of parameters, which these have none of; ties are made all the same.
transformers.PreTrainedModel.initialize_weights = lambda _self: None


def narrow(model):
    known = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in known:
                known[id(parameter)] = parameter, torch.nn.Parameter(
                    torch.empty(parameter.shape, dtype=torch.bfloat16))
            module._parameters[name] = known[id(parameter)][1]


def build(case):
    global makes_mask, unknown_number
    makes_mask = case.get("makes_mask", False)
    unknown_number = case.get("unknown", 1.0)
    keys = dict(case["config"])
    config = CONFIG_MAPPING[keys.pop("model_type")](**keys)
    model = getattr(transformers, case["architecture"])._from_config(
        config, dtype=torch.bfloat16, attn_implementation=case.get("attention", "shardsim_fused"))
    if case.get("cast"):  # of parameters that the class makes in fp32 on the CPU whatever it is told
        narrow(model)
    return model.train(), json.loads(config.to_json_string(use_diff=False))


def loss_of(model, case, batch, sequence, device):
    """(the loss, the inputs)."""
    numbers = lambda *shape: torch.zeros(*shape, dtype=torch.long, device=device)
    inputs = {"input_ids": numbers(batch, sequence)}
    if case.get("mask"):  # which some classes make in fp32 where they are given none
        inputs["attention_mask"] = numbers(batch, sequence)
    if case.get("labels") == "sequence":
        inputs["labels"] = numbers(batch)
    elif case.get("labels") == "choices":  # two texts an example
        inputs = {"input_ids": numbers(batch // 2, 2, sequence), "labels": numbers(batch // 2)}
    elif case.get("labels") == "none" and model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = numbers(batch, sequence)
    elif case.get("labels") == "pretraining":
        second = "sentence_order_label" if "Albert" in case["architecture"] else "next_sentence_label"
        inputs |= {"labels": numbers(batch, sequence), second: numbers(batch)}
    elif case.get("labels") == "span":
        inputs |= {"start_positions": numbers(batch), "end_positions": numbers(batch)}
    elif case.get("labels") != "none":
        inputs["labels"] = numbers(batch, sequence)
    # A cache would copy keys and values, which no training step does.
    how = {"use_cache": False} if getattr(model.config.get_text_config(), "use_cache", False) else {}
    if "T5GemmaForSequence" in case["architecture"]:  # which says so itself
        how = {}
    return inputs, lambda: model(**inputs, **how, return_dict=True)


def without_data(case):
    """Where a case's tensors are: meta, or fake ones of the CPU where autograd reads a number."""
    if not case.get("fake"):
        return torch.device("meta")
    both = contextlib.ExitStack()
    both.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
    both.enter_context(torch.device("cpu"))
    return both


def by_operator(counter):
    return {str(op).removeprefix("aten."): flops
            for op, flops in counter.get_flop_counts().get("Global", {}).items()}


def record_of(case, batch, sequence):
    """As tests/golden/models has them."""
    with torch.device("meta"):
        model, config = build(case)
    parameters, ties = shapes_of(model)
    names = dict(model.named_parameters(remove_duplicate=False))
    state = dict(model.state_dict())
    files = {name: list(t.shape) for name, t in revert_weight_conversion(model, state).items()}
    forward, backward = count_flops(case, batch, sequence)
    both = {op: forward.get(op, 0) + backward.get(op, 0) for op in forward | backward}
    saved, kept, _ = count_saved(case, batch, sequence)
    embeddings = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Embedding))
    elements = sum(names[name].numel() for name in parameters)
    shape = [batch, sequence]
    inputs = {"input_ids": shape} | ({"attention_mask": shape} if case.get("mask") else {})
    if case.get("labels") == "span":
        inputs |= {"start_positions": [batch], "end_positions": [batch]}
    else:
        inputs["labels"] = [batch] if case.get("labels") == "sequence" else shape
    point = {"batch": batch, "sequence": sequence, "inputs": inputs}
    scan = {}
    if "scan" in case:
        scan = {"scan_forward_by_formula_not_counted_above": case["scan"] * batch * sequence}
    record = {
        "model": case["record"], "architecture": case["architecture"],
        "family": config["model_type"], "kind": case["kind"],
        "source": "written out for this test: the class's defaults, made small", "dtype": "bfloat16",
        "config": config | {"architectures": [case["architecture"]]},
        "architecture_class": case["architecture"], "parameters": folded(parameters),
        "parameter_dtypes": {"bfloat16": elements}, "total_parameters": elements, "tied": ties,
        "embedding_parameters": embeddings,
        "persistent_buffers": {name: [list(t.shape), str(t.dtype)[6:]]
                               for name, t in state.items() if name not in names},
        "flops": [point | {"forward": forward, "forward_total": sum(forward.values()),
                           "forward_backward": both, "forward_backward_total": sum(both.values())} | scan],
        "saved_activations": [point | {"total_bytes": saved, "tensors": kept, "per_layer": {}}],
        "notes": [f"torch {torch.__version__.split('+')[0]}, transformers "
                  f"{transformers.__version__}, Python {sys.version.split()[0]}",
                  "tests/oracle/model_costs.py --write"],
    }
    if {name: list(t.shape) for name, t in state.items()} != files:
        record["hub_tensors"] = folded(files)
    return record


def count_flops(case, batch, sequence):
    with without_data(case):
        model, _ = build(case)
        _, run = loss_of(model, case, batch, sequence, "cpu" if case.get("fake") else "meta")
        with FlopCounterMode(display=False) as forward:
            out = run()
            states = "embeddings" if "Retrieval" in case["architecture"] else "last_hidden_state"
            loss = out[states].sum() if case.get("labels") == "none" else out.loss
        with FlopCounterMode(display=False) as backward:
            loss.backward()
    return by_operator(forward), by_operator(backward)


def count_saved(case, batch, sequence):
    seen, kept = {}, []
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"):
        model, config = build(case)
        inputs, run = loss_of(model, case, batch, sequence, "cuda")
        stored = [*model.parameters(), *model.buffers(), *inputs.values()]
        apart = {tensor.untyped_storage()._cdata for tensor in stored}

        def pack(tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in apart and storage._cdata not in seen:
                seen[storage._cdata] = storage.nbytes()
                kept.append(tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            run()
    return sum(seen.values()), len(seen), config


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="", help="cases whose architecture contains this")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--write", metavar="FOLDER", help="where records of cases that name one go")
    arguments = parser.parse_args()
    with open(os.path.join(os.path.dirname(__file__), "model_costs.json"), encoding="utf-8") as file:
        cases = json.load(file)
    failed = 0
    for case in cases:
        name = case["architecture"]
        if arguments.only not in name:
            continue
        batch, sequence = arguments.batch, case.get("sequence", arguments.sequence)
        if arguments.write:
            if "record" in case:
                path = os.path.join(arguments.write, case["record"] + ".json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(record_of(case, batch, sequence), file, indent=1)
                    file.write("\n")
            continue
        forward, backward = (sum(flops.values()) for flops in count_flops(case, batch, sequence))
        saved, _, config = count_saved(case, batch, sequence)
        report, error = ask_with(arguments.shardsim, config | {"architectures": [name]},
                                 "--batch", str(batch), "--sequence", str(sequence))
        if report is None:
            print(f"{name}: {error}")
            failed += 1
            continue
        flops = report["flops"]
        gap = report["saved_activation_bytes"] / saved - 1
        same = (flops["forward"] == forward and flops["forward_backward"] == forward + backward and
                abs(gap) <= case.get("share", 0))
        failed += not same
        print(f"{name}: forward {flops['forward']} of {forward}, both {flops['forward_backward']} of "
              f"{forward + backward}, saved {100 * gap:+.3f} %, {'as torch' if same else 'different'}")
    print(f"{len(cases)} models, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
