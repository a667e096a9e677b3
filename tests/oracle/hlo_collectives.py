"""The collectives of an HLO module's text, as XLA compiled it: a Counter of
(kind, groups of devices, or pairs, payload in bytes) by how often a step runs them.

Payload: what all devices of a group hold together, as a plan counts it: of an all-gather the result,
of a reduce-scatter the operand. Bodies of loops count as often as the loop's known_trip_count says. An
all-reduce of several operands, which XLA's combiner makes, counts as one for each: the combiner sends
in one message what the program reduces in several. A reduce-scatter is also an all-reduce of which
nothing but a dynamic-slice is used: partitioned so, and left so on CPUs, which lack the pass that joins
the two (reduce-scatter-creator). Where it is told, gathers of one value in the same groups are one:
XLA's partitioner reuses the first, and its cse pass merges others, but not where their groups are
spelled in two forms.
"""

import collections
import itertools
import json
import math
import os
import re
import subprocess

BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
         "u64": 8, "f64": 8}
KINDS = ["all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"]
SAME_NUMBERS = {"convert", "copy", "bitcast", "reshape", "transpose"}


class Instruction:
    def __init__(self, name, result, opcode, inside, rest):
        self.name, self.result, self.opcode, self.inside, self.rest = (
            name, result, opcode, inside, rest)
        self.operands = re.findall(r"%([\w.-]+)", inside)


def sizes(text):
    """Of a result, one array or several in a tuple."""
    return [BYTES[kind] * math.prod(int(d) for d in dims.split(",") if d)
            for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", text)]


def computations(text):
    found, current = {}, None
    without_layouts = re.sub(r"(\w\[[\d,]*\])\{[^{}]*\}", r"\1", text)
    for line in without_layouts.splitlines():
        opening = re.match(r"(?:ENTRY )?%(\S+) \(.*\{$", line)
        if opening:
            current = found[opening[1]] = []
            if line.startswith("ENTRY"):
                found["ENTRY"] = current
            continue
        one = re.match(r"\s*(?:ROOT )?%(\S+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)$", line)
        if one and current is not None:
            current.append(Instruction(*one.groups()))
    return found


def groups(text):
    """replica_groups in each of the forms that HLO prints."""
    listed = re.search(r"replica_groups=\{(\{[\d,]+\}(?:,\{[\d,]+\})*)\}", text)
    if listed:
        return [[int(d) for d in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", listed[1])]
    iota = re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if iota:
        shape = [int(d) for d in iota[3].split(",")]
        order = [int(d) for d in iota[4].split(",")] if iota[4] else range(len(shape))
        return chunks(transposed(range(math.prod(shape)), shape, order), int(iota[2]))
    mesh = re.search(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\]T\(([\d,]+)\)\))? "
                     r"\{('[^}]*)\}", text)
    if mesh:
        axes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", mesh[1])}
        devices = range(math.prod(axes.values()))
        if mesh[2]:
            devices = transposed(devices, *([int(d) for d in mesh[i].split(",")] for i in (2, 3)))
        inside = re.findall(r"'(\w+)'", mesh[4])
        names = list(axes)
        order = [names.index(n) for n in names if n not in inside] + [names.index(n) for n in inside]
        return chunks(transposed(devices, list(axes.values()), order),
                      math.prod(axes[n] for n in inside))
    raise ValueError(f"replica_groups in an unknown form: {text[:200]}")


def transposed(devices, shape, order):
    """An array of this shape with its dimensions in that order, flat."""
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    return [devices[sum(i * strides[d] for i, d in zip(at, order))]
            for at in itertools.product(*(range(shape[d]) for d in order))]


def chunks(devices, size):
    return [devices[i:i + size] for i in range(0, len(devices), size)]


def opcode(instruction, module):
    """A fusion that wraps one instruction is that instruction."""
    called = re.search(r"calls=%(wrapped_[\w.-]+)", instruction.rest)
    if instruction.opcode == "fusion" and called:
        return module[called[1]][-1].opcode
    return instruction.opcode


