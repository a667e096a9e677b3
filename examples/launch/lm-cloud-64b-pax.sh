# Pax's LmCloudSpmd64B on 128 chips, as its README launches experiments. In Pax's own words behind
# the file: a smaller batch, other meshes.
#   shardsim import pax examples/launch/lm-cloud-64b-pax.sh PERCORE_BATCH_SIZE=2 --machine tpu-v4
python3 .local/lib/python3.8/site-packages/paxml/main.py \
  --exp=tasks.lm.params.lm_cloud.LmCloudSpmd64B \
  --job_log_dir=gs://bucket/lm64b
