#!/usr/bin/env python3
"""Writes the parameter tree of a JAX program as `shardsim/parameter-tree/1`.

From Python, with any pytree of arrays or jax.ShapeDtypeStructs:

    from export_jax_tree import export_tree
    export_tree(jax.eval_shape(model.init, key, batch), "tree.json", model="my-model")

From a shell, with a function of no arguments that makes the tree; it is traced, not run:

    python export_jax_tree.py my_package.my_module:init_params -o tree.json

With --call the function is called as it is: for one that returns ShapeDtypeStructs or arrays that
already lie on devices.

What is recorded, and where it comes from:

    name          the keys of the path, joined with "/"
    shape, dtype  of the leaf; a typed PRNG key counts as the integers that it is made of
    spec, mesh    of leaves with a jax.sharding.NamedSharding. All must be on one mesh, of which
                  axis names and sizes are kept, not the order of its devices
    logical_axes  names in the boxes of flax.linen (with_partitioning, with_logical_partitioning)
                  and in the metadata of flax.nnx variables

Needs jax alone, and parameter_tree.py beside it; flax's boxes are recognized, not imported.
"""

import json

import jax

from parameter_tree import command_line, document_of, load_function, write_document


def export_tree(tree, path, *, model="", source=""):
    """Writes `tree` to `path`, compressed when that ends in ".gz". Raises ValueError for a leaf
    that has no shape and for shardings that a PartitionSpec on one mesh does not say."""
    write_document(describe_tree(tree, model=model, source=source), path)


def describe_tree(tree, *, model="", source=""):
    """The document that export_tree writes, as a dictionary."""
    meshes = {}
    parameters = {}
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_box)
    for path, leaf in leaves:
        name = "/".join(_key_text(key) for key in path)
        if name in parameters:
            raise ValueError(f"two leaves are named {name!r}")
        parameters[name] = _describe_leaf(name, leaf, meshes)
    if len(meshes) > 1:
        raise ValueError(f"the leaves lie on different meshes: {list(meshes.values())}")
    mesh = next(iter(meshes.values()), None)
    framework = f"jax {jax.__version__}"
    return document_of(framework, parameters, model=model, source=source, mesh=mesh)


def _key_text(key):
    """"kernel" for DictKey("kernel") and GetAttrKey("kernel"), "0" for SequenceKey(0)."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _is_linen_box(leaf):
    return hasattr(leaf, "unbox") and hasattr(leaf, "names")


def _is_nnx_variable(leaf):
    return hasattr(leaf, "get_metadata") and hasattr(leaf, "get_value")


def _is_box(leaf):
    return _is_linen_box(leaf) or _is_nnx_variable(leaf)


def _unbox(leaf):
    """The array in a leaf and the names of its dimensions, None when it has none."""
    if _is_linen_box(leaf):
        return leaf.value, leaf.names
    if _is_nnx_variable(leaf):
        metadata = leaf.get_metadata()
        # The key of flax 0.12, then those of earlier versions.
        for key in ("out_sharding", "sharding_names", "sharding"):
            if metadata.get(key) is not None:
                return leaf.get_value(), tuple(metadata[key])
        return leaf.get_value(), None
    return leaf, None


def _describe_leaf(name, leaf, meshes):
    leaf, names = _unbox(leaf)
    array = _abstract(name, leaf)
    described = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if names is not None:
        described["logical_axes"] = [_logical_axis(name, axis) for axis in names]
    sharding = getattr(leaf, "sharding", None)
    if isinstance(sharding, jax.sharding.NamedSharding):
        described["spec"] = [_spec_entry(entry) for entry in sharding.spec]
        mesh = {str(axis): size for axis, size in sharding.mesh.shape.items()}
        meshes[json.dumps(mesh)] = mesh
    elif sharding is not None and not isinstance(sharding, jax.sharding.SingleDeviceSharding):
        raise ValueError(f"{name}: {type(sharding).__name__} cannot be written as a PartitionSpec")
    return described


def _abstract(name, leaf):
    try:
        array = jax.eval_shape(lambda x: x, leaf)
        if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
            array = jax.eval_shape(jax.random.key_data, array)
        return array
    except TypeError as error:
        raise ValueError(f"{name}: {type(leaf).__name__} is no array") from error


def _logical_axis(name, axis):
    if axis is None or isinstance(axis, str):
        return axis
    raise ValueError(f"{name}: {axis!r} names no single dimension")


def _spec_entry(entry):
    if entry is jax.sharding.PartitionSpec.UNCONSTRAINED:
        return {"unconstrained": True}
    return list(entry) if isinstance(entry, tuple) else entry


def main():
    parser = command_line(__doc__, "the tree")
    parser.add_argument("--call", action="store_true", help="call the function, do not trace it")
    arguments = parser.parse_args()
    function = load_function(arguments.function)
    tree = function() if arguments.call else jax.eval_shape(function)
    export_tree(tree, arguments.output, model=arguments.model, source=arguments.function)


if __name__ == "__main__":
    main()
