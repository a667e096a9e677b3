"""The rule systems' own Python, loaded function by function from where it lies: none of it is in this
repository. Folders that are looked in, for the paths of SOURCES:

    $SHARDSIM_UPSTREAM                        checkouts, one folder each
    upstream/ of the oracles' environment     packages of PyPI (tests/tools/upstream.txt), each under
                                              its pin, without what they depend on

A system's packages need not be importable: of a file the named functions, classes and assignments
are compiled, with their decorators, in a namespace that the caller gives.
"""

import ast
import os
import sys

import numpy

EFORMER_MARCH = "eformer==0.0.21/eformer/escale/partition/"
EFORMER = "eformer==0.0.99/eformer/"
BIG_VISION = "big_vision/big_vision/"
TUTORIAL = "uvadlc_notebooks/docs/tutorial_notebooks/scaling/JAX/"
PRAXIS = "praxis==1.4.0/praxis/"
PAXML = "paxml==0.1/paxml/"
PATHWAYS = "pathwaysutils==0.1.9/pathwaysutils/experimental/"

CHECKOUTS = {
    BIG_VISION: "https://github.com/google-research/big_vision at 0127fb6 in big_vision",
    TUTORIAL: "https://github.com/phlippe/uvadlc_notebooks at 0da8037 in uvadlc_notebooks",
}


class Missing(Exception):
    """There is no upstream to compare with."""


def folders():
    told = os.environ.get("SHARDSIM_UPSTREAM")
    return ([told] if told else []) + [os.path.join(sys.prefix, "upstream")]


def find(folder, name):
    for root in folders():
        path = os.path.join(root, folder, name)
        if os.path.exists(path):
            return path
    checkout = CHECKOUTS.get(folder)
    if checkout:
        raise Missing(f"no {folder}{name}: SHARDSIM_UPSTREAM is to name a folder with a checkout of "
                      f"{checkout}")
    raise Missing(f"no {folder}{name} in {' or '.join(folders())}: scripts/setup_oracles.sh brings "
                  f"{folder.split('/')[0]}")


def defines(node):
    """The names that a statement of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def load(folder, name, wanted, namespace):
    """Adds to the namespace what is wanted of a file, in the file's order."""
    path = find(folder, name)
    with open(path, encoding="utf-8") as file:
        module = ast.parse(file.read(), path)
    nodes = [node for node in module.body if defines(node) & set(wanted)]
    lacking = set(wanted) - set().union(*map(defines, nodes))
    if lacking:
        raise Missing(f"{path} does not define {', '.join(sorted(lacking))}")
    for node in nodes:
        for inner in ast.walk(node):  # what is annotated may need packages that are not there
            if isinstance(inner, ast.FunctionDef):
                inner.returns = None
                arguments = inner.args
                for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
                    argument.annotation = None
    code = compile(ast.Module(body=nodes, type_ignores=[]), path, "exec")
    exec(code, namespace)  # pylint: disable=exec-used
    return namespace


class NumpyAsBefore:
    """numpy whose argsort is stable, as it was before 1.25 for so few elements."""

    def __getattr__(self, name):
        return getattr(numpy, name)

    def argsort(self, values):
        return numpy.argsort(values, kind="stable")


def numpys():
    """By shardsim's "argsort": numpy as before, and as it is where it sorts with the processor's
    vector instructions."""
    features = numpy._core._multiarray_umath.__cpu_features__  # pylint: disable=protected-access
    has_vectors = features.get("AVX512_SKX") or features.get("AVX2")
    return {"stable": NumpyAsBefore()} | ({"simd": numpy} if has_vectors else {})
