# cmake -DSHARDSIM=program -DCASE=folder -P check_error.cmake
#
# Runs the program in the folder with the arguments in `args`, one a line, and compares standard
# error and exit code exactly. Standard output must be empty.
file(STRINGS ${CASE}/args arguments)
file(READ ${CASE}/expected_stderr expected)
file(STRINGS ${CASE}/expected_exit expected_exit)

execute_process(COMMAND ${SHARDSIM} ${arguments} WORKING_DIRECTORY ${CASE}
                RESULT_VARIABLE exit OUTPUT_VARIABLE output ERROR_VARIABLE actual)

if(NOT actual STREQUAL expected OR NOT exit STREQUAL expected_exit OR NOT output STREQUAL "")
  message(FATAL_ERROR "expected exit code ${expected_exit} and\n${expected}\n"
                      "got exit code ${exit} and\n${actual}\nstandard output:\n${output}")
endif()
