# Arguments of examples/t5/train_t5_220m_distributed.sh.
torchrun --nproc_per_node 8 pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 12 \
  --hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072 \
  --encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 \
  --micro-batch-size 64 --global-batch-size 512 --bf16 --vocab-extra-ids 100 \
  --transformer-impl transformer_engine --attention-backend auto
