"""One training step of Megatron-Core on one rank, without devices: what it sends, in order, its
gradient buffers and what it holds.

    megatron_worker.py CASE.json RECORD.json ...

CASE has `model`, `settings`, `world_size` and `rank` as the records of tests/golden/megatron have them,
and RECORD is such a record, as far as megatron_golden_test reads it. Process groups are PyTorch's
`fake` ones and tensors have no data: nothing is sent or computed (megatron_stand_ins.py). Each case is
a process of its own.
"""

import dataclasses
import sys

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

import golden_steps
import megatron_stand_ins as stand_ins
from call_recorder import Recorder, size

stand_ins.no_devices()

from megatron.core import parallel_state as state
from megatron.core import tensor_parallel
from megatron.core.distributed import (DistributedDataParallel, DistributedDataParallelConfig,
                                       finalize_model_grads)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt import gpt_layer_specs as specs
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer import MLATransformerConfig, TransformerConfig
from megatron.core.transformer.module import Float16Module

stand_ins.take_places()


def transformer_config(model, settings):
    layers = settings["layers"] or model["num_layers"]
    given = dict(
        num_layers=layers, hidden_size=model["hidden_size"], ffn_hidden_size=model["ffn_hidden_size"],
        num_attention_heads=model["num_attention_heads"], num_query_groups=model["num_query_groups"],
        normalization=model["normalization"], gated_linear_unit=model["gated_linear_unit"],
        activation_func=torch.nn.functional.silu if model["gated_linear_unit"]
        else torch.nn.functional.gelu,
        add_bias_linear=model["add_bias_linear"], bias_activation_fusion=True,
        bias_dropout_fusion=True, apply_rope_fusion=False, masked_softmax_fusion=False,
        attention_dropout=0.0, hidden_dropout=0.0, persist_layer_norm=False, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
        tensor_model_parallel_size=settings["tp"], pipeline_model_parallel_size=settings["pp"],
        virtual_pipeline_model_parallel_size=settings["vpp"],
        context_parallel_size=settings["cp"], expert_model_parallel_size=settings["ep"],
        sequence_parallel=settings["sp"], perform_initialization=False,
        gradient_accumulation_fusion=settings["wgrad_fusion"],
        cross_entropy_loss_fusion=settings["ce_fusion"],
        calculate_per_token_loss=settings["per_token"],
        deallocate_pipeline_outputs=True, batch_p2p_comm=settings["vpp"] is None,
        overlap_p2p_comm=settings["vpp"] is not None, batch_p2p_sync=False,
        microbatch_group_size_per_vp_stage=settings["group"] or settings["pp"],
        num_layers_in_first_pipeline_stage=settings["first"],
        num_layers_in_last_pipeline_stage=settings["last"],
        account_for_embedding_in_pipeline_split=settings["emb_split"],
        account_for_loss_in_pipeline_split=settings["loss_split"],
        mtp_num_layers=settings["mtp"] or None, qk_layernorm=model.get("qk_layernorm", False))
    if settings["etp"] is not None:
        given["expert_tensor_parallel_size"] = settings["etp"]
    if settings["layout"]:
        given["pipeline_model_parallel_layout"] = settings["layout"]
    if model.get("kv_channels"):
        given["kv_channels"] = model["kv_channels"]
    for key, value in model.items():
        if key.startswith("moe_") or key == "num_moe_experts":
            given[key] = value
    if model.get("num_moe_experts"):
        given.update(moe_token_dispatcher_type=settings["dispatcher"], moe_grouped_gemm=False,
                     moe_shared_expert_overlap=settings["shared_overlap"])
        if settings["capacity"] is not None:
            given.update(moe_expert_capacity_factor=settings["capacity"],
                         moe_pad_expert_input_to_capacity=True)
    if settings["recompute"] == "full":
        given.update(recompute_granularity="full", recompute_method="uniform",
                     recompute_num_layers=1)
    elif settings["recompute"]:
        given.update(recompute_granularity="selective", recompute_modules=settings["recompute"])
    kind = TransformerConfig
    if model.get("multi_latent_attention"):
        kind = MLATransformerConfig
        given.update(multi_latent_attention=True, rope_type="rope")
        for key in ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"):
            given[key] = model[key]
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = set(given) - known
    assert not unknown, unknown
    return kind(**given)


