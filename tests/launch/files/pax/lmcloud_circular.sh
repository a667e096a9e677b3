python3 -m paxml.main --job_log_dir=x \
  --exp=tasks.lm.params.lm_cloud.LmCloudSpmdPipelineMultislice2BCircular
