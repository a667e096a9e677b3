# Installs the program, the library and the package: find_package(shardsim) gives shardsim::shardsim
# with every room, and each room alone as shardsim::plan, shardsim::sim, ...
get_property(rooms GLOBAL PROPERTY SHARDSIM_ROOMS)

# The program has the name shardsim, so the umbrella's own target has another.
add_library(shardsim_umbrella INTERFACE)
add_library(shardsim::shardsim ALIAS shardsim_umbrella)
set_target_properties(shardsim_umbrella PROPERTIES EXPORT_NAME shardsim)
list(TRANSFORM rooms PREPEND shardsim:: OUTPUT_VARIABLE room_targets)
target_link_libraries(shardsim_umbrella INTERFACE ${room_targets})

list(TRANSFORM rooms PREPEND shardsim_ OUTPUT_VARIABLE room_libraries)
install(TARGETS shardsim_umbrella ${room_libraries} EXPORT shardsim COMPONENT development)
install(TARGETS shardsim COMPONENT program)
# What shells complete and the manual page, as the program itself prints them.
set(shardsim_pages ${PROJECT_BINARY_DIR}/pages)
install(CODE "
  file(MAKE_DIRECTORY \"${shardsim_pages}\")
  foreach(shell bash zsh fish)
    execute_process(COMMAND \"$<TARGET_FILE:shardsim>\" completion \${shell}
                    OUTPUT_FILE \"${shardsim_pages}/\${shell}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND \"$<TARGET_FILE:shardsim>\" man
                  OUTPUT_FILE \"${shardsim_pages}/shardsim.1\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT program)
install(FILES ${shardsim_pages}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME shardsim COMPONENT program)
install(FILES ${shardsim_pages}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        RENAME _shardsim COMPONENT program)
install(FILES ${shardsim_pages}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        RENAME shardsim.fish COMPONENT program)
install(FILES ${shardsim_pages}/shardsim.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
if(SHARDSIM_WITH_NCCL)
  install(TARGETS shardsim_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/shardsim COMPONENT program)
endif()

# Sources say #include "plan/plan.hpp"; so do users, with include/shardsim as the include directory.
foreach(room ${rooms})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardsim COMPONENT development
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/base
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardsim COMPONENT development
        FILES_MATCHING PATTERN "*.hpp")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardsim)
install(EXPORT shardsim NAMESPACE shardsim:: DESTINATION ${package_dir}
        FILE shardsimTargets.cmake COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/shardsimConfig.cmake.in
  ${PROJECT_BINARY_DIR}/shardsimConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/shardsimConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardsimConfig.cmake
              ${PROJECT_BINARY_DIR}/shardsimConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
              ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
