# shardsim_room(NAME SOURCES a.cpp b.cpp ROOMS base plan LIBRARIES fmt::fmt)
#
# One room of the architecture: the static library shardsim_NAME, alias shardsim::NAME. ROOMS are
# the rooms below that it may see.
function(shardsim_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(shardsim_${name} STATIC ${ARG_SOURCES})
  add_library(shardsim::${name} ALIAS shardsim_${name})
  set_target_properties(shardsim_${name} PROPERTIES EXPORT_NAME ${name})
  list(TRANSFORM ARG_ROOMS PREPEND shardsim::)
  target_link_libraries(shardsim_${name} PUBLIC ${ARG_ROOMS} ${ARG_LIBRARIES})
  target_include_directories(shardsim_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/shardsim>)
  shardsim_flags(shardsim_${name})
  set_target_properties(shardsim_${name} PROPERTIES
    UNITY_BUILD ${SHARDSIM_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  set_property(GLOBAL APPEND PROPERTY SHARDSIM_ROOMS ${name})
endfunction()

# Links what sanitizers make large in a third of the time.
find_program(SHARDSIM_LLD ld.lld)

# Warnings and sanitizers, for everything that we compile.
function(shardsim_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    $<$<BOOL:${SHARDSIM_WERROR}>:-Werror>
    # Sources that are compiled together see each other's names; apart, these are told.
    $<$<BOOL:${SHARDSIM_UNITY}>:-Wno-shadow -Wno-subobject-linkage>
    # GCC 12, optimizing, sees overlaps in std::string and values of empty optionals that are not
    # there (its bugs 105651 and 80635).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>)
  if(SHARDSIM_SANITIZE)
    # Of debug information the lines, which a report names: all of it takes a tenth longer to build.
    # -Og costs no time to build, and tests run in a third of theirs. Null pointers are found by
    # their addresses, too; to look at each and its alignment takes half as long again to build.
    target_compile_options(${target} PRIVATE -fsanitize=${SHARDSIM_SANITIZE}
      -fno-sanitize=null,alignment,object-size -fno-omit-frame-pointer -fno-sanitize-recover=all
      -g1 -Og)
    target_link_options(${target} PUBLIC -fsanitize=${SHARDSIM_SANITIZE}
      $<$<BOOL:${SHARDSIM_LLD}>:-fuse-ld=lld>)
  endif()
endfunction()

# Tests themselves do little work: calls in place of checks in line, and traps in place of reports,
# which Catch2 tells with the name of the test, build in three quarters of the time.
function(shardsim_sanitize_small target)
  if(SHARDSIM_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fsanitize-undefined-trap-on-error
      "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
endfunction()

# A target whose code runs too seldom to be worth the time that -O3 takes to compile it.
function(shardsim_seldom_runs target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
