"""Models that transformers and diffusers build on the meta device beside what `shardsim model` says
of the same file: every parameter by name and shape, under its first name, and which are tied; and
the tensors of the hub's files, by transformers' own conversion run backwards.

    models.py SHARDSIM [--only TEXT]

model_cases.json lists them, an architecture each with keys of its configuration; none is among
tests/golden/models. Keys that a case does not give have their class's defaults. The file that shardsim
reads is what save_pretrained writes, all keys of the class; with "hub": true it holds the case's keys
alone, as older files on the hub do, and the defaults of both programs are compared. "files" says why
a case's tensors of files are not compared: conversions whose patterns match more when run backwards.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from transformers.core_model_loading import revert_weight_conversion
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


def members(pattern):
    """Every number of "0-3,5"."""
    for part in pattern.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def expand(name, sets):
    """Every name of "layers.{}.w" with the numbers of its sets, one for each pair of braces."""
    if not sets:
        return [name]
    head, _, rest = name.partition("{}")
    return [f"{head}{number}{tail}" for number in members(sets[0]) for tail in expand(rest, sets[1:])]


def build(case):
    """(the model without data, its config.json)."""
    architecture, keys = case["architecture"], dict(case["config"])
    if "_class_name" in keys:
        import diffusers

        with torch.device("meta"):
            return getattr(diffusers, architecture).from_config(keys), keys
    config = CONFIG_MAPPING[keys.pop("model_type")](**keys)
    with torch.device("meta"):
        model = getattr(transformers, architecture)._from_config(config)
    written = case["config"] if case.get("hub") else json.loads(config.to_json_string(use_diff=False))
    return model, written | {"architectures": [architecture]}


def shapes_of(model):
    """Parameters by first name, and the groups of names that are one tensor."""
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), (parameter, []))[1].append(name)
    shapes = {group[0]: list(parameter.shape) for parameter, group in names.values()}
    ties = sorted(sorted(group) for _, group in names.values() if len(group) > 1)
    return shapes, ties


def ask(shardsim, config):
    return ask_with(shardsim, config)


def ask_with(shardsim, config, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        run = subprocess.run([shardsim, "model", path, "--format", "json", *options],
                             capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return json.loads(run.stdout), ""


def predicted_shapes(rows):
    shapes = {}
    for parameter in rows:
        sets = parameter.get("instances", [])
        for name in expand(parameter["name"], [sets] if isinstance(sets, str) else sets):
            shapes[name] = parameter["shape"]
    return shapes


def file_differences(model, report):
    """Of tensors in files; which name of several a tied one has there is left open."""
    tensors = dict(model.state_dict())
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    tied = {id(tensors[name]) for group in names.values() if len(group) > 1 for name in group}
    files = revert_weight_conversion(model, tensors)
    found = predicted_shapes(report.get("hub_tensors") or report["parameters"] + report["buffers"])
    expected = {name: list(tensor.shape) for name, tensor in files.items()}
    messages = [f"missing in files: {name}" for name, tensor in files.items()
                if name not in found and id(tensor) not in tied and "*" not in name]
    messages += [f"too many in files: {name}" for name in found if name not in expected]
    messages += [f"shape in files of {name}: expected {expected[name]}, found {found[name]}"
                 for name in found if name in expected and expected[name] != found[name]]
    return messages


def differences(case, shardsim):
    model, config = build(case)
    report, error = ask(shardsim, config)
    if report is None:
        return [error], 0
    expected, ties = shapes_of(model)
    found = predicted_shapes(report["parameters"])
    messages = [f"missing: {name} {expected[name]}" for name in expected if name not in found]
    messages += [f"too many: {name} {found[name]}" for name in found if name not in expected]
    messages += [f"shape of {name}: expected {expected[name]}, found {found[name]}"
                 for name in expected if name in found and expected[name] != found[name]]
    if ties != sorted(sorted(group) for group in report["tied"]):
        messages.append(f"ties: expected {ties}, found {report['tied']}")
    if isinstance(model, transformers.PreTrainedModel) and "files" not in case:
        messages += file_differences(model, report)
    return messages, len(expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardsim")
    parser.add_argument("--only", default="", help="cases whose architecture contains this")
    arguments = parser.parse_args()
    with open(os.path.join(os.path.dirname(__file__), "model_cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    failed = 0
    for case in cases:
        name = case["architecture"]
        if arguments.only not in name:
            continue
        messages, parameters = differences(case, arguments.shardsim)
        failed += bool(messages)
        print(f"{name}: {parameters} parameters, {'equal' if not messages else 'different'}")
        for message in messages[:8]:
            print(f"  {message}")
    print(f"{len(cases)} models, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
