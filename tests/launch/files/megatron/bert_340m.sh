# Arguments of examples/bert/train_bert_340m_distributed.sh.
LAUNCH=(--nproc_per_node 8 --nnodes 1)
MODEL=(--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512
       --max-position-embeddings 512 --attention-backend auto)
TRAIN=(--micro-batch-size 4 --global-batch-size 32 --train-iters 1000000 --weight-decay 1e-2
       --clip-grad 1.0 --fp16 --lr 0.0001 --lr-decay-iters 990000 --lr-decay-style linear
       --min-lr 1.0e-5 --weight-decay 1e-2 --lr-warmup-fraction .01 --clip-grad 1.0)
PARALLEL=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16)
DATA=(--data-path $4 --vocab-file $3 --split 949,50,1)
LOGS=(--log-interval 100 --save-interval 10000 --eval-interval 1000 --save $1 --load $1
      --eval-iters 10 --tensorboard-dir $2)
torchrun ${LAUNCH[@]} examples/classes/pretrain_bert.py ${MODEL[@]} ${TRAIN[@]} ${PARALLEL[@]} \
  ${DATA[@]} ${LOGS[@]}
