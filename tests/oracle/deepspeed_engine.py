"""DeepSpeed's engine without devices: what a rank sends in its training steps, and what it holds.

The process group is PyTorch's fake one and tensors have no data; DeepSpeed's CPU accelerator says that
it is asynchronous, as a GPU is, with streams and events that do nothing. A number read from a tensor is
0: nothing overflows, and clipping scales nothing. Calls between hosts of Python objects are left out,
and so are kernels of quantization, whose results have the shapes that theirs have.
"""

import contextlib
import logging
import os
import sys
import weakref

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

import deepspeed
from deepspeed.comm.torch import TorchBackend
from deepspeed.accelerator import get_accelerator
from deepspeed.runtime.zero import partition_parameters, partitioned_param_coordinator, stage3
from deepspeed.utils import logger

logger.setLevel(logging.CRITICAL)

# Of an operator of c10d: the kind, and which of its tensors are the payload.
KINDS = {"_allgather_base_": ("all-gather", 0), "_reduce_scatter_base_": ("reduce-scatter", 1),
         "allreduce_": ("all-reduce", 0), "broadcast_": ("broadcast", 0), "reduce_": ("reduce", 0),
         "allgather_": ("all-gather", 0), "reduce_scatter_": ("reduce-scatter", 1),
         "alltoall_base_": ("all-to-all", 0), "alltoall_": ("all-to-all", 0),
         "send": ("send", 0), "recv_": ("receive", 0)}

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.float64: "fp64",
          torch.int8: "int8", torch.uint8: "uint8", torch.int32: "int32", torch.int64: "int64"}


def ranks_text(ranks):
    """"8 from 0", "4 from 0 by 2", or all of them."""
    step = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if list(ranks) != list(range(ranks[0], ranks[0] + step * len(ranks), step)):
        return ",".join(map(str, ranks))
    return f"{len(ranks)} from {ranks[0]}" + (f" by {step}" if step > 1 else "")


class Stream:
    """Of a device that does not wait."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def _nothing(self, *_, **__):
        return None

    wait_stream = wait_event = synchronize = record = record_event = wait = _nothing

    def query(self):
        return True


class Accelerator(type(get_accelerator())):
    """The CPU's, asynchronous."""

    Stream = Event = property(lambda self: Stream)

    def is_synchronized_device(self):
        return False

    def stream(self, _):
        return contextlib.nullcontext()

    def current_stream(self, device_index=None):
        return Stream()

    default_stream = current_stream

    def device_count(self):
        return 8

    def is_fp16_supported(self):
        return True

    def supported_dtypes(self):
        return list(MODEL_DTYPES.values())

    def on_accelerator(self, tensor):
        return True

    def available_memory(self, device_index=None):
        return 1 << 50

    def pin_memory(self, tensor, align_bytes=1):
        return tensor

    def is_pinned(self, tensor):
        return True


class Quantizer:
    """Results of the shapes that the CUDA kernels' have: int8, and a scale of each group in fp32."""

    Symmetric = 0

    def quantize(self, tensor, groups, *_):
        return (torch.empty(tensor.shape, dtype=torch.int8, device=tensor.device),
                torch.empty(groups, 1, dtype=torch.float32, device=tensor.device))

    def dequantize(self, quantized, *_):
        return torch.empty(quantized.shape, dtype=torch.float16, device=quantized.device)