def padded(vocabulary, tensor):
    multiple = 128 * tensor
    return -(-vocabulary // multiple) * multiple


def build_chunk(config, model, settings, chunk, pre, post):
    if model.get("num_moe_experts"):
        layers = specs.get_gpt_decoder_block_spec(config, use_transformer_engine=False,
                                                  normalization=model["normalization"],
                                                  vp_stage=chunk)
    else:
        layers = specs.get_gpt_layer_local_spec(
            qk_layernorm=config.qk_layernorm,
            multi_latent_attention=bool(model.get("multi_latent_attention")),
            normalization=model["normalization"])
    more = {}
    if settings["mtp"]:
        more["mtp_block_spec"] = specs.get_gpt_mtp_block_spec(
            config, layers, use_transformer_engine=False, vp_stage=chunk)
    tied = settings["tied"] if settings["tied"] is not None else not model["untie"]
    return GPTModel(
        config=config, transformer_layer_spec=layers,
        vocab_size=padded(model["vocab_size"], settings["tp"]),
        max_sequence_length=model.get("max_position_embeddings", settings["seq"]), pre_process=pre, post_process=post,
        parallel_output=True, share_embeddings_and_output_weights=tied,
        position_embedding_type=model["position_embedding_type"], vp_stage=chunk, **more)


def named_groups():
    """The ranks of each group of this rank, and a name for each set of ranks, as records have them."""
    named = {
        "tp": state.get_tensor_model_parallel_group(), "pp": state.get_pipeline_model_parallel_group(),
        "cp": state.get_context_parallel_group(), "ep": state.get_expert_model_parallel_group(),
        "expt_tp": state.get_expert_tensor_parallel_group(),
        "tp_ep": state.get_expert_tensor_and_model_parallel_group(),
        "dp_cp": state.get_data_parallel_group(with_context_parallel=True),
        "dp": state.get_data_parallel_group(),
        "expt_dp": state.get_expert_data_parallel_group(),
        "intra_dp_cp": state.get_data_parallel_group(with_context_parallel=True,
                                                     partial_data_parallel=True),
        "intra_expt_dp": state.get_expert_data_parallel_group(partial_expert_data_parallel=True),
        "tp_cp": state.get_tensor_and_context_parallel_group(),
        "tp_dp_cp": state.get_tensor_and_data_parallel_group(with_context_parallel=True),
        "mp": state.get_model_parallel_group(),
        "expt_mp": state.get_expert_tensor_model_pipeline_parallel_group(),
        "embd": state.get_embedding_group(check_initialized=False),
        "pos_embd": state.get_position_embedding_group(check_initialized=False),
    }
    named["inter_dist_opt"] = state.get_inter_distributed_optimizer_instance_group(
        check_initialized=False)
    named["intra_dist_opt"] = state.get_intra_distributed_optimizer_instance_group()
    ranks, names = {}, {torch.distributed.group.WORLD.group_name: "world"}
    for name, group in named.items():
        groups = group if isinstance(group, list) else [group]
        for one in groups:
            if one is not None and one is not torch.distributed.GroupMember.NON_GROUP_MEMBER:
                ranks[name] = torch.distributed.get_process_group_ranks(one)
                names.setdefault(one.group_name, name)
    return ranks, names


def step(chunks, optimizer, config, settings, recorder, sequence):
    config.finalize_model_grads_func = finalize_model_grads
    size = settings["mbs"]

    def loss(output):
        tokens = torch.empty((), dtype=torch.int32)
        total = output.sum()
        if settings["per_token"]:
            return total, tokens, {}
        return total / settings["seq"], {}

    def forward(iterator, chunk):
        tokens = torch.zeros((size, sequence), dtype=torch.int64)
        labels = torch.zeros((size, sequence), dtype=torch.int64)
        positions = torch.zeros((size, sequence), dtype=torch.int64)
        recorder.phase = "forward"
        output = chunk(tokens, positions, None, labels=labels)
        recorder.phase = "backward"
        return output, loss

    for chunk in chunks:
        chunk.zero_grad_buffer()
    optimizer.zero_grad()
    recorder.phase = "backward"  # and messages
    get_forward_backward_func()(
        forward_step_func=forward, data_iterator=[None] * len(chunks) if len(chunks) > 1 else None,
        model=chunks if len(chunks) > 1 else chunks[0], num_microbatches=settings["microbatches"],
        seq_length=settings["seq"], micro_batch_size=size, forward_only=False)
    recorder.phase = "optimizer"
    optimizer.step()


def build(config, model, settings):
    chunks = []
    pipeline = settings["pp"]
    rank = state.get_pipeline_model_parallel_rank()
    for chunk in range(settings["vpp"] or 1):
        pre = rank == 0 and chunk == 0
        post = rank == pipeline - 1 and chunk == (settings["vpp"] or 1) - 1
        module = build_chunk(config, model, settings, chunk if settings["vpp"] else None, pre, post)
        module = Float16Module(config, module)
        chunks.append(module)
    wrapped = []
    for index, module in enumerate(chunks):
        wrapped.append(DistributedDataParallel(
            config=config,
            ddp_config=DistributedDataParallelConfig(
                grad_reduce_in_fp32=settings["grad_fp32"], overlap_grad_reduce=settings["overlap_grad"],
                overlap_param_gather=settings["overlap_param"],
                align_param_gather=False, use_distributed_optimizer=settings["dist_opt"],
                num_distributed_optimizer_instances=settings["instances"],
                bucket_size=settings["bucket_size"], average_in_collective=settings["avg"],
                pad_buckets_for_high_nccl_busbw=settings["busbw"]),
            module=module, disable_bucketing=index > 0))
    return wrapped


def run(case):
    model, settings = case["model"], case["settings"]
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"],
                                         world_size=case["world_size"])
    state.initialize_model_parallel(
        settings["tp"], settings["pp"], settings["vpp"], context_parallel_size=settings["cp"],
        expert_model_parallel_size=settings["ep"], expert_tensor_parallel_size=settings["etp"],
        num_distributed_optimizer_instances=settings["instances"], create_gloo_process_groups=False)
    groups, names = named_groups()
    recorder = Recorder(names)
    with FakeTensorMode(allow_non_fake_inputs=True), stand_ins.OnCpu(), recorder:
        tensor_parallel.model_parallel_cuda_manual_seed(1)
        config = transformer_config(model, settings)
        if model.get("num_moe_experts"):
            stand_ins.even_experts(config)
        chunks = build(config, model, settings)
        optimizer = get_megatron_optimizer(
            OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16,
                            use_distributed_optimizer=settings["dist_opt"],
                            clip_grad=settings["clip"],
                            overlap_param_gather=settings["overlap_param"]), chunks,
            use_gloo_process_groups=False)
        config.grad_scale_func = optimizer.scale_loss
        if settings["overlap_grad"]:  # as training.py has them, align_grad_reduce by default
            one = len(chunks) == 1
            config.no_sync_func = chunks[0].no_sync if one else [c.no_sync for c in chunks]
            config.grad_sync_func = (chunks[0].start_grad_sync if one
                                     else [c.start_grad_sync for c in chunks])
        sequence = settings["seq"] // settings["cp"]
        step(chunks, optimizer, config, settings, recorder, sequence)
        recorder.start()
        step(chunks, optimizer, config, settings, recorder, sequence)
    return record_of(case, groups, chunks, recorder)


