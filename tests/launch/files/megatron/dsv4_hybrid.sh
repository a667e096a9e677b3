# Arguments of examples/dsv4_hybrid/train_dsv4_hybrid.sh.
GPUS_PER_NODE=8
NUM_NODES=1
SEQ_LEN=8192
HYBRID_PATTERN="M-M-MCM-MHM-MDM-MCM-MHM-MDM-"
LAUNCH=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES)
MODEL=(--hybrid-layer-pattern $HYBRID_PATTERN --hidden-size 2048 --num-attention-heads 16
       --num-query-groups 8 --ffn-hidden-size 8192 --kv-channels 128 --mamba-num-heads 64
       --mamba-head-dim 64 --mamba-state-dim 128 --mamba-num-groups 8 --seq-length $SEQ_LEN
       --max-position-embeddings $SEQ_LEN --position-embedding-type none --normalization RMSNorm
       --untie-embeddings-and-output-weights --disable-bias-linear --squared-relu
       --init-method-std 0.0198)
ATTENTION=(--rope-type rope --q-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64
           --v-head-dim 128 --csa-window-size 128 --csa-compress-ratio-for-c 4
           --csa-compress-ratio-for-h 128 --csa-compress-rotary-base 40000 --o-groups 4
           --o-lora-rank 128 --dsa-indexer-n-heads 64 --dsa-indexer-head-dim 128
           --dsa-indexer-topk 64 --dsa-indexer-loss-coeff 0.0)
TRAIN=(--micro-batch-size 1 --global-batch-size 8 --train-samples 36621094 --lr 1.4e-3
       --min-lr 1.4e-5 --lr-decay-style WSD --lr-warmup-samples 1024000 --lr-decay-samples 36621094
       --lr-wsd-decay-style minus_sqrt --lr-wsd-decay-samples 5493165 --weight-decay 0.1
       --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0 --attention-dropout 0.0
       --hidden-dropout 0.0 --bf16 --override-opt_param-scheduler)
PARALLEL=(--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1
          --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather)
DATA=(--per-split-data-args-path $5 --data-cache-path $3 --tokenizer-type TikTokenizer
      --tokenizer-model $4 --tiktoken-pattern v2 --num-workers 1 --num-dataset-builder-threads 4
      --no-create-attention-mask-in-dataloader --no-mmap-bin-files)
SAVE=(--save $1 --load $1 --ckpt-format torch_dist --ckpt-fully-parallel-save
      --ckpt-fully-parallel-load --ckpt-assume-constant-structure --async-save
      --use-persistent-ckpt-worker --no-load-rng --save-interval 125 --save-retain-interval 1000)
LOGS=(--log-interval 10 --log-throughput --log-progress --log-params-norm --log-num-zeros-in-grad
      --log-memory-interval 1000 --logging-level 20 --eval-interval 1000 --eval-iters 14
      --tensorboard-dir $2)
MISC=(--seed 1234 --rerun-mode disabled --attention-backend flash --disable-gloo-process-groups
      --use-mcore-models --spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec
      --distributed-timeout-minutes 30)
torchrun ${LAUNCH[@]} pretrain_hybrid.py ${MODEL[@]} ${ATTENTION[@]} ${TRAIN[@]} ${PARALLEL[@]} \
  ${DATA[@]} ${SAVE[@]} ${LOGS[@]} ${MISC[@]}
