# Arguments of examples/deepseek2_lite/train_deepseek2_lite_h100_fp8.sh.
LAYERS=16
ROUTED=$(($LAYERS-1))
DTYPE="bf16"
LAUNCH=(--nproc_per_node 8 --nnodes 1)
MODEL=(
  --num-layers $LAYERS --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16
  --kv-channels 16 --seq-length 1024 --max-position-embeddings 1024 --attention-dropout 0.0
  --hidden-dropout 0.0 --disable-bias-linear --untie-embeddings-and-output-weights
  --normalization RMSNorm --norm-epsilon 1e-6 --swiglu --no-masked-softmax-fusion
  --attention-softmax-in-fp32 --use-mcore-models --tokenizer-type HuggingFaceTokenizer
  --make-vocab-size-divisible-by 3200 --transformer-impl local
)
LATENT=(--multi-latent-attention --kv-lora-rank 512 --v-head-dim 128 --qk-head-dim 128
        --qk-layernorm --qk-pos-emb-head-dim 64)
EXPERTS=(
  --num-experts 64 --moe-layer-freq "([0]+[1]*$ROUTED)" --moe-ffn-hidden-size 1408
  --moe-grouped-gemm --moe-router-score-function softmax --moe-router-topk 6
  --moe-router-topk-scaling-factor 1.0 --moe-router-pre-softmax
  --moe-shared-expert-intermediate-size 2816 --moe-aux-loss-coeff 1e-3
  --moe-token-dispatcher-type alltoall --moe-token-drop-policy probs
  --moe-router-load-balancing-type seq_aux_loss
)
ROPE=(--position-embedding-type rope --no-rope-fusion --rotary-percent 1.0 --rotary-base 10000
      --rotary-scaling-factor 40 --mscale 0.707 --mscale-all-dim 0.707)
TRAIN=(
  --micro-batch-size 1 --global-batch-size 64 --train-samples 47340000
  --lr-decay-samples 47245280 --lr-warmup-samples 94720 --lr 0.00015 --min-lr 0.00001
  --decoupled-lr 5.0e-4 --decoupled-min-lr 4.5e-5 --lr-decay-style cosine --clip-grad 1.0
  --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --bf16 --grad-reduce-in-bf16
  --cross-entropy-loss-fusion --calculate-per-token-loss --manual-gc --empty-unused-memory-level 1
  --exit-duration-in-mins 235000000 --no-persist-layer-norm
)
TYPES=()
if [[ "$DTYPE" == "fp8" ]]; then
  if grep -q "transformer-impl local" <<< "${MODEL[@]}"; then
    echo "fp8 needs transformer_engine"
    exit 1
  fi
  TYPES+=("--fp8-format hybrid")
fi
PARALLEL=(--tensor-model-parallel-size 8 --context-parallel-size 1
          --pipeline-model-parallel-size 1 --sequence-parallel)
TRAIN+=(--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
DATA=("--data-path wikitext" "--tokenizer-type HuggingFaceTokenizer"
      "--tokenizer-model deepseek-ai/DeepSeek-V2-Lite" "--data-cache-path ${PWD}/cache"
      "--split '99,1,0'" "--no-create-attention-mask-in-dataloader" "--num-workers 1"
      "--vocab-size 128256")
LOGS=(--log-interval 1 --eval-iters 32 --eval-interval 100 --save-interval 1000 --log-throughput
      --ckpt-format torch_dist --distributed-timeout-minutes 120 --save "$1"
      --tensorboard-dir "$2")
torchrun ${LAUNCH[@]} "pretrain_gpt.py" ${MODEL[@]} ${LATENT[@]} ${ROPE[@]} ${EXPERTS[@]} \
  ${TRAIN[@]} ${TYPES[@]} ${PARALLEL[@]} ${DATA[@]} ${LOGS[@]}
