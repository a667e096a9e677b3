python3 -m paxml.main --exp=tasks.lm.params.c4.C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas \
  --job_log_dir=x
