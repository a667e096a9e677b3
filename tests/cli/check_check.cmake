# `check`: a baseline is recorded, holds, is violated, told in every format, and accepted.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(example examples/llama-3.1-8b-8xh100.json)
set(baseline ${SCRATCH}/baseline.json)

expect(0 text check ${baseline} ${example} --record)
require_match("${text}" "recorded 4 experiments")
file(READ ${baseline} recorded)
expect(0 text check ${baseline})
require_match("${text}" "4 experiments within limits")

# The same again is the same file.
expect(0 text check ${baseline} ${example} --record)
file(READ ${baseline} again)
if(NOT recorded STREQUAL again)
  message(FATAL_ERROR "a baseline recorded twice differs")
endif()

# Twice the batch: longer steps. The change of the experiment is named.
expect(1 json check ${baseline} --name fsdp --batch 16 --format json)
string(JSON schema GET "${json}" schema)
string(JSON checked GET "${json}" checked)
string(JSON experiment GET "${json}" violations 0 experiment)
string(JSON metric GET "${json}" violations 0 metric)
string(JSON cause GET "${json}" violations 0 cause)
if(NOT "${schema} ${checked} ${experiment} ${metric}" STREQUAL
   "shardsim/check/1 1 fsdp step_time_s")
  message(FATAL_ERROR "${schema} ${checked} ${experiment} ${metric}")
endif()
require_match("${cause}" "^the experiment changed: workload.batch 8 -> 16")
expect(0 text check ${baseline} --name fsdp --batch 16 --warn-only)

# All formats at once, by the names of the files.
expect(1 text check ${baseline} --name fsdp --batch 16 -o ${SCRATCH}/r.md -o ${SCRATCH}/r.html
       -o ${SCRATCH}/junit.xml -o ${SCRATCH}/gl-code.json -o ${SCRATCH}/r.json)
require_match("${text}" "fsdp: over its limits")
foreach(file "r.md;### shardsim: 1 of 1" "r.html;<!DOCTYPE html>" "junit.xml;<testsuites "
        "gl-code.json;\"fingerprint\"" "r.json;shardsim/check/1")
  list(GET file 0 name)
  list(GET file 1 pattern)
  file(READ ${SCRATCH}/${name} content)
  require_match("${content}" "${pattern}")
endforeach()

# --update NAME changes that experiment and no other; --update=NAME does so even where a folder has
# the name (the checkout has "plan").
expect(0 text check ${baseline} ${example} --batch 16 --update fsdp)
expect(0 text check ${SCRATCH}/plan.json --model gpt2 --batch 8 --sequence 64 --mesh data=2
       --strategy dp --name plan --record)
expect(0 text check ${SCRATCH}/plan.json --update=plan)
require_match("${text}" "recorded 1 experiment")
expect(0 text check ${baseline} --name fsdp)
expect(0 text check ${baseline} --name dp)
expect(0 text check ${baseline} ${example} --record)

# Budgets need no figures: Llama-3.1-8B with dp needs 120 GiB (check_verdict.cmake).
file(WRITE ${SCRATCH}/budgets.json
     "{\"schema\": \"shardsim/limits/1\", \"limits\": {\"*\": {\"fits\": true}}}")
expect(0 text check ${SCRATCH}/budgets.json ${example} --name fsdp)
expect(1 text check ${SCRATCH}/budgets.json ${example} --name dp)
expect(1 text check examples/check/budgets.json ${example} --name dp)
require_match("${text}" "not checked here: fsdp")

# Folders of dumps, matched by the names of modules: what the one program gathers the other reduces.
foreach(side before after)
  file(MAKE_DIRECTORY ${SCRATCH}/${side})
endforeach()
file(COPY_FILE ${SOURCE}/examples/programs/tp-matmul.hlo ${SCRATCH}/before/module_0001.a.hlo)
file(COPY_FILE ${SOURCE}/examples/programs/fsdp-matmul.hlo ${SCRATCH}/after/module_0009.a.hlo)
expect(1 json check ${SCRATCH}/before ${SCRATCH}/after --mesh x=2,y=4 --format json)
string(JSON experiment GET "${json}" violations 0 experiment)
string(JSON cause GET "${json}" violations 0 cause)
if(NOT experiment STREQUAL "jit_step")
  message(FATAL_ERROR "${experiment}")
endif()
require_match("${cause}" "^the program changed")
expect(0 text check ${SCRATCH}/programs.json ${SCRATCH}/before --machine tpu-v5e --mesh x=2,y=4
       --record)
expect(0 text check ${SCRATCH}/programs.json)
expect(0 text check ${SCRATCH}/programs.json ${SCRATCH}/before --machine tpu-v5e --mesh x=2,y=4)

# Rules over a parameter tree: without the rule its parameters are whole everywhere.
file(WRITE ${SCRATCH}/tree.json "{\"workload\": {\"tree\": {\"schema\": \"shardsim/parameter-tree/1\",
  \"parameters\": {\"head\": {\"shape\": [64, 64]}, \"w\": {\"shape\": [64, 64]}}}}, \"mesh\": {\"x\": 4},
  \"strategy\": {\"name\": \"rules\", \"rules\": [{\"pattern\": \"head\", \"spec\": [\"x\", null]},
                                              {\"pattern\": \"w\", \"spec\": [\"x\", null]}]}}")
expect(0 text check ${SCRATCH}/rules.json ${SCRATCH}/tree.json --record)
file(READ ${SCRATCH}/tree.json tree)
string(REPLACE "{\"pattern\": \"head\", \"spec\": [\"x\", null]}"
               "{\"pattern\": \"head\", \"spec\": []}" tree "${tree}")
file(WRITE ${SCRATCH}/tree.json "${tree}")
expect(1 text check ${SCRATCH}/rules.json)
require_match("${text}" "head is whole on every device, P.x, None. before; rule 0: head")
