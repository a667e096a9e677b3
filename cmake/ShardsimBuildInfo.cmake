# What this build found, for `shardsim --version` and the configure summary: generated/base/build_info.hpp.
#
# The CUDA Toolkit, NCCL and MPI are found, not required: they make the backends nccl and mpi of the
# verb validate. SHARDSIM_CUDA=ON (the preset cuda) makes the first two an error when missing or too
# old.
set(least_cuda 12.0)
set(least_nccl 2.22)  # ncclGroupSimulateEnd
find_package(CUDAToolkit QUIET)
find_path(SHARDSIM_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME
          PATH_SUFFIXES include)
find_library(SHARDSIM_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ENV NCCL_HOME
             PATH_SUFFIXES lib lib64)
mark_as_advanced(SHARDSIM_NCCL_INCLUDE_DIR SHARDSIM_NCCL_LIBRARY)
find_package(MPI QUIET COMPONENTS CXX)

set(SHARDSIM_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(SHARDSIM_CUDA_VERSION none)
set(SHARDSIM_NCCL_VERSION none)
set(SHARDSIM_MPI_VERSION none)
if(CUDAToolkit_FOUND AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL least_cuda)
  set(SHARDSIM_CUDA_VERSION ${CUDAToolkit_VERSION})
endif()
if(SHARDSIM_NCCL_INCLUDE_DIR AND SHARDSIM_NCCL_LIBRARY)
  file(STRINGS ${SHARDSIM_NCCL_INCLUDE_DIR}/nccl.h version_lines
       REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM version_lines REPLACE "^#define NCCL_[A-Z]+ +([0-9]+).*" "\\1")
  list(JOIN version_lines "." nccl_version)
  if(nccl_version VERSION_GREATER_EQUAL least_nccl)
    set(SHARDSIM_NCCL_VERSION ${nccl_version})
  endif()
endif()
# Neither is of use without the other, or without cuBLAS.
set(SHARDSIM_WITH_NCCL OFF)
if(TARGET CUDA::cublas AND TARGET CUDA::cublasLt AND NOT SHARDSIM_CUDA_VERSION STREQUAL "none"
   AND NOT SHARDSIM_NCCL_VERSION STREQUAL "none")
  set(SHARDSIM_WITH_NCCL ON)
endif()
if(MPI_CXX_FOUND)
  set(SHARDSIM_MPI_VERSION ${MPI_CXX_VERSION})
endif()

if(SHARDSIM_CUDA)
  if(SHARDSIM_CUDA_VERSION STREQUAL "none")
    message(FATAL_ERROR "SHARDSIM_CUDA is ON and there is no CUDA Toolkit ${least_cuda}: set CUDAToolkit_ROOT, "
                        "or use the preset release")
  elseif(SHARDSIM_NCCL_VERSION STREQUAL "none")
    message(FATAL_ERROR "SHARDSIM_CUDA is ON and there is no NCCL ${least_nccl}: set NCCL_HOME, "
                        "or use the preset release")
  elseif(NOT SHARDSIM_WITH_NCCL)
    message(FATAL_ERROR "SHARDSIM_CUDA is ON and the CUDA Toolkit has no cuBLAS: install it, "
                        "or use the preset release")
  endif()
endif()

configure_file(${PROJECT_SOURCE_DIR}/base/build_info.hpp.in
               ${PROJECT_BINARY_DIR}/generated/base/build_info.hpp @ONLY)
message(STATUS "shardsim ${PROJECT_VERSION}: ${SHARDSIM_COMPILER}, CUDA ${SHARDSIM_CUDA_VERSION}, "
               "NCCL ${SHARDSIM_NCCL_VERSION}, MPI ${SHARDSIM_MPI_VERSION}")
