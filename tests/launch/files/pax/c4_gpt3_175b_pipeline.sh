python3 -m paxml.main --job_log_dir=x \
  --exp=tasks.lm.params.c4.C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas
