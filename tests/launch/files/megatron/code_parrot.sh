# Arguments of examples/code_parrot/pretrain_parrot_torchrun_seq_parallel.sh, which asks for four
# devices of two.
GPUS_PER_NODE=2
LAUNCH="--nproc_per_node $GPUS_PER_NODE"
GPT="--num-layers 10
--hidden-size 4096
--num-attention-heads 32
--seq-length 1024 --max-position-embeddings 8192
--micro-batch-size 2 --global-batch-size 4
--lr 0.0005 --train-iters 150000 --lr-decay-iters 150000 --lr-decay-style cosine
--lr-warmup-iters 2000 --weight-decay .1 --adam-beta2 .999 --fp16
--log-interval 10 --save-interval 2000 --eval-interval 200 --eval-iters 10
"
DATA="--data-path content --vocab-file vocab.json --merge-file merges.txt --data-impl mmap
  --split 949,50,1"
torchrun $LAUNCH pretrain_gpt.py \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --empty-unused-memory-level 2 \
  --sequence-parallel --recompute-granularity selective --recompute-num-layers 1 \
  --use-distributed-optimizer --use-cpu-initialization --use-flash-attn \
  $GPT $DATA --save ckpt --load ckpt
