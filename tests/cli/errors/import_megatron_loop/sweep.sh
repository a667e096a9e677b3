# a sweep
for TP in 1 2; do
  torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size $TP
done
