# As recipes for GPUs launch it, with constants on the command line.
python3 -u -m paxml.main --job_log_dir=x --fdl_config=paxml.tasks.lm.params.nvidia.NVIDIA175B \
  --fdl.PERCORE_BATCH_SIZE=0.25 --fdl.DCN_MESH_SHAPE="[6,2,1,1]" --tfds_data_dir=y \
  --multiprocess_gpu --server_addr=node0:12345 --num_hosts=12 --host_idx=0 --alsologtostderr
