# Writes OUTPUT, a C++ file that defines one string_view per entry of RESOURCES ("name=path"), as
# HEADER declares them.
#
#   cmake -DOUTPUT=resources.cpp "-DRESOURCES=page_html=page.html|report_css=report.css" -P embed.cmake
if(NOT DEFINED HEADER)
  set(HEADER reports/html/resources.hpp)
endif()
set(code "// Made by embed.cmake.\n#include \"${HEADER}\"\n\nnamespace shardsim::resources {\n")
string(REPLACE "|" ";" entries "${RESOURCES}")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([^=]+)=(.*)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  set(path "${CMAKE_MATCH_2}")
  file(READ "${path}" content)
  string(FIND "${content}" ")embed\"" terminator)
  if(NOT terminator EQUAL -1)
    message(FATAL_ERROR "${path} holds the delimiter of the raw string it is embedded as")
  endif()
  # A script that holds this would end its own element.
  string(FIND "${content}" "</script" end_tag)
  if(path MATCHES "\\.js$" AND NOT end_tag EQUAL -1)
    message(FATAL_ERROR "${path} holds </script and cannot be put into a page")
  endif()
  string(APPEND code "\nconst std::string_view ${name} = R\"embed(${content})embed\";\n")
endforeach()
string(APPEND code "\n}  // namespace shardsim::resources\n")
file(WRITE "${OUTPUT}" "${code}")
