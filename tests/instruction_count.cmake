# Fails where fixed work takes more instructions than its budget: wall time on shared machines is
# noise, instructions are not. Says SKIPPED where there is no valgrind.
#
#   cmake -DPROGRAM=fixed_work -DWORK=ring -DBUDGETS=instruction_budgets.txt -P instruction_count.cmake
find_program(valgrind valgrind)
if(NOT valgrind)
  message("SKIPPED: no valgrind")
  return()
endif()

file(STRINGS ${BUDGETS} line REGEX "^${WORK} ")
string(REGEX MATCH "[0-9]+" budget "${line}")
if(NOT budget)
  message(FATAL_ERROR "${BUDGETS} has no budget of ${WORK}")
endif()

execute_process(
  COMMAND ${valgrind} --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null ${PROGRAM} ${WORK}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE log)
string(REGEX MATCH "I +refs: +([0-9,]+)" found "${log}")
if(NOT result EQUAL 0 OR NOT found)
  message(FATAL_ERROR "valgrind: ${result}\n${log}")
endif()
string(REPLACE "," "" count "${CMAKE_MATCH_1}")
message("${WORK}: ${count} instructions, budget ${budget}")
if(count GREATER budget)
  message(FATAL_ERROR "${WORK} takes more instructions than its budget; if that is the price of "
                      "something worth it, measure anew and say so in ${BUDGETS}")
endif()
