# Arguments of examples/mamba/train.sh.
MODEL_SCALE="800M" # or "8B"
case "${MODEL_SCALE}" in
  "800M")
    TP=1
    LAYERS=48
    HIDDEN=1024
    HEADS=16
    BATCH=32
    ;;
  "8B")
    TP=4; LAYERS=56; HIDDEN=4096; HEADS=32; BATCH=8
    ;;
  *)
    echo "Invalid version specified"
    exit 1
    ;;
esac
SEQ_LEN=4096
options=" \
  --tensor-model-parallel-size ${TP} --sequence-parallel --pipeline-model-parallel-size 1 \
  --use-distributed-optimizer --overlap-param-gather --overlap-grad-reduce \
  --untie-embeddings-and-output-weights --init-method-std 0.02 --position-embedding-type none \
  --num-layers ${LAYERS} --hidden-size ${HIDDEN} --num-attention-heads ${HEADS} \
  --group-query-attention --num-query-groups 8 --hybrid-attention-ratio 0.08 \
  --hybrid-mlp-ratio 0.5 --seq-length ${SEQ_LEN} --max-position-embeddings ${SEQ_LEN} \
  --train-samples 73242188 --lr-warmup-samples 50000 --lr-decay-samples 73192188 --save ckpt \
  --load ckpt --data-path $1 --data-cache-path cache --split 99,1,0 \
  --tokenizer-type GPTSentencePieceTokenizer --tokenizer-model $2 --distributed-backend nccl \
  --micro-batch-size 4 --global-batch-size ${BATCH} --lr 2.5e-4 --min-lr 2.5e-5 \
  --lr-decay-style cosine --weight-decay 0.1 --clip-grad 1.0 --attention-dropout 0.0 \
  --hidden-dropout 0.0 --disable-bias-linear --normalization RMSNorm --adam-beta1 0.9 \
  --adam-beta2 0.95 --log-interval 10 --save-interval 2000 --eval-interval 2000 --eval-iters 32 \
  --bf16 --use-mcore-models --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec \
  --no-create-attention-mask-in-dataloader --tensorboard-dir logs"
torchrun --nproc_per_node 8 ../../examples/classes/pretrain_mamba.py ${options}
