# Flags that hold lists, or are repeated, make variants; each is the experiment that they spell out.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(step --model gpt2 --sequence 1024)

# names_of(RESULT ARGUMENT...): of the experiments that compare shows, and the first's step time.
function(names_of result)
  expect(0 json compare ${ARGN} --format json)
  string(JSON count LENGTH "${json}" results)
  math(EXPR last "${count} - 1")
  set(names)
  foreach(i RANGE ${last})
    string(JSON name GET "${json}" results ${i} name)
    list(APPEND names "${name}")
  endforeach()
  set(${result} "${names}" PARENT_SCOPE)
  set(json "${json}" PARENT_SCOPE)
endfunction()

function(require_names expected)
  if(NOT names STREQUAL expected)
    message(FATAL_ERROR "expected ${expected}, got ${names}")
  endif()
endfunction()

names_of(names ${step} --strategy dp,fsdp --batch 16,32 --mesh data=8 --machine dgx-h100)
require_names("dp, batch 16;dp, batch 32;fsdp, batch 16;fsdp, batch 32")
string(JSON as_variant GET "${json}" results 3 step_time_s)
expect(0 alone run ${step} --strategy fsdp --batch 32 --mesh data=8 --machine dgx-h100 --format json)
string(JSON by_itself GET "${alone}" step_time_s)
if(NOT as_variant STREQUAL by_itself)
  message(FATAL_ERROR "${as_variant} s as a variant, ${by_itself} s by itself")
endif()

# Repeated; commas within brackets and braces are no lists.
names_of(names ${step} --strategy "{\"name\": \"fsdp\", \"prefetch\": 2},fsdp" --batch 16
         --mesh data=8 --mesh data=2,fsdp=4
         --machine "ring(bandwidth=50GB/s,latency=1us,device=h100),dgx-h100")
list(LENGTH names count)
list(GET names 0 first)
list(GET names 7 last)
if(NOT count EQUAL 8 OR NOT last STREQUAL "fsdp, data=2,fsdp=4, dgx-h100" OR
   NOT first STREQUAL "fsdp, prefetch 2, data=8, ring(bandwidth=50GB/s,latency=1us,device=h100)")
  message(FATAL_ERROR "${count} variants from ${first} to ${last}")
endif()

# By their names, in any order; one other name is that of all.
set(lists ${step} --strategy dp --batch 16,32,64 --mesh data=8 --machine dgx-h100)
names_of(names ${lists} --name "batch 64" --name "batch 16")
require_names("batch 16;batch 64")
names_of(names ${lists} --name mine)
require_names("mine, batch 16;mine, batch 32;mine, batch 64")

# Over the variants of a file, by its names or the whole ones.
set(file examples/llama-3.1-8b-8xh100.json)
names_of(names ${file} --name fsdp --batch 32,64)
require_names("fsdp, batch 32;fsdp, batch 64")
names_of(names ${file} --name "fsdp, batch 64" --batch 32,64)
require_names("fsdp, batch 64")
# A file without variants: what differs is the name.
names_of(names examples/qwen3-1.7b-fsdp4.json --microbatches 1,2 --rematerialization none,full)
require_names("microbatches 1, rematerialization none;microbatches 1, rematerialization full;microbatches 2, rematerialization none;microbatches 2, rematerialization full")
