# Arguments of examples/multimodal/pretrain_mistral_clip.sh.
BZ=256
HD=0.1
OPTIONS=" --img-embedding-idx 1 --apply-layernorm-1p --attention-softmax-in-fp32 --use-checkpoint-args \
  --use-distributed-optimizer --transformer-impl transformer_engine --use-te --normalization RMSNorm \
  --group-query-attention --num-query-groups 8 --no-masked-softmax-fusion --num-workers 2 \
  --exit-duration-in-mins 230 --use-flash-attn --untie-embeddings-and-output-weights --disable-bias-linear \
  --position-embedding-type rope --rotary-percent 1.0 --rotary-base 1000000 --swiglu --attention-dropout 0.0 \
  --hidden-dropout ${HD} --tensor-model-parallel-size 4 --pipeline-model-parallel-size 1 --num-layers 32 \
  --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 4096 \
  --ffn-hidden-size 14336 --train-iters 20000 --micro-batch-size 1 --global-batch-size ${BZ} \
  --lr-decay-iters 20000 --lr-warmup-fraction .01 --lr 0.00015 --min-lr 1.0e-5 --lr-decay-style cosine \
  --log-interval 10 --eval-iters 10 --eval-interval 1000 --tokenizer-type MistralTokenizer \
  --tokenizer-model ${WORKSPACE}/tokenizer --data-path ${DATA_TRAIN} --valid-path ${DATA_VALID} \
  --prompt-path manual_prompts.json --save-interval 1000 --save ${OUTPUT} --load ${OUTPUT} \
  --dataloader-save ${OUTPUT}/dataloader --pretrained-checkpoint ${OUTPUT} --split 100,0,0 --clip-grad 1.0 \
  --weight-decay 1e-2 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.014 --log-params-norm \
  --log-num-zeros-in-grad --bf16 --eod-mask-loss --freeze-LM --freeze-ViT --patch-dim 14 --img-h 336 \
  --img-w 336 --dataloader-type external --tensorboard-dir ${OUTPUT} --language-model-type=mistral_7b \
  --disable-vision-class-token --distributed-timeout-minutes 60 \
  --allow-missing-vision-projection-checkpoint "
torchrun --nproc_per_node 8 examples/multimodal/train.py ${OPTIONS}
