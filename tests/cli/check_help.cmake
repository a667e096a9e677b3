# --help of the program and of every verb, whose examples work in a checkout; --version.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

expect(0 version --version)
require_match("${version}" "^shardsim [0-9]+\\.[0-9]+\\.[0-9]+\n")
foreach(part compiler CUDA NCCL MPI)
  require_match("${version}" "\n  ${part} ")
endforeach()

expect(2 nothing)

# Lines of a help text below "Examples:" that begin with shardsim; a backslash joins lines.
function(run_examples help)
  string(REGEX REPLACE "\\\\\n +" "" help "${help}")
  string(REGEX REPLACE ".*\nExamples:\n" "" help "${help}")
  string(REGEX MATCHALL "  shardsim [^\n]*" examples "${help}")
  if(NOT examples)
    message(FATAL_ERROR "no examples in\n${help}")
  endif()
  foreach(example ${examples})
    string(REGEX REPLACE "^  shardsim " "" example "${example}")
    # What an example writes goes to the scratch folder.
    string(REGEX REPLACE "-o " "-o ${SCRATCH}/" example "${example}")
    separate_arguments(arguments UNIX_COMMAND "${example}")
    expect(0 output ${arguments})
  endforeach()
endfunction()

expect(0 help --help)
run_examples("${help}")
foreach(verb run compare plan specs reshard profiles collective calibrate validate import hlo check)
  require_match("${help}" "\n  ${verb} ")
  expect(0 verb_help ${verb} --help)
  require_match("${verb_help}" "^Usage: shardsim ${verb} ")
  run_examples("${verb_help}")
endforeach()
