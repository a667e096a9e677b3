#!/bin/sh
# Mixtral 8x7B under Megatron-LM on eight nodes: experts over eight devices, two tensor-parallel
# ranks, four stages.
#   shardsim import megatron examples/launch/mixtral-8x7b-megatron.sh --machine dgx-h100 -o m.json
#   shardsim run m.json
GPUS_PER_NODE=8
NODES=${NODES:-8}
TP=2
PP=4

MODEL="--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
  --group-query-attention --num-query-groups 8 --max-position-embeddings 32768
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear
  --untie-embeddings-and-output-weights --vocab-size 32000
  --attention-dropout 0.0 --hidden-dropout 0.0"
EXPERTS="--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm
  --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8
  --expert-tensor-parallel-size 1"
TRAIN="--seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16 --lr 1e-4
  --train-iters 500000 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
  --recompute-granularity selective --recompute-modules core_attn moe_act"

torchrun --nproc-per-node $GPUS_PER_NODE --nnodes $NODES pretrain_gpt.py \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP --sequence-parallel \
  $MODEL $EXPERTS $TRAIN
