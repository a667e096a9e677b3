# Arguments of training/DeepSpeed-Domino/pretrain_llama3_8b.sh (DeepSpeedExamples).
GPUS_PER_NODE=2
NNODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
LLAMA_ARGS="
  --disable-bias-linear --tokenizer-type HuggingFaceTokenizer --tokenizer-model Llama-3.1-8B
  --normalization RMSNorm --group-query-attention --num-query-groups 8 --no-masked-softmax-fusion
  --attention-dropout 0.0 --hidden-dropout 0.0 --position-embedding-type rope --rotary-percent 1.0
  --rotary-base 500000 --use-rope-scaling --use-rotary-position-embeddings --swiglu --num-layers 32
  --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --max-position-embeddings 131072
  --seq-length 2048 --micro-batch-size 4 --global-batch-size 8 --lr 0.00015 --train-iters 80
  --lr-decay-iters 320000 --lr-decay-style cosine --min-lr 1.0e-5 --weight-decay 1e-2
  --lr-warmup-fraction .01 --clip-grad 1.0 --fp16 --tensor-model-parallel-size $WORLD_SIZE --seed 3407
"
DATA_ARGS="--data-path $DATA --vocab-file gpt2-vocab.json --merge-file gpt2-merges.txt --split 949,50,1"
OUTPUT_ARGS="--log-interval 1 --save-interval 10000 --eval-interval 1000 --eval-iters 1"
cmd="deepspeed --num_gpus $WORLD_SIZE pretrain_llama.py $LLAMA_ARGS $DATA_ARGS $OUTPUT_ARGS"
echo $cmd
eval $cmd
