# What calibrate says of a log is what collective shows of it with the calibration.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(log examples/nccl-tests/a100-2x8-all-reduce.log)

expect(0 text calibrate ${log} --machine oci-bm-gpu4.8 -o ${SCRATCH}/mine.json)
# 31 rows of which those from 1 GiB on are faster than a ring over these NICs can be.
require_match("${text}" "4 sizes from 1.0 GiB on take less than Ring's links do")
file(READ ${SCRATCH}/mine.json calibration)

# By a path of its own, and by a profile beside it.
file(WRITE ${SCRATCH}/profile.json [=[{
  "schema": "shardsim/profile/1", "name": "ours", "title": "two nodes", "extends": "oci-bm-gpu4.8",
  "calibration": ["mine.json"]
}]=])
expect(0 by_profile collective --against ${log} --machine ${SCRATCH}/profile.json --format json)
expect(0 by_path collective --against ${log} --machine oci-bm-gpu4.8
       --calibration ${SCRATCH}/mine.json --format json)
string(JSON rows LENGTH "${by_profile}" rows)
math(EXPR last "${rows} - 1")
foreach(i RANGE ${last})
  string(JSON one GET "${by_profile}" rows ${i} time_s)
  string(JSON other GET "${by_path}" rows ${i} time_s)
  if(NOT one STREQUAL other)
    message(FATAL_ERROR "row ${i}: ${one} s by the profile, ${other} s by the path")
  endif()
endforeach()

# A step by a path of its own is that by the profile beside it, and not that by the machine alone;
# an experiment names one relative to itself, a flag to where the user is.
file(WRITE ${SCRATCH}/step.json [=[{
  "workload": {"model": "gpt2", "batch": 16, "sequence": 128},
  "mesh": {"data": 16}, "strategy": "dp", "machine": "oci-bm-gpu4.8", "calibration": ["mine.json"]
}]=])
function(step_time result)
  expect(0 answer run ${SCRATCH}/step.json --format json ${ARGN})
  string(JSON time GET "${answer}" step_time_s)
  set(${result} "${time}" PARENT_SCOPE)
endfunction()
step_time(by_experiment)
step_time(by_profile --machine ${SCRATCH}/profile.json --set calibration=null)
step_time(by_flag --set calibration=null --calibration ${SCRATCH}/mine.json)
step_time(by_list --calibration "[\"${SCRATCH}/mine.json\"]")
step_time(by_machine --set calibration=null)
foreach(name by_profile by_flag by_list)
  if(NOT ${name} STREQUAL by_experiment)
    message(FATAL_ERROR "a step takes ${${name}} s ${name}, ${by_experiment} s by_experiment")
  endif()
endforeach()
if(by_machine STREQUAL by_experiment)
  message(FATAL_ERROR "a calibration changes nothing")
endif()
expect(0 answer run ${SCRATCH}/step.json --format json)
string(JSON named GET "${answer}" experiment calibration 0)
require_match("${named}" "^mine.json$")
# It is called as the file, and the text says that it is not the machine's own.
expect(0 answer run ${SCRATCH}/step.json)
require_match("${answer}" "machine +oci-bm-gpu4.8 .16 devices, 2 nodes, calibrated by mine;")
expect(0 answer run ${SCRATCH}/step.json --set calibration=[])
require_match("${answer}" "2 nodes, not calibrated;")

# What it holds is part of what a baseline was made from.
expect(0 text check ${SCRATCH}/baseline.json ${SCRATCH}/step.json --record)
string(REPLACE "\"date\": \"" "\"date\": \"not " changed "${calibration}")
file(WRITE ${SCRATCH}/mine.json "${changed}")
expect(0 text check ${SCRATCH}/baseline.json --format json)
file(READ ${SCRATCH}/baseline.json baseline)
string(JSON before GET "${baseline}" experiments step made_from calibration)
expect(0 text check ${SCRATCH}/baseline.json --update)
file(READ ${SCRATCH}/baseline.json baseline)
string(JSON after GET "${baseline}" experiments step made_from calibration)
if(before STREQUAL after)
  message(FATAL_ERROR "another calibration has the digest ${before}, too")
endif()
file(WRITE ${SCRATCH}/mine.json "${calibration}")

# The last range has two rows, 4 and 8 GiB: the median is the mean of both errors, to 1 in 10,000.
string(JSON ranges LENGTH "${calibration}" errors_by_size)
math(EXPR last_range "${ranges} - 1")
string(JSON from GET "${calibration}" errors_by_size ${last_range} 0)
string(JSON count GET "${calibration}" errors_by_size ${last_range} 1)
string(JSON median GET "${calibration}" errors_by_size ${last_range} 2)
if(NOT "${from} ${count}" STREQUAL "4294967296 2")
  message(FATAL_ERROR "the last range has ${count} rows from ${from}")
endif()
math(EXPR before "${last} - 1")
string(JSON error_4 GET "${by_path}" rows ${before} relative_error)
string(JSON error_8 GET "${by_path}" rows ${last} relative_error)
# Ten-thousandths, cut off.
foreach(name error_4 error_8 median)
  if(NOT ${name} MATCHES "^0[.]([0-9]+)$")
    message(FATAL_ERROR "${name}: ${${name}}")
  endif()
  string(SUBSTRING "${CMAKE_MATCH_1}0000" 0 4 digits)
  string(REGEX REPLACE "^0+" "" ${name} "${digits}")
endforeach()
math(EXPR difference "${error_4} + ${error_8} - 2 * ${median}")
if(difference GREATER 3 OR difference LESS -3)
  message(FATAL_ERROR "calibrate says ${median}, collective ${error_4} and ${error_8}")
endif()
