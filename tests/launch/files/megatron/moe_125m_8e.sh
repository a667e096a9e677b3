# Arguments of examples/bf16_125m_8E.sh: a mixture whose experts have biases and learned positions.
LAUNCH="
  --nproc_per_node 4 \
  --nnodes 1
"
GPT="
  --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 \
  --max-position-embeddings 1024 --micro-batch-size 32 --global-batch-size 1024 --lr 0.00015 \
  --train-iters 570000 --lr-decay-iters 570000 --lr-decay-style cosine --min-lr 1.0e-5 \
  --weight-decay 0.0 --lr-warmup-fraction .01 --clip-grad 1.0 --bf16 --num-experts 8 \
  --expert-model-parallel-size 1 --recompute-granularity selective --use-flash-attn \
  --accumulate-allreduce-grads-in-fp32 --attention-dropout 0.0 --hidden-dropout 0.0 --swiglu
"
DATA="--data-path enwik8 --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt \
  --split 1000,0,0 --num-workers 0 --distributed-timeout-minutes 120"
LOGS="--log-interval 10 --save-interval 2000 --eval-interval 500 --eval-iters 50 \
  --wandb-project moe --wandb-exp-name moe --wandb-save-dir wandb"
torchrun $LAUNCH /opt/Megatron-LM/pretrain_gpt.py $GPT $DATA $LOGS --distributed-backend nccl \
  --save ckpt --load ckpt
