python3 -m paxml.main --exp=tasks.lm.params.lm_cloud.LmCloudSpmdMultislice2B --job_log_dir=x
