"""What export_jax_tree.py and export_torch_tree.py share: the file and the command line."""

import argparse
import gzip
import importlib
import json
import os
import sys


def document_of(framework, parameters, *, model, source, mesh):
    """A `shardsim/parameter-tree/1`; without model and source that are "", and a mesh of None."""
    optional = {"model": model, "source": source, "mesh": mesh}
    return {
        "schema": "shardsim/parameter-tree/1",
        "framework": framework,
        **{key: value for key, value in optional.items() if value not in ("", None)},
        "parameters": parameters,
    }


def write_document(document, path):
    """Compressed when `path` ends in ".gz"."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def command_line(documentation, makes):
    """A parser of what both take: MODULE:FUNCTION, which makes `makes`, --output and --model."""
    parser = argparse.ArgumentParser(description=documentation.split("\n", 1)[0])
    parser.add_argument("function", metavar="MODULE:FUNCTION", help=f"makes {makes}; no arguments")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="tree.json[.gz]")
    parser.add_argument("--model", default="", help="the model's name, for reports")
    return parser


def load_function(text):
    """The function that "package.module:function" names; modules are looked for in the working
    directory first."""
    module, colon, name = text.partition(":")
    if not colon:
        raise SystemExit(f"{text}: expected MODULE:FUNCTION")
    sys.path.insert(0, os.getcwd())
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    return function