def record_of(case, groups, chunks, recorder):
    model, settings = case["model"], case["settings"]
    distinct, order = recorder.distinct_calls()
    data = case["world_size"] // (settings["tp"] * settings["pp"] * settings["cp"])
    experts = (settings["etp"] or settings["tp"]) * settings["ep"] * settings["pp"]
    params = sum(b.param_data.nbytes if b.param_data is not None else 0
                 for c in chunks for b in c.buffers + c.expert_parallel_buffers)
    if not params:
        params = size(list(p for c in chunks for p in c.parameters()))
    buffers = []
    for index, chunk in enumerate(chunks):
        for kind, held in (("dense", chunk.buffers), ("expert", chunk.expert_parallel_buffers)):
            for buffer in held:
                buffers.append({"chunk": index, "buffer": kind, "buckets": [
                    {"numel": bucket.grad_data.numel()} for bucket in buffer.buckets]})
    grads = sum(b.grad_data.nbytes for c in chunks for b in c.buffers + c.expert_parallel_buffers)
    return {"id": case["id"], "model": model, "world_size": case["world_size"], "rank": case["rank"],
            "mesh": [["pp", settings["pp"]], ["dp", data], ["cp", settings["cp"]], ["tp", settings["tp"]]],
            "expert_mesh": [["pp", settings["pp"]], ["expt_dp", case["world_size"] // experts],
                            ["ep", settings["ep"]], ["expt_tp", settings["etp"] or settings["tp"]]],
            "groups": groups, "strategy": {"settings": settings},
            "batch": {"micro_batch": settings["mbs"], "sequence": settings["seq"],
                      "microbatches": settings["microbatches"]},
            "buffers": buffers, "collectives": distinct, "order": [[order, 1]],
            "memory": {"marks": {"step2 end": {"params": params, "grad_buffer": grads,
                                               "other": recorder.left()}},
                       "peak": {"total": recorder.peak}}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(golden_steps.record_each(run))
