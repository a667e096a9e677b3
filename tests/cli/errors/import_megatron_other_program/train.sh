torchrun --nproc_per_node 8 \
  pretrain_t5.py --num-layers 4
