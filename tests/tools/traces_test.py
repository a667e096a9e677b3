"""Exports as others read them: Perfetto's own protobuf classes (PyPI's perfetto) and Chakra's schema
in PyPI's protobuf. traces_test.py SHARDSIM

Chakra's schema is on no package index, so its descriptor is made here from the facts of
mlcommons/chakra, schema/protobuf/et_def.proto: message, field, number, type.
"""

import glob
import json
import os
import re
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from oracle import expect_equal, run_tests, scratch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
EXPERIMENT = ["examples/qwen3-1.7b-fsdp4.json"]
TWO_AXES = ["examples/llama-3.1-8b-8xh100.json", "--name", "fsdp+tp"]


def shardsim(*words):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise AssertionError(f"shardsim {words}: {done.stderr}")
    return done.stdout


def result_of(experiment):
    return json.loads(shardsim("run", *experiment, "--format", "json"))


def expect_all_known(message):
    """Every field that is there is one of the schema, all the way down."""
    unknown = UnknownFieldSet(message)
    expect_equal([field.field_number for field in unknown], [])
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in value if field.is_repeated else [value]:
            expect_all_known(one)


def read_perfetto(experiment, name):
    path = scratch(name)
    shardsim("run", *experiment, "-o", path)
    trace = perfetto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    return trace


