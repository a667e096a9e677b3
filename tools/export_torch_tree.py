#!/usr/bin/env python3
"""Writes the parameter tree of a PyTorch module as `shardsim/parameter-tree/1`.

From Python, with a module on any device, the meta device included:

    from export_torch_tree import export_tree
    with torch.device("meta"):
        model = MyModel()
    export_tree(model, "tree.json", model="my-model")

From a shell, with a function of no arguments that returns the module, called on the meta device:

    python export_torch_tree.py my_package.my_module:build_model -o tree.json

What is recorded, and where it comes from:

    name          of Module.named_parameters(), without the marks of torch.compile and activation
                  checkpointing; a parameter that is used twice is listed once
    shape, dtype  of the whole tensor, also of a DTensor
    spec, mesh    of DTensors (FSDP2, parallelize_module). Shard(d) puts the mesh dimension's name on
                  tensor dimension d; of several on one dimension the leftmost is major, except
                  where _StridedShard, as FSDP2 over tensor parallelism leaves it, says otherwise.
                  Meshes of parameters must be the largest one or parts of it.

Sizes that do not divide are no obstacle: the largest shard is ceil(size / shards) in PyTorch and in
shardsim. A mesh needs names for its dimensions: mesh_dim_names of init_device_mesh, or --axes.
Refused: Partial placements, FSDP1's flat parameters, strides that no order of mesh dimensions
gives.

Needs torch alone, and parameter_tree.py beside it.
"""

import torch
from torch.distributed.tensor import DTensor

from parameter_tree import command_line, document_of, load_function, write_document

WRAPPER_MARKS = ("_orig_mod.", "_checkpoint_wrapped_module.")


def export_tree(module, path, *, model="", source="", axes=()):
    """Writes the parameters of `module` to `path`, compressed when that ends in ".gz". `axes` name
    the dimensions of a mesh that has no names. Raises ValueError for a placement that a
    PartitionSpec does not say."""
    write_document(describe_tree(module, model=model, source=source, axes=axes), path)


def describe_tree(module, *, model="", source="", axes=()):
    """The document that export_tree writes, as a dictionary."""
    parameters = {}
    meshes = []
    for name, parameter in module.named_parameters():
        for mark in WRAPPER_MARKS:
            name = name.replace(mark, "")
        if name in parameters:
            raise ValueError(f"two parameters are named {name!r}")
        parameters[name] = _describe_parameter(name, parameter, axes)
        if isinstance(parameter, DTensor):
            meshes.append((name, _mesh_of(name, parameter.device_mesh, axes)))
            root = _root_of(parameter.device_mesh)
            if root.mesh_dim_names or axes:
                meshes.append((name, _mesh_of(name, root, axes)))
    mesh = _common_mesh(meshes)
    framework = f"torch {torch.__version__}"
    return document_of(framework, parameters, model=model, source=source, mesh=mesh)


def _describe_parameter(name, parameter, axes):
    if name.rpartition(".")[2].startswith("_flat_param"):
        raise ValueError(f"{name}: FSDP1 stores parameters flat, without their shapes; use fully_shard")
    shape = list(parameter.shape)
    dtype = str(parameter.dtype).removeprefix("torch.")
    if dtype == "float4_e2m1fn_x2":  # an element is a pair
        shape[-1] *= 2
        dtype = "float4_e2m1fn"
    described = {"shape": shape, "dtype": dtype}
    if isinstance(parameter, DTensor):
        described["spec"] = _spec_of(name, parameter, axes)
    return described


def _mesh_of(name, mesh, axes):
    """{"fsdp": 2, "tp": 4}: the dimensions of a DeviceMesh, outermost first."""
    names = mesh.mesh_dim_names or tuple(axes)
    if len(names) != mesh.ndim:
        raise ValueError(
            f"{name}: its mesh of shape {tuple(mesh.shape)} has no names for its dimensions; give "
            "mesh_dim_names to init_device_mesh, or name them with --axes"
        )
    return dict(zip(names, mesh.shape))


def _root_of(mesh):
    """The mesh that `mesh` is a part of: itself where this torch does not say."""
    return mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else mesh


def _common_mesh(meshes):
    """The mesh with the most dimensions, of which every other is a part; None without meshes."""
    _, largest = max(meshes, key=lambda named: len(named[1]), default=("", None))
    for name, mesh in meshes:
        for axis, size in mesh.items():
            if largest.get(axis) != size:
                raise ValueError(f"{name}: its mesh {mesh} is no part of the mesh {largest}")
    return largest


def _spec_of(name, parameter, axes):
    """The mesh dimensions that each tensor dimension is split over, major to minor.

    Placements say it from left to right: the leftmost Shard(d) is major. _StridedShard(d, k) comes
    after shards further right that make k parts together: (fsdp: _StridedShard(0, 2), tp: Shard(0))
    on tp=2 is split over tp first. From right to left, each therefore goes in front of what there
    is, or behind the first k parts.
    """
    spec = [[] for _ in parameter.shape]
    sizes = _mesh_of(name, parameter.device_mesh, axes)
    for axis, placement in reversed(list(zip(sizes, parameter.placements))):
        if placement.is_replicate():
            continue
        if placement.is_partial():
            raise ValueError(f"{name}: a partial sum over {axis!r} cannot be written as a spec")
        entry = spec[placement.dim]
        entry.insert(_position(name, placement, entry, sizes), axis)
    return [None if not entry else entry[0] if len(entry) == 1 else entry for entry in spec]


def _position(name, placement, entry, sizes):
    factor = getattr(placement, "split_factor", 1)
    parts = 1
    for position, axis in enumerate(entry):
        if parts == factor:
            return position
        parts *= sizes[axis]
    if parts == factor:
        return len(entry)
    raise ValueError(f"{name}: {placement} is no order of the mesh dimensions {list(sizes)}")


def main():
    parser = command_line(__doc__, "the module")
    parser.add_argument("--axes", default="", metavar="NAME,...", help="for a mesh without names")
    arguments = parser.parse_args()
    function = load_function(arguments.function)
    with torch.device("meta"):
        module = function()
    export_tree(
        module,
        arguments.output,
        model=arguments.model,
        source=arguments.function,
        axes=[axis for axis in arguments.axes.split(",") if axis],
    )


if __name__ == "__main__":
    main()
