"""The smallest program that still disagrees: parts are taken away one by one, as long as what is left
disagrees in the same way (a failure stays a failure, other collectives stay other collectives)."""

import copy

import program as programs


def reduce(program, disagrees, most_tries=150):
    """`disagrees(program)` compiles and compares; `program` disagrees."""
    tries = 0
    changed = True
    while changed:
        changed = False
        for candidate in _candidates(program):
            if tries == most_tries:
                return program
            tries += 1
            if disagrees(candidate):
                program = candidate
                changed = True
                break
    return program


def _candidates(program):
    """Simpler programs, the greatest steps first; all valid except where jax says otherwise."""
    made = [*_fewer_outputs(program), *_cut_ops(program), *_skipped_ops(program),
            *_simpler_scans(program), *_simpler_specs(program)]
    if program["gradient"]:
        made.append({**copy.deepcopy(program), "gradient": False})
    seen = [program]
    for candidate in map(programs.without_unused, made):
        if candidate not in seen and candidate["inputs"]:
            seen.append(candidate)
            yield candidate


def _fewer_outputs(program):
    """One output; another value as the only output."""
    if len(program["outputs"]) > 1:
        for output in program["outputs"]:
            yield {**copy.deepcopy(program), "outputs": [output]}
    count = len(program["inputs"])
    for index in range(len(program["ops"]) - 1):
        yield {**copy.deepcopy(program), "outputs": [{"value": count + index, "spec": None}]}


def _cut_ops(program):
    """The result of an op as an input."""
    count = len(program["inputs"])
    types = programs.value_types(program)
    for index in reversed(range(len(program["ops"]))):
        candidate = copy.deepcopy(program)
        op = candidate["ops"].pop(index)
        made = types[count + index]
        spec = op["spec"] or [[] for _ in made.shape]
        if "?" in spec or not programs.divides(spec, made.shape, program["mesh"]):
            spec = [[] for _ in made.shape]
        candidate["inputs"].append({"shape": list(made.shape), "dtype": made.dtype.name,
                                    "spec": spec})

        def number(value, gone=count + index):
            return count if value == gone else value + 1 if count <= value < gone else value

        for other in candidate["ops"]:
            other["operands"] = [number(v) for v in other["operands"]]
        for output in candidate["outputs"]:
            output["value"] = number(output["value"])
        yield candidate


def _skipped_ops(program):
    """An op that keeps the shape, left out: its operand stands for it."""
    count = len(program["inputs"])
    types = programs.value_types(program)
    for index, op in enumerate(program["ops"]):
        for operand in op["operands"]:
            if types[operand] != types[count + index]:
                continue
            candidate = copy.deepcopy(program)
            for other in candidate["ops"]:
                other["operands"] = [operand if v == count + index else v
                                     for v in other["operands"]]
            for output in candidate["outputs"]:
                if output["value"] == count + index:
                    output["value"] = operand
            yield candidate


def _simpler_scans(program):
    for index, op in enumerate(program["ops"]):
        if op["kind"] != "scan":
            continue
        if op["with"]["collect"]:
            candidate = copy.deepcopy(program)
            candidate["ops"][index]["with"]["collect"] = False
            yield candidate
        for step in range(len(op["with"]["steps"])):
            candidate = copy.deepcopy(program)
            del candidate["ops"][index]["with"]["steps"][step]
            yield candidate


def _simpler_specs(program):
    """Fewer constraints, fewer axes, fewer inputs that are split."""
    for part in ("ops", "outputs", "inputs"):
        for index, holder in enumerate(program[part]):
            if holder["spec"] is None:
                continue
            whole = [[] for _ in holder["spec"]]
            simpler = [whole if part == "inputs" else None]
            for dim, axes in enumerate(holder["spec"]):
                for axis in axes if axes != "?" else []:
                    spec = copy.deepcopy(holder["spec"])
                    spec[dim].remove(axis)
                    simpler.append(spec)
                if axes == "?":
                    simpler.append([*holder["spec"][:dim], [], *holder["spec"][dim + 1 :]])
            for spec in simpler:
                candidate = copy.deepcopy(program)
                candidate[part][index]["spec"] = spec
                yield candidate