class Events:
    """Slices and counters of a trace, with names instead of numbers."""

    def __init__(self, trace):
        self.tracks, self.slices, self.counters = {}, [], {}
        names, categories, keys, texts, open_slices = {}, {}, {}, {}, {}
        for packet in trace.packet:
            for entry in packet.interned_data.event_names:
                names[entry.iid] = entry.name
            for entry in packet.interned_data.event_categories:
                categories[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_names:
                keys[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_string_values:
                texts[entry.iid] = entry.str.decode()
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event = packet.track_event
            if event.type == perfetto.TrackEvent.TYPE_COUNTER:
                value = event.counter_value or event.double_counter_value
                self.counters.setdefault(event.track_uuid, []).append(value)
            elif event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
                slice_ = {"track": event.track_uuid, "start": packet.timestamp,
                          "name": names[event.name_iid],
                          "category": categories[event.category_iids[0]],
                          "from": list(event.flow_ids), "to": list(event.terminating_flow_ids)}
                for annotation in event.debug_annotations:
                    kind = annotation.WhichOneof("value")
                    value = getattr(annotation, kind)
                    slice_[keys[annotation.name_iid]] = (
                        texts[value] if kind == "string_value_iid" else value)
                open_slices[event.track_uuid] = slice_
                self.slices.append(slice_)
            elif event.type == perfetto.TrackEvent.TYPE_SLICE_END:
                open_slices.pop(event.track_uuid)["end"] = packet.timestamp
        expect_equal(open_slices, {})

    def path(self, track):
        descriptor = self.tracks[track]
        if not descriptor.parent_uuid:
            return descriptor.name
        return self.path(descriptor.parent_uuid) + "/" + descriptor.name


def test_perfetto_knows_every_field():
    for number, experiment in enumerate((EXPERIMENT, TWO_AXES)):
        trace = read_perfetto(experiment, f"known-{number}.perfetto-trace")
        expect_all_known(trace)
        expect_equal({packet.trusted_packet_sequence_id for packet in trace.packet}, {1})


def test_perfetto_agrees_with_the_result():
    for number, experiment in enumerate((EXPERIMENT, TWO_AXES)):
        events = Events(read_perfetto(experiment, f"sums-{number}.perfetto-trace"))
        result = result_of(experiment)
        paths = {events.path(track): track for track in events.tracks}
        (top,) = [path for path in paths if path.endswith("/compute")]
        compute = [each for each in events.slices if each["track"] == paths[top]]
        seconds = sum(each["end"] - each["start"] for each in compute) * 1e-9
        took = result["compute_time_s"] + result["contention_time_s"]
        assert abs(seconds - took) <= 1e-9 * len(compute), (seconds, took)
        (total,) = [path for path in paths if path.endswith("/memory/total")]
        expect_equal(max(events.counters[paths[total]]), result["memory"]["peak_bytes"])
        for row in result["communication"]:
            calls = [each for each in events.slices if each["category"] == row["kind"]
                     and each["axes"] == ",".join(row["axes"])]
            expect_equal(len(calls), row["count"])
            expect_equal(sum(each["wire_bytes_per_device"] for each in calls),
                         row["wire_bytes_per_device"])
            exposed = sum(each["exposed_us"] for each in calls) * 1e-6
            assert abs(exposed - row["exposed_s"]) < 1e-9, (exposed, row)
        begun = {flow: each for each in events.slices for flow in each["from"]}
        ended = {flow: each for each in events.slices for flow in each["to"]}
        expect_equal(set(begun), set(ended))
        for flow, producer in begun.items():
            assert producer["start"] <= ended[flow]["start"]


def test_chrome_has_the_slices_of_perfetto():
    path = scratch("step.trace.json")
    shardsim("run", *TWO_AXES, "-o", path)
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    perfetto_events = Events(read_perfetto(TWO_AXES, "beside.perfetto-trace"))
    expect_equal(sorted(event["name"] for event in events if event["ph"] == "X"),
                 sorted(each["name"] for each in perfetto_events.slices))


def chakra_schema():
    """GlobalMetadata and Node."""
    scalar = descriptor_pb2.FieldDescriptorProto
    messages = {
        "AttributeProto": [
            ("name", 1, scalar.TYPE_STRING), ("doc_string", 2, scalar.TYPE_STRING),
            ("double_val", 3, scalar.TYPE_DOUBLE), ("float_val", 5, scalar.TYPE_FLOAT),
            ("int32_val", 7, scalar.TYPE_INT32), ("int64_val", 9, scalar.TYPE_INT64),
            ("uint32_val", 11, scalar.TYPE_UINT32), ("uint64_val", 13, scalar.TYPE_UINT64),
            ("bool_val", 27, scalar.TYPE_BOOL), ("string_val", 29, scalar.TYPE_STRING)],
        "GlobalMetadata": [("version", 1, scalar.TYPE_STRING), ("attr", 2, "*AttributeProto")],
        "IOInfo": [("values", 1, scalar.TYPE_STRING), ("shapes", 2, scalar.TYPE_STRING),
                   ("types", 3, scalar.TYPE_STRING)],
        "Node": [
            ("id", 1, scalar.TYPE_UINT64), ("name", 2, scalar.TYPE_STRING),
            ("type", 3, scalar.TYPE_INT32), ("ctrl_deps", 4, "*uint64"),
            ("data_deps", 5, "*uint64"), ("start_time_micros", 6, scalar.TYPE_UINT64),
            ("duration_micros", 7, scalar.TYPE_UINT64), ("inputs", 8, "IOInfo"),
            ("outputs", 9, "IOInfo"), ("attr", 10, "*AttributeProto")],
    }
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg",
                                              syntax="proto3")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        if message_name == "AttributeProto":
            message.oneof_decl.add(name="value")
        for name, number, kind in fields:
            field = message.field.add(name=name, number=number, label=scalar.LABEL_OPTIONAL)
            if isinstance(kind, int):
                field.type = kind
                if name.endswith("_val"):
                    field.oneof_index = 0
                continue
            if kind.startswith("*"):
                field.label = scalar.LABEL_REPEATED
            if kind == "*uint64":
                field.type = scalar.TYPE_UINT64
            else:
                field.type = scalar.TYPE_MESSAGE
                field.type_name = ".ChakraProtoMsg." + kind.lstrip("*")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return (message_factory.GetMessageClass(pool.FindMessageTypeByName("ChakraProtoMsg." + name))
            for name in ("GlobalMetadata", "Node"))


GlobalMetadata, Node = chakra_schema()
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
COMM_TYPES = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}

