# Where results go: standard output, or files whose extension says the format.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(example examples/qwen3-1.7b-fsdp4.json)

# Text is printed beside the files, and nothing is left behind but them.
expect(0 text compare ${example} -o ${SCRATCH}/report.html -o ${SCRATCH}/report.csv)
require_match("${text}" "qwen3-1.7b")
file(GLOB written RELATIVE ${SCRATCH} ${SCRATCH}/*)
list(SORT written)
if(NOT written STREQUAL "report.csv;report.html")
  message(FATAL_ERROR "written: ${written}")
endif()
file(READ ${SCRATCH}/report.html html)
require_match("${html}" "^<!DOCTYPE html>|^<!doctype html>")

# So it is for all verbs.
foreach(case "plan;${example};plan.json" "specs;${example};specs.csv"
        "collective;--against;examples/collectives/h100-dgx-8-all-reduce.json;collective.csv"
        "model;gpt2;model.json" "import;hf;gpt2;tree.json" "profiles;show;dgx-h100;profile.json"
        "reshard;examples/reshard/trainer-to-sampler.json;reshard.json"
        "hlo;diff;examples/programs/fsdp-matmul.hlo;examples/programs/tp-matmul.hlo;hlo.csv")
  list(POP_BACK case file)
  expect(0 alone ${case})
  expect(0 beside ${case} -o ${SCRATCH}/beside-${file})
  if(NOT alone STREQUAL beside)
    message(FATAL_ERROR "${case}: -o ${file} prints something else")
  endif()
  string(REGEX REPLACE "[.].*" ".txt" text_file "${file}")
  expect(0 silent ${case} -o ${SCRATCH}/beside-${text_file})
  file(READ ${SCRATCH}/beside-${text_file} written_text)
  if(NOT silent STREQUAL "" OR NOT written_text STREQUAL alone)
    message(FATAL_ERROR "${case}: -o ${text_file} prints ${silent}")
  endif()
endforeach()

# With a format that was asked for, the file is all there is.
expect(0 nothing run ${example} --format json -o ${SCRATCH}/result)
if(NOT nothing STREQUAL "")
  message(FATAL_ERROR "printed: ${nothing}")
endif()
file(READ ${SCRATCH}/result json)
string(JSON schema GET "${json}" schema)
if(NOT schema STREQUAL "shardsim/result/1")
  message(FATAL_ERROR "schema: ${schema}")
endif()

# The experiment in a result is an experiment, with the same result.
string(JSON experiment GET "${json}" experiment)
file(WRITE ${SCRATCH}/resolved.json "${experiment}")
expect(0 again run ${SCRATCH}/resolved.json --format json)
if(NOT again STREQUAL json)
  message(FATAL_ERROR "the resolved experiment has another result")
endif()

foreach(case "plan;json;shardsim/plan/1" "specs;json;shardsim/specs/1")
  list(GET case 0 verb)
  list(GET case 2 expected)
  expect(0 json ${verb} ${example} --format json)
  string(JSON schema GET "${json}" schema)
  if(NOT schema STREQUAL expected)
    message(FATAL_ERROR "${verb}: schema ${schema}")
  endif()
endforeach()

expect(0 json import hf gpt2 --format json)
string(JSON schema GET "${json}" schema)
if(NOT schema STREQUAL "shardsim/parameter-tree/1")
  message(FATAL_ERROR "import: schema ${schema}")
endif()
expect(0 csv import safetensors examples/tiny-llama.safetensors --format csv)
require_match("${csv}" "\nmodel.norm.weight,[[]8],bf16,8,16\n")

expect(0 json import hlo examples/programs/fsdp-matmul.hlo --mesh x=2,y=4 --format json)
string(JSON schema GET "${json}" schema)
string(JSON kind GET "${json}" collectives 0 kind)
string(JSON axis GET "${json}" collectives 0 axes 0)
if(NOT "${schema} ${kind} ${axis}" STREQUAL "shardsim/plan/1 all-gather x")
  message(FATAL_ERROR "import hlo: ${schema} ${kind} ${axis}")
endif()

expect(0 json hlo diff examples/programs/fsdp-matmul.hlo examples/programs/tp-matmul.hlo
       --mesh x=2,y=4 --format json)
string(JSON schema GET "${json}" schema)
string(JSON change GET "${json}" collectives 0 change)
if(NOT "${schema} ${change}" STREQUAL "shardsim/hlo-diff/1 removed")
  message(FATAL_ERROR "hlo diff: ${schema} ${change}")
endif()

# Flags and a table that say the same have the same rows, but for what was measured.
expect(0 json collective --against examples/collectives/h100-dgx-8-all-reduce.json --format json)
string(JSON schema GET "${json}" schema)
string(JSON measured GET "${json}" rows 0 time_s)
expect(0 json collective --machine dgx-h100 --kind all-reduce --devices 8 --sizes 8B --format json)
string(JSON alone GET "${json}" rows 0 time_s)
if(NOT "${schema} ${measured}" STREQUAL "shardsim/collective/1 ${alone}")
  message(FATAL_ERROR "collective: ${schema} ${measured} ${alone}")
endif()

# Exports: the longer ending says the format; a plain .json, and one of a verb without traces, is
# JSON as before. Chakra is a file per rank and the communicators.
expect(0 text plan ${example} -o ${SCRATCH}/step.trace.json -o ${SCRATCH}/step.json
       -o ${SCRATCH}/step.perfetto-trace -o ${SCRATCH}/step.et)
file(READ ${SCRATCH}/step.trace.json json)
string(JSON unit GET "${json}" displayTimeUnit)
file(READ ${SCRATCH}/step.json json)
string(JSON schema GET "${json}" schema)
if(NOT "${unit} ${schema}" STREQUAL "ns shardsim/plan/1")
  message(FATAL_ERROR "plan: ${unit} ${schema}")
endif()
file(GLOB written RELATIVE ${SCRATCH} ${SCRATCH}/step.*et* ${SCRATCH}/step.comm*)
list(SORT written)
if(NOT written STREQUAL
   "step.0.et;step.1.et;step.2.et;step.3.et;step.comm_groups.json;step.perfetto-trace")
  message(FATAL_ERROR "written: ${written}")
endif()
file(READ ${SCRATCH}/step.comm_groups.json json)
string(JSON ranks GET "${json}" 1)
string(REGEX REPLACE "[ \n]" "" ranks "${ranks}")
if(NOT ranks STREQUAL "[0,1,2,3]")
  message(FATAL_ERROR "communicators: ${json}")
endif()
expect(0 text plan ${example} -o ${SCRATCH}/some.et --ranks 1,3)
file(GLOB written RELATIVE ${SCRATCH} ${SCRATCH}/some.*.et)
list(SORT written)
if(NOT written STREQUAL "some.1.et;some.3.et")
  message(FATAL_ERROR "written: ${written}")
endif()
expect(0 text compare ${example} -o ${SCRATCH}/both.trace.json)
file(READ ${SCRATCH}/both.trace.json json)
string(JSON schema GET "${json}" schema)
if(NOT schema STREQUAL "shardsim/comparison/1")
  message(FATAL_ERROR "compare: ${schema}")
endif()

expect(0 dot plan ${example} --format dot)
require_match("${dot}" "^digraph")
expect(0 csv specs ${example} --format csv)
require_match("${csv}" "^name,")
expect(0 markdown run ${example} --format markdown)

# Without a file the model gives the name, dots and all.
expect(0 json run --model llama-3.1-8b --batch 8 --sequence 128 --mesh data=8 --strategy dp
       --machine dgx-h100 --format json)
string(JSON name GET "${json}" experiment name)
if(NOT name STREQUAL "llama-3.1-8b")
  message(FATAL_ERROR "named ${name}")
endif()

# A name may be anything, text that is not UTF-8 too.
string(ASCII 255 byte)
foreach(verb run plan)
  foreach(file x.json x.html x.csv x.md x.dot x.et x.trace.json x.pftrace)
    if((verb STREQUAL run AND file MATCHES "dot|et$") OR
       (verb STREQUAL plan AND NOT file MATCHES "x.json|dot"))
      continue()
    endif()
    expect(0 text ${verb} --model gpt2 --batch 8 --sequence 128 --mesh data=2 --strategy dp
           --machine dgx-h100 --name "a${byte}b" -o ${SCRATCH}/${file})
  endforeach()
endforeach()

# A program is read once: it may come through a pipe, and what is none is told so.
set(program examples/programs/fsdp-matmul.hlo)
expect(0 from_file import hlo ${program} --mesh x=2,y=4)
execute_process(COMMAND cat ${program} COMMAND ${SHARDSIM} import hlo /dev/stdin --mesh x=2,y=4
                WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE from_pipe ERROR_VARIABLE errors)
if(NOT from_pipe STREQUAL from_file)
  message(FATAL_ERROR "import hlo of a pipe: ${from_pipe}${errors}")
endif()
execute_process(COMMAND cat ${example} COMMAND ${SHARDSIM} plan --program /dev/stdin
                WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE nothing ERROR_VARIABLE errors)
require_match("${errors}" "^error: /dev/stdin: is an experiment, not a StableHLO program")

# What a plan leaves out of the batch, and what is priced though JAX refuses it, is said with it.
# 136 examples over 8 devices are 17 each, 17 // 4 = 4; 130 are 16 and a quarter.
expect(0 dropped plan ${SOURCE}/examples/fsdp-tutorial.json --batch 136)
require_match("${dropped}" "each device drops 1 of its 17 examples")
expect(0 allowed plan ${SOURCE}/examples/fsdp-tutorial.json --batch 130 --allow-uneven)
require_match("${allowed}" "a batch of 130 does not divide over the 8 devices of data")

foreach(case "csv;^name,instances," "markdown;^# gpt2" "html;^<!DOCTYPE html>|^<!doctype html>")
  list(GET case 0 format)
  list(GET case 1 expected)
  expect(0 printed model gpt2 --format ${format})
  require_match("${printed}" "${expected}")
endforeach()
expect(0 json model list --format json)
string(JSON schema GET "${json}" schema)
if(NOT schema STREQUAL "shardsim/models/1")
  message(FATAL_ERROR "model list: schema ${schema}")
endif()
