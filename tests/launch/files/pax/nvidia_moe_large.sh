python3 -u -m paxml.main --job_log_dir=x --exp=paxml.tasks.lm.params.nvidia.MoELarge
