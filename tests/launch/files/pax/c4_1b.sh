DIR=gs://bucket/c4
python3 .local/lib/python3.8/site-packages/paxml/main.py \
  --exp=tasks.lm.params.c4.C4Spmd1BAdam4Replicas --job_log_dir=$DIR --enable_checkpoint_saving=False