class Log(TorchDispatchMode):
    """Calls of process groups in order, and bytes of all storages that are alive."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.alive = {}
        self.bytes = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            return 0
        name = str(func).split(".")
        if name[0] == "c10d":
            self.add_call(name[1], func, args, kwargs or {})
        out = func(*args, **(kwargs or {}))
        place = self.place_of_sum(func, args)
        self.bytes -= place
        for leaf in torch.utils._pytree.tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.hold(leaf)
        self.bytes += place
        return out

    def place_of_sum(self, func, args):
        """Bytes of the first of two gradients that autograd adds up: the sum is made there, if nobody
        else holds it, as the base of a view does, but not of FakeTensors, which are a subclass
        (torch/csrc/autograd/input_buffer.cpp, accumulate and can_accumulate_inplace). It ends with
        this operator."""
        if func is not torch.ops.aten.add.Tensor or not isinstance(args[1], torch.Tensor):
            return 0
        if args[0]._base is not None:
            return 0
        caller = sys._getframe(1)
        while caller.f_code.co_name in ("__torch_dispatch__", "_fn", "inner"):
            caller = caller.f_back
        if caller.f_code.co_name != "_engine_run_backward":
            return 0
        return self.alive.get(args[0].untyped_storage()._cdata, 0)

    def add_call(self, name, func, args, kwargs):
        if name in ("barrier", "monitored_barrier_"):
            return
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args)) | kwargs
        group = torch.distributed.ProcessGroup.unbox(given["process_group"])
        if group.size() == 1:
            return
        kind, whole = KINDS[name]
        ranks = torch.distributed.get_process_group_ranks(group)
        payload = tensors[whole]
        dtype = DTYPES[payload.dtype]
        self.calls.append(f"{kind} {ranks_text(ranks)} {payload.numel() * payload.element_size()} {dtype}")

    def hold(self, tensor):
        if tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        known = self.alive.get(key)
        if known is not None:
            return
        size = storage.nbytes()
        self.alive[key] = size
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(storage, self.let_go, key)

    def let_go(self, key):
        self.bytes -= self.alive.pop(key, 0)


def put_in_place():
    """Once for a process."""
    accelerator = get_accelerator()
    accelerator.__class__ = Accelerator
    torch.nn.Module._apply = lambda module, *_, **__: module  # models are made as they are to be
    TorchBackend.__init__.__globals__["build_shm_op"] = lambda: None  # shared memory of processes
    torch.Tensor.record_stream = FakeTensor.record_stream = lambda *_: None
    for module in (stage3, partitioned_param_coordinator, partition_parameters):
        if hasattr(module, "assert_ints_same_as_other_ranks"):
            module.assert_ints_same_as_other_ranks = lambda *_: None
    partition_parameters.CUDAQuantizer.quantizer_cuda_module = Quantizer()


def open_world(world, rank=0):
    torch.distributed.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    os.environ |= {"WORLD_SIZE": str(world), "RANK": str(rank), "LOCAL_RANK": "0",
                   "LOCAL_SIZE": "8"}
    deepspeed.init_distributed(dist_backend="fake", verbose=False)


MODEL_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def in_order_of_use(model, run):
    """Modules registered in the order in which they are first run."""
    order = {}
    hooks = [module.register_forward_pre_hook(lambda m, _: (order.setdefault(m, len(order)), None)[1])
             for module in model.modules()]
    run()
    for hook in hooks:
        hook.remove()
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList):
            continue
        children = sorted(module._modules.items(),
                          key=lambda item: min((order[m] for m in (item[1].modules() if item[1] else ())
                                                if m in order), default=len(order)))
        module._modules.clear()
        module._modules.update(children)


class Attention(torch.nn.Module):
    """A module of its own in a plan, as torchtitan has it; in transformers a function."""

    def forward(self, function, *operands, **rest):
        return function(self, *operands, **rest)


def attention_in_a_module(function):
    """Of the attention functions that modules of transformers call."""
    def call(module, query, key, value, *rest, **named):
        if "attention" not in module._modules:
            module.attention = Attention()
        return module.attention(function, query, key, value, *rest, **named)

    return call


def hide_modules_without_parameters(model):
    """From DeepSpeed, which gathers ahead whenever a module is entered: activations, dropout, tables of
    rotary positions are functions in a plan."""
    for module in model.modules():
        for name, child in list(module._modules.items()):
            if child is None or isinstance(child, Attention):
                continue
            if not any(True for _ in child.parameters()):
                del module._modules[name]
                module.__dict__[name] = child


def run_steps(model, config, batches, steps=2):
    """What a rank sends in each step, the bytes it holds after each, and the peak within each;
    `batches` is called for the loss of a microbatch of the engine."""
    calls, held, peaks = [], [], []
    trained = [p for p in model.parameters() if p.requires_grad]
    with Log() as log:
        for tensor in [*model.parameters(), *model.buffers()]:
            log.hold(tensor)
        engine = deepspeed.initialize(model=model, config=config,
                                      optimizer=torch.optim.AdamW(trained, fused=True))[0]
        for _ in range(steps):
            log.calls, log.peak = [], log.bytes
            for _ in range(config["gradient_accumulation_steps"]):
                loss = batches(engine)
                engine.backward(loss)
                engine.step()
                del loss
            calls.append(log.calls)
            held.append(log.bytes)
            peaks.append(log.peak)
    return engine, calls, held, peaks
