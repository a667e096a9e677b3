TP=3
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 \
  --num-attention-heads 16 --seq-length 512 --micro-batch-size 1 \
  --vocab-size 32000 --tensor-model-parallel-size $TP
