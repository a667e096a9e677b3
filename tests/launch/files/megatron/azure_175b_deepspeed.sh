# Arguments of examples/azure/run-175b.sh, which runs Megatron under DeepSpeed.
set -ex
TP=1
MICRO_BATCH=4
NODES=1
GPN=8
GLOBAL_BATCH=$(( ${GPN} * ${MICRO_BATCH} * ${NODES} ))
cat <<EOT > ds_config.json
{ "train_batch_size" : $GLOBAL_BATCH }
EOT
ds_args=" "
ds_args=" --deepspeed ${ds_args}"
ds_args=" --no-pipeline-parallel ${ds_args}"
ds_args=" --deepspeed_config=ds_config.json ${ds_args}"
ds_args=" --zero-stage=3 ${ds_args}"
ds_args=" --deepspeed-activation-checkpointing ${ds_args}"
deepspeed --force_multi --num_nodes=$NODES --hostfile /job/hostfile pretrain_gpt.py \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size 1 --num-layers 96 \
  --hidden-size 12288 --num-attention-heads 96 --seq-length 1024 --loss-scale 15 \
  --max-position-embeddings 1024 --micro-batch-size $MICRO_BATCH \
  --global-batch-size $GLOBAL_BATCH --train-iters 1000 --lr 6.0e-5 --min-lr 6.0e-6 \
  --lr-decay-style cosine --log-interval 1 --eval-iters 40 --eval-interval 1000 \
  --data-path books --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt \
  --save-interval 1000 --split 98,2,0 --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 \
  --adam-beta2 0.95 --init-method-std 0.006 --fp16 --checkpoint-activations \
  --tensorboard-dir out $ds_args --exit-interval 5000 | tee out/output.log
