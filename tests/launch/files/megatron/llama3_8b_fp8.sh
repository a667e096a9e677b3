# Arguments of examples/llama/train_llama3_8b_h100_fp8.sh.
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-1}
CKPT=${1:-"checkpoints/llama3_8b_fp8"}
TOKENIZER=${3:-"MOCK"} # a path, or "MOCK"
DATA=${4:-"MOCK"}
mkdir -p "$(dirname "$CKPT")"
PER_NODE=8
NODES=1
SCRIPT="examples/classes/pretrain_gpt.py"
DTYPE="fp8"
LAUNCH=(--nproc_per_node $PER_NODE --nnodes $NODES --node_rank ${NODE_RANK:-0})
MODEL=(
  --use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
  --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128
  --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope
  --rotary-base 1000000 --rotary-percent 1.0 --attention-dropout 0.0 --hidden-dropout 0.0
  --swiglu --init-method-std 0.0134 --attention-backend fused --apply-layernorm-1p
  --untie-embeddings-and-output-weights --disable-bias-linear
)
TRAIN=(
  --micro-batch-size 1 --global-batch-size 128 --train-samples 1953125000
  --lr-decay-samples 1949218748 --lr-warmup-samples 3906252 --lr 0.00015 --min-lr 0.00001
  --decoupled-lr 5.0e-4 --decoupled-min-lr 4.5e-5  # of AdamW
  --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95
  --bf16 --grad-reduce-in-bf16 --cross-entropy-loss-fusion --calculate-per-token-loss --manual-gc
  --empty-unused-memory-level 1 --exit-duration-in-mins 235
)
if [[ "$DTYPE" == "fp8" ]]; then
  TYPES+=("--fp8-format hybrid" "--fp8-amax-history-len 1024" "--fp8-amax-compute-algo max"
          "--fp8-param-gather")
fi
PARALLEL=(--tensor-model-parallel-size 1 --context-parallel-size 1 --sequence-parallel)
BUFFERS=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
TRAIN+=("${BUFFERS[@]}")
if [[ "$TOKENIZER" == "MOCK" ]] || [[ "$DATA" == "MOCK" ]] || [[ -z "$TOKENIZER" ]]; then
  READ+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256"
         "--data-cache-path ${PWD}/cache" "--tiktoken-pattern v2" "--split '99,1,0'"
         "--no-create-attention-mask-in-dataloader" "--no-mmap-bin-files" "--num-workers 1")
else
  READ+=("--data-path $DATA" "--tokenizer-type HuggingFaceTokenizer" "--tokenizer-model $TOKENIZER")
fi
LOGS=(
  --log-interval 1 --eval-iters 32 --eval-interval 100 --save-interval 1000 --log-throughput
  --profile --profile-step-start 4 --profile-step-end 6 --ckpt-format torch_dist
  --distributed-timeout-minutes 60 --save "$CKPT" --load "$CKPT" --tensorboard-dir "$2"
)
if [ ! -f "$SCRIPT" ]; then
  echo "Error: $SCRIPT is not there"
  exit 1
fi
torchrun ${LAUNCH[@]} "$SCRIPT" ${MODEL[@]} ${TRAIN[@]} ${TYPES[@]} ${PARALLEL[@]} ${READ[@]} \
  ${LOGS[@]}
set +x
