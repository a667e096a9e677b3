python3 .local/lib/python3.8/site-packages/paxml/main.py \
  --exp=tasks.lm.params.lm_cloud.LmCloudSpmd2BLimitSteps \
  --job_log_dir=gs://bucket/lm2b
