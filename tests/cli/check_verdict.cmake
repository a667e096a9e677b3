# --require-fit: 16 bytes per parameter of Llama-3.1-8B are 120 GiB, more than the 80 GB of an H100,
# so `dp` cannot fit; sharded over 8 devices they are 15 GiB.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(example examples/llama-3.1-8b-8xh100.json)

expect(1 text run ${example} --name dp --require-fit)
require_match("${text}" "GiB")
expect(0 text run ${example} --name dp)
expect(0 text run ${example} --name fsdp --require-fit)
expect(0 text compare ${example} --require-fit)
expect(1 text compare ${example} --name dp --require-fit)