def trip_count(loop, module):
    """As XLA knows it or, where its text does not say so, what the loop's counter is compared with."""
    known = re.search(r'"known_trip_count":\{"n":"(\d+)"', loop.rest)
    if known:
        return int(known[1])
    condition = module[re.search(r"condition=%([\w.-]+)", loop.rest)[1]]
    numbers = {one.name: int(one.inside) for one in condition
               if one.opcode == "constant" and one.inside.isdigit()}
    compared = condition[-1]
    if compared.opcode != "compare" or "direction=LT" not in compared.rest:
        raise ValueError(f"a loop that counts in an unknown way: {compared.name}")
    return numbers[compared.operands[1]]


def only_sliced(name, body, module, index=None):
    """Whether nothing but a dynamic-slice reads a value, or an element of it."""
    users = [one for one in body if name in one.operands]
    if index is not None:
        users = [one for one in users if one.rest.startswith(f", index={index}")
                 or one.opcode != "get-tuple-element"]
    if len(users) != 1:
        return False
    kind = opcode(users[0], module)
    if kind in SAME_NUMBERS | {"get-tuple-element"}:
        return only_sliced(users[0].name, body, module)
    return kind == "dynamic-slice" and users[0].operands[0] == name


def origin(name, body, module):
    """The value that this one is a copy of."""
    one = next((one for one in body if one.name == name), None)
    if one is None or opcode(one, module) not in SAME_NUMBERS:
        return name
    return origin(one.operands[0], body, module)


def collectives(text, one_gather_per_value=False):
    module = computations(text)
    counts = collections.Counter()
    gathered = set()

    def count(body, times):
        for one in body:
            kind = one.opcode.removesuffix("-start")
            if kind in KINDS:
                add(one, kind, body, times)
            elif one.opcode == "while":
                body = module[re.search(r"body=%([\w.-]+)", one.rest)[1]]
                count(body, times * trip_count(one, module))
            elif one.opcode in ("call", "conditional"):
                for called in re.findall(r"to_apply=%([\w.-]+)", one.rest):
                    count(module[called], times)

    def add(one, kind, body, times):
        payloads = sizes(one.result)
        if kind == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", one.rest)[1]
            where = [[int(d) for d in pair.split(",")] for pair in re.findall(r"[\d,]+", pairs)
                     if "," in pair.strip(",")]
            counts[kind, tuple(sorted(map(tuple, where))), payloads[0]] += times
            return
        where = groups(one.rest)
        if all(len(group) == 1 for group in where):
            return
        if kind == "all-gather":
            gather = (id(body), origin(one.operands[0], body, module), key(where))
            if one_gather_per_value and gather in gathered:
                return
            gathered.add(gather)
        if kind == "reduce-scatter":
            payloads = [size * len(where[0]) for size in payloads]
        for i, payload in enumerate(payloads):
            sliced = kind == "all-reduce" and only_sliced(
                one.name, body, module, i if one.result.startswith("(") else None)
            counts["reduce-scatter" if sliced else kind, key(where), payload] += times

    count(module["ENTRY"], 1)
    return counts


def key(where):
    return tuple(sorted(tuple(sorted(group)) for group in where))


def planned(plan):
    """The same of `shardsim plan --format json`."""
    counts = collections.Counter()
    for row in plan["collectives"]:
        pairs = row.get("source_target_pairs")
        where = key(row["groups"]) if pairs is None else tuple(sorted(map(tuple, pairs)))
        counts[row["kind"], where, row["payload_bytes"]] += row["count"]
    return counts


def lines(counts):
    return [f"{n} x {kind} of {payload} bytes in {where}"
            for (kind, where, payload), n in sorted(counts.items())]


def plan_of(shardsim, folder, documents):
    """Of the plan that shardsim makes of step.json, one of the documents (name: JSON) in the folder."""
    for name, document in documents.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(document, file)
    done = subprocess.run([shardsim, "plan", "step.json", "--format", "json"], capture_output=True,
                          text=True, cwd=folder, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return planned(json.loads(done.stdout))


def are_same(name, theirs, ours):
    """Prints what only one side has."""
    if theirs == ours:
        return True
    print(f"DIFFERENT {name}", "  XLA alone:", *(f"    {line}" for line in lines(theirs - ours)),
          "  shardsim alone:", *(f"    {line}" for line in lines(ours - theirs)), sep="\n")
    return False
