python3 -u -m paxml.main --job_log_dir=x --fdl_config=paxml.tasks.lm.params.nvidia.Llama2_70B \
  --multiprocess_gpu --num_hosts=4 --host_idx=0
