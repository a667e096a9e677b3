# expect(EXIT_CODE OUTPUT_VARIABLE ARGUMENT...): runs the program in the checkout; fails when the
# exit code differs.
function(expect exit_code output_variable)
  execute_process(COMMAND ${SHARDSIM} ${ARGN} WORKING_DIRECTORY ${SOURCE}
                  RESULT_VARIABLE exit OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT exit STREQUAL exit_code)
    message(FATAL_ERROR "shardsim ${ARGN}: exit code ${exit}, expected ${exit_code}\n${errors}")
  endif()
  set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()

function(require_match text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "no \"${pattern}\" in\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