# As the reader of mlcommons/chakra, src/feeder/et_feeder_node.cpp, takes them.
TYPE_OF_ATTRIBUTE = {"is_cpu_op": "bool_val", "num_ops": "int64_val", "tensor_size": "uint64_val",
                     "comm_type": "int64_val", "comm_size": "int64_val", "comm_priority": "int32_val",
                     "comm_src": "int32_val", "comm_dst": "int32_val", "comm_tag": "int32_val",
                     "pg_name": "string_val"}


def delimited(path):
    """The messages of a file, each behind its length."""
    with open(path, "rb") as file:
        content = file.read()
    place = 0
    while place < len(content):
        size = shift = 0
        while True:
            byte = content[place]
            place += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield content[place:place + size]
        place += size
    expect_equal(place, len(content))


def attributes(node):
    values = {}
    for attribute in node.attr:
        kind = attribute.WhichOneof("value")
        expect_equal((attribute.name, kind),
                     (attribute.name, TYPE_OF_ATTRIBUTE.get(attribute.name, kind)))
        values[attribute.name] = getattr(attribute, kind)
    return values


def read_chakra(experiment, name):
    """Nodes by rank, and the communicators."""
    stem = scratch(name)
    shardsim("plan", *experiment, "-o", stem + ".et")
    with open(stem + ".comm_groups.json", encoding="utf-8") as file:
        groups = {name: ranks for name, ranks in json.load(file).items()}
    ranks = {}
    for path in glob.glob(stem + ".*.et"):
        messages = delimited(path)
        metadata = GlobalMetadata.FromString(next(messages))
        expect_all_known(metadata)
        expect_equal(metadata.version, "0.0.4")
        nodes = [Node.FromString(message) for message in messages]
        for node in nodes:
            expect_all_known(node)
        ranks[int(re.search(r"\.(\d+)\.et$", path).group(1))] = nodes
    return ranks, groups


def replay(nodes):
    """Runs what does not wait, the lowest id first, as ASTRA-sim does; the order of ids."""
    waiting = {node.id: set(node.data_deps) | set(node.ctrl_deps) for node in nodes}
    children = {}
    for node, parents in waiting.items():
        for parent in parents:
            assert parent in waiting, f"{node} waits for {parent}, which is not there"
            children.setdefault(parent, []).append(node)
    free = sorted((node for node, parents in waiting.items() if not parents), reverse=True)
    order = []
    while free:
        order.append(free.pop())
        for child in children.get(order[-1], []):
            waiting[child].discard(order[-1])
            if not waiting[child]:
                free.append(child)
        free.sort(reverse=True)
    return order


def test_chakra_runs_to_the_end_and_has_the_plan():
    for number, experiment in enumerate((EXPERIMENT, TWO_AXES)):
        ranks, groups = read_chakra(experiment, f"step{number}")
        plan = json.loads(shardsim("plan", *experiment, "--format", "json"))
        expect_equal(sorted(ranks), list(range(plan["devices"])))
        expected = {}
        for collective in plan["collectives"]:
            size = collective["payload_bytes"]
            if collective["kind"] == "all-gather":
                size //= collective["group_size"]  # what a rank puts in
            key = COMM_TYPES[collective["kind"]], collective["group_size"]
            expected[key] = expected.get(key, 0) + collective["count"] * size
        flops = sum(plan["kernels"][task["work"]]["flops"]
                    for task in plan["programs"][0]["tasks"] if task["kind"] == "kernel")
        for rank, nodes in ranks.items():
            expect_equal(len(replay(nodes)), len(nodes))
            actual, operations = {}, 0
            for node in nodes:
                values = attributes(node)
                expect_equal(values["is_cpu_op"], False)
                if node.type == COMPUTE:
                    assert values["num_ops"] > 0 and values["tensor_size"] > 0
                    operations += values["num_ops"]
                else:
                    expect_equal(node.type, COLLECTIVE)
                    group = groups[values["pg_name"]]
                    assert rank in group and int(values["pg_name"]) > 0
                    key = values["comm_type"], len(group)
                    actual[key] = actual.get(key, 0) + values["comm_size"]
            expect_equal(actual, expected)
            assert abs(operations - flops) <= 1e-9 * flops + len(nodes), (operations, flops)


if __name__ == "__main__":
    run_tests(globals())
