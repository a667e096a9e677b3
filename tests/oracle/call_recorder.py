"""What a step sends and holds, of tensors without data and process groups that send nothing."""

import json
import weakref

import torch
import torch.distributed
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {"_allgather_base_": "all_gather", "_reduce_scatter_base_": "reduce_scatter",
         "allreduce_": "all_reduce", "alltoall_base_": "all_to_all", "alltoall_": "all_to_all",
         "send": "send", "recv_": "recv", "broadcast_": "broadcast", "allgather_": "all_gather",
         "reduce_scatter_": "reduce_scatter", "scatter_": "scatter"}
FUNCTIONAL = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter",
              "all_reduce": "all_reduce", "all_to_all_single": "all_to_all"}


def size(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Recorder(TorchDispatchMode):
    """Calls of process groups in order, and bytes of the storages that live."""

    current = None
    within_kernel = False  # what is made there is nowhere in memory

    def __init__(self, groups):
        super().__init__()
        Recorder.current = self
        self.groups = groups  # the name of a group by its own
        self.calls = []
        self.phase = ""
        self.live = 0
        self.peak = 0
        self.storages = {}
        self.before = set()
        self.made = self.until_peak = 0  # storages
        self.born = {}  # which of them each is

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        if any(issubclass(kind, DTensor) for kind in types_):
            return NotImplemented  # what it is made of comes here
        namespace, name = str(func).split(".")[:2]
        if namespace == "c10d":
            self.call(name, args)
        result = func(*args, **(kwargs or {}))
        if namespace == "_c10d_functional" and name in FUNCTIONAL:
            self.functional_call(name, args, result)
        if namespace == "cplib":  # context parallelism's own operators: keys', then values'
            kind = "reduce_scatter" if name.endswith("backward") else "all_gather"
            for mine, given in zip(args[:2], result):
                self.add(kind, args[3], [mine], [given])
        for leaf in torch.utils._pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf)
        return result

    def see(self, tensor):
        if Recorder.within_kernel:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.storages:
            return
        count = storage.nbytes()
        self.made += 1
        self.born[key] = self.made
        self.grow(count)

        def gone(_, key=key):
            self.live -= self.storages.pop(key, (None, 0))[1]
        self.storages[key] = (weakref.ref(storage, gone), count)

    def resize(self, tensor, count):
        """Its storage has other bytes from here on."""
        key = tensor.untyped_storage()._cdata
        if key in self.storages:
            reference, before = self.storages[key]
            self.storages[key] = (reference, count)
            self.grow(count - before)

    def grow(self, count):
        self.live += count
        if self.live > self.peak:
            self.peak, self.until_peak = self.live, self.made

    def left(self):
        """Bytes of the step's messages that nobody has freed, of those that the peak has."""
        sizes = {call["bytes_in"] for call in self.calls if call["kind"] in ("send", "recv")}
        return sum(count for key, (_, count) in self.storages.items()
                   if count in sizes and key not in self.before
                   and self.born[key] <= self.until_peak)

    def start(self):
        """A step from here on."""
        self.calls.clear()
        self.peak, self.until_peak = self.live, self.made
        self.before = set(self.storages)

    def distinct_calls(self):
        """Those that differ from each other, and their places in the order of the step."""
        seen, order, distinct = {}, [], []
        for call in self.calls:
            key = json.dumps(call)
            if key not in seen:
                seen[key] = len(distinct)
                distinct.append(call)
            order.append(seen[key])
        return distinct, order

    def call(self, name, args):
        kind = KINDS[name]
        leaves = torch.utils._pytree.tree_leaves(args)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        group = next(leaf for leaf in leaves if isinstance(leaf, torch.ScriptObject))
        group = torch.distributed.ProcessGroup.unbox(group)
        if group.size() == 1:
            return
        if kind == "reduce_scatter" or kind == "all_gather" or kind == "all_to_all":
            whole_out = name in ("allgather_", "reduce_scatter_", "alltoall_")
            if whole_out:
                outputs = [t for t in torch.utils._pytree.tree_leaves(args[0])]
                inputs = [t for t in torch.utils._pytree.tree_leaves(args[1])]
            else:
                outputs, inputs = [tensors[0]], [tensors[1]]
        else:
            outputs = inputs = tensors[:1]
        peer = {"peer": args[2]} if kind in ("send", "recv") else {}
        self.add(kind, group.group_name, inputs, outputs, **peer)

    def functional_call(self, name, args, result):
        kind = FUNCTIONAL[name]
        splits = {}
        if kind == "all_to_all":
            splits = {"out_splits": [str(n) for n in args[1]], "in_splits": [str(n) for n in args[2]]}
        group = args[-1] if isinstance(args[-1], str) else args[-1].group_name
        self.add(kind, group, [args[0]], [result], **splits)

    def add(self, kind, group, inputs, outputs, **more):
        size_of_group = torch.distributed.distributed_c10d._resolve_process_group(group).size()
        self.calls.append({"phase": self.phase, "kind": kind, "axis": self.groups[group],
                           "group_size": size_of_group,
                           "dtype": str(inputs[0].dtype).removeprefix("torch."),
                           "bytes_in": size(inputs), "bytes_out": size(outputs), **more})


def as_one_kernel(function):
    """What a compiler makes one kernel of: results alone are in memory."""
    def run(*args, **kwargs):
        outer, Recorder.within_kernel = Recorder.within_kernel, True
        try:
            results = function(*args, **kwargs)
        finally:
            Recorder.within_kernel = outer
        for leaf in torch.utils._pytree.tree_leaves(results):
            if isinstance(leaf, torch.Tensor) and Recorder.current:
                Recorder.current.see(leaf._local_tensor if isinstance(leaf, DTensor) else leaf)
        return results
    return run
