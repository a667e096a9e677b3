# shardsim_embed(SOURCE_VARIABLE FUNCTION FOLDER NAME...)
#
# Makes a source of this folder's room that defines FUNCTION(), declared in FUNCTION.hpp: the files
# FOLDER/NAME.json, in this order. Its path goes into SOURCE_VARIABLE.
function(shardsim_embed source_variable function folder)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  list(TRANSFORM ARGN REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/\\1.json"
       OUTPUT_VARIABLE files)
  list(JOIN files ":" files_argument)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DFILES=${files_argument}
            -DHEADER=${room}/${function}.hpp -DFUNCTION=${function} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${room}/${folder}"
    VERBATIM)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # not linted
  set(${source_variable} ${source} PARENT_SCOPE)
endfunction()
