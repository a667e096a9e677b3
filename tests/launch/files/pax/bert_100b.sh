python3 -m paxml.main --job_log_dir=x --exp=tasks.lm.params.bert.BertSpmdL33H12kBiggerBatch
