# --require-fit: 16 bytes per parameter of Llama-3.1-8B are 120 GiB, more than the 80 GB of an H100,
# so `dp` cannot fit; sharded over 8 devices they are 15 GiB.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(example examples/llama-3.1-8b-8xh100.json)

expect(1 text run ${example} --name dp --require-fit)
require_match("${text}" "GiB")
expect(0 text run ${example} --name dp)
expect(0 text run ${example} --name fsdp --require-fit)
expect(0 text compare ${example} --require-fit)
expect(1 text compare ${example} --name dp --require-fit)

# specs --strict: a rule that matches nothing, and 4 MiB that are whole everywhere: two tensors of
# [1024, 512] in float32. Either may be allowed.
file(WRITE ${SCRATCH}/strict.json [==[{
  "workload": {"tree": {"schema": "shardsim/parameter-tree/1", "model": "toy", "parameters": {
    "0/w": {"shape": [1024, 512]}, "1/w": {"shape": [1024, 512]}}}},
  "mesh": {"data": 2},
  "strategy": {"name": "match_partition_rules", "rules": [["bias", []], [".*", [null]]]}}]==])
expect(0 text specs ${SCRATCH}/strict.json)
require_match("${text}" "no parameter is matched by rule 0")
expect(1 text specs ${SCRATCH}/strict.json --strict)
expect(0 text specs ${SCRATCH}/strict.json --strict --allow-unused bias)
expect(1 text specs ${SCRATCH}/strict.json --strict --allow-unused bias --max-whole 3MiB)
expect(0 text specs ${SCRATCH}/strict.json --strict --allow-unused bias --max-whole 4MiB)

# Pictures take the place of the tables, not of the check, and go where the tables would go.
expect(1 text specs ${SCRATCH}/strict.json --strict --picture w)
expect(1 text specs ${SCRATCH}/strict.json --strict --submesh data)
expect(0 text specs ${SCRATCH}/strict.json --strict --allow-unused bias --picture w)
file(REMOVE ${SCRATCH}/picture.txt)
expect(0 nothing specs ${SCRATCH}/strict.json --picture w -o ${SCRATCH}/picture.txt)
file(READ ${SCRATCH}/picture.txt picture)
if(NOT picture STREQUAL text)
  message(FATAL_ERROR "picture.txt holds ${picture}")
endif()

# A strategy that replicates has the limit that is given, and no other: 4 MiB of the same tree.
expect(0 text specs ${SCRATCH}/strict.json --strict --strategy dp)
expect(1 text specs ${SCRATCH}/strict.json --strict --strategy dp --max-whole 3MiB)
expect(0 text specs ${SCRATCH}/strict.json --strict --strategy dp --max-whole 4MiB)
