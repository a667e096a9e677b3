python3 -m paxml.main --exp=tasks.lm.params.lm_cloud.LmCloudSpmdPipeline9B --job_log_dir=x
