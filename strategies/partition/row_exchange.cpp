#include "strategies/partition/row_exchange.hpp"

#include <string>

#include "base/index.hpp"
#include "plan/row_visits.hpp"

namespace shardsim {
namespace {

// transformer_config.py of Megatron-Core 0.16.1, moe_deepep_num_sms and moe_hybridep_num_sms; the
// first is DeepEP's own default (deep_ep/buffer.py, Buffer.num_sms), too.
constexpr std::int32_t deepep_multiprocessors = 20;
constexpr std::int32_t hybridep_multiprocessors = 16;

class RowExchange {
 public:
  RowExchange(SpmdBuilder& builder, const ExpertLayout& experts, const Op& op, BlockPass& pass)
      : builder_(builder), experts_(experts), op_(op), pass_(pass) {
    const Operand& result = op.results.front();
    to_experts_ = role(result, 0) == LabelRole::experts;
    const Operand& by_expert = to_experts_ ? result : op.operands.front();
    const Operand& by_token = to_experts_ ? op.operands.front() : result;
    all_experts_ = label(by_expert, 0).size;
    hearing_ = experts_.parallel;
    if (is_within(experts_.tensor, experts_.tokens)) {
      hearing_.insert(hearing_.end(), experts_.tensor.begin(), experts_.tensor.end());
    }
    for (std::size_t d = 0; d < by_token.dims.size(); ++d) {
      if (role(by_token, d) == LabelRole::expert_tokens) choice_ = label(by_token, d).size;
    }
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < by_token.dims.size(); ++d) rows *= label(by_token, d).size;
    is_even_ = label(by_expert, 1).size == (rows + all_experts_ - 1) / all_experts_;
  }

  void run(const std::vector<ValueId>& operands, const std::vector<ValueId>& results) {
    if (experts_.dispatch == Dispatch::all_gather) {
      to_experts_ ? gather(operands, results) : scatter(operands, results);
      return;
    }
    if (to_experts_) {
      const bool counts = operands.size() > results.size();
      if (counts && experts_.pads) (void)sum_counts(operands.back());
      const ValueId known = counts && !experts_.pads ? tell_counts(operands.back()) : no_value;
      std::vector<ValueId> arrived;
      for (std::size_t i = 0; i < results.size(); ++i) {
        arrived.push_back(add_sent(results[i]));
        const ValueId by_sender = sorts(arrived.back()) ? add_like(arrived.back()) : arrived.back();
        send(operands[i], by_sender, by_sender, known);
        if (by_sender != arrived.back()) sort(by_sender, arrived.back());
      }
      for (std::size_t i = 0; i < results.size(); ++i)
        become(bring_computed(arrived[i]), results[i]);
      return;
    }
    // The other way round.
    std::vector<ValueId> leaving;
    for (std::size_t i = results.size(); i-- > 0;) {
      leaving.push_back(bring_sent(operands[i]));
      if (!sorts(leaving.back())) continue;
      const ValueId by_expert = leaving.back();
      leaving.back() = add_like(by_expert);
      sort(by_expert, leaving.back());
    }
    for (std::size_t i = results.size(); i-- > 0;) {
      const ValueId rows = leaving[results.size() - 1 - i];
      send(rows, results[i], rows, no_value);
    }
  }

 private:
  [[nodiscard]] const Label& label(const Operand& rows, std::size_t dim) const {
    return builder_.workload().labels[at(rows.dims[dim].front())];
  }
  [[nodiscard]] LabelRole role(const Operand& rows, std::size_t dim) const {
    return label(rows, dim).role;
  }

  // Rows by expert as they are sent: under the sharding of the result where that is the same.
  ValueId add_sent(ValueId result) {
    const Value wanted = builder_.value(result);
    const Sharding sent = sent_rows(experts_, wanted.sharding.dims.size());
    if (sent == wanted.sharding) return result;
    return builder_.add_value(wanted.tensor, sent, wanted.dtype, BufferCategory::temporaries);
  }
  ValueId bring_computed(ValueId sent) {
    return bring(sent, computed_rows(experts_, builder_.value(sent).sharding.dims.size()));
  }
  ValueId bring_sent(ValueId computed) {
    return bring(computed, sent_rows(experts_, builder_.value(computed).sharding.dims.size()));
  }
  ValueId bring(ValueId from, const Sharding& to) {
    const std::size_t first = pass_.body.size();
    const ValueId brought =
        builder_.bring(from, to, Stream::activations, RowsExchanged{&op_}, pass_.body);
    if (!returns_wide()) return brought;
    for (std::size_t i = first; i < pass_.body.size(); ++i) {
      if (pass_.body[i].kind == TaskKind::collective) widen(pass_.body[i].collective);
    }
    return brought;
  }

  // What experts make is added up over the devices that they are split over, and its gradient
  // gathered, in the type of the router's weights (megatron/core/transformer/moe/
  // token_dispatcher.py, combine_preprocess; of MoEAllGatherTokenDispatcher, token_combine). The
  // casts are left out, their time and their memory.
  // Engines that serve have kernels of their own.
  [[nodiscard]] bool returns_wide() const {
    if (!experts_.exchange.weights_travel || op_.operands.size() != 1) return false;
    const Workload& workload = builder_.workload();
    if (!has_backward(workload)) return false;
    for (const Block& block : workload.blocks) {
      for (const Op& op : block.forward) {
        if (op.function != Function::exchange || op.results.size() < 2) continue;
        return workload.tensors[at(op.results.back().tensor)].dtype == DType::f32;
      }
    }
    return false;
  }
  static void widen(Collective& call) {
    const std::int64_t times = size_of(DType::f32).count() / size_of(call.dtype).count();
    call.dtype = DType::f32;
    call.payload = times * call.payload;
    for (CollectivePart& part : call.parts) part.payload = times * part.payload;
  }

  // Rows arrive device by device and are put in the order of the device's own experts, where it has
  // several, and back again before they return (megatron/core/transformer/moe/token_dispatcher.py,
  // sort_chunks_by_idxs; torchtitan/models/moe/utils.py, _permute). DeepEP's and HybridEP's come as
  // tokens, which the one copy by expert behind them sorts. Their weights' time is left out.
  [[nodiscard]] bool sorts(ValueId rows) const {
    return experts_.dispatch == Dispatch::all_to_all &&
           all_experts_ > Mesh::size_of(experts_.parallel) && !experts_.parallel.empty() &&
           builder_.value(rows).sharding.dims.size() > 2;
  }

  ValueId add_like(ValueId rows) {
    const Value like = builder_.value(rows);
    const ValueId added =
        builder_.add_value(like.tensor, like.sharding, like.dtype, BufferCategory::temporaries);
    builder_.value(added).bytes = like.bytes;
    builder_.value(added).name = like.name;
    return added;
  }

  void sort(ValueId from, ValueId to) {
    Item item;
    item.name = op_.name + " sort";
    item.recompute = op_.recompute;
    item.kernel.op = "dispatch";
    item.kernel.dtype = builder_.value(from).dtype;
    item.kernel.bytes = builder_.value(from).bytes + builder_.value(to).bytes;
    item.operands = {from};
    item.results = {to};
    pass_.body.push_back(std::move(item));
  }

  // The result is what has arrived.
  void become(ValueId arrived, ValueId result) {
    if (arrived == result) return;
    builder_.value(arrived).category = builder_.value(result).category;
    builder_.value(result).storage = arrived;
  }

  // `by_expert`: which of the two lies so.
  void send(ValueId from, ValueId to, ValueId by_expert, ValueId counts) {
    const bool by_device = experts_.dispatch != Dispatch::all_to_all;
    const bool are_weights = builder_.value(by_expert).sharding.dims.size() < 3;
    // Nobody to send to; or in the rows' own call, as DeepEP's kernels take weights along.
    if (experts_.parallel.empty() || (by_device && are_weights)) {
      builder_.value(to).storage = from;
      return;
    }
    // Of an even routing as many as there are tokens, whatever slots are rounded to.
    const ValueId counted = is_even_ == (by_expert == from) ? to : from;
    auto bytes = static_cast<double>(builder_.value(counted).bytes.count());
    if (by_device) {
      bytes *= copies_by_part(all_experts_, choice_, Mesh::size_of(experts_.parallel)) /
               static_cast<double>(choice_);
    }
    Item item = call(CollectiveKind::all_to_all, experts_.parallel, builder_.value(from).dtype,
                     Bytes(static_cast<std::int64_t>(bytes)), builder_.value(from).name);
    item.name = builder_.value(from).name;
    if (by_device) {
      item.collective.visits = visits(builder_.value(from).dtype);
      item.collective.awaited = counts != no_value;
    }
    item.reason = RowsExchanged{&op_};
    item.operands = {from};
    if (counts != no_value) item.operands.push_back(counts);
    item.results = {to};
    pass_.body.push_back(std::move(item));
  }

  [[nodiscard]] RowVisits visits(DType dtype) const {
    const bool is_hybrid = experts_.dispatch == Dispatch::hybridep;
    const Operand& rows = op_.results.front();
    return {all_experts_,
            choice_,
            is_hybrid ? hybridep_multiprocessors : deepep_multiprocessors,
            is_hybrid ? RowKernels::hybridep : RowKernels::deepep,
            !to_experts_,
            label(rows, rows.dims.size() - 1).size * size_of(dtype)};
  }

  // Megatron's MoEAllGatherTokenDispatcher (megatron/core/transformer/moe/token_dispatcher.py):
  // which expert each token visits, the weights that routers give to each expert and the tokens
  // themselves; each device takes what its experts need of all. Only rows that have no weights of
  // their own, which gradients are, come without the first.
  void gather(const std::vector<ValueId>& operands, const std::vector<ValueId>& results) {
    const bool first = operands.size() > results.size();
    if (first) (void)tell_routing(operands.front(), operands.back());
    for (std::size_t i = results.size(); i-- > 0;) {
      const ValueId from = operands[i];
      if (hearing_.empty()) {
        builder_.value(results[i]).storage = from;
        continue;
      }
      const Bytes whole = of_all_tokens(from);
      const ValueId gathered = builder_.add_value(
          builder_.value(from).tensor, replicated(builder_.value(from).sharding.dims.size()),
          builder_.value(from).dtype, BufferCategory::communication);
      Item item = exchange(CollectiveKind::all_gather, from, whole, {gathered, results[i]});
      // Tokens lie in a buffer that Megatron-Core keeps for all gathers (megatron/core/
      // tensor_parallel/mappings.py, use_global_buffer); gradients, and sums in fp32, do not.
      const bool stays = first && !is_weight(from) && experts_.exchange.weights_travel;
      (stays ? builder_.value(gathered).in_room : builder_.value(gathered).bytes) =
          item.collective.payload;
      if (stays) builder_.value(gathered).bytes = Bytes(0);
      pass_.body.push_back(std::move(item));
    }
  }

  // Back: the devices' sums for all tokens, of which each device gets its own.
  void scatter(const std::vector<ValueId>& operands, const std::vector<ValueId>& results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (hearing_.empty()) {
        builder_.value(results[i]).storage = operands[i];
        continue;
      }
      pass_.body.push_back(exchange(CollectiveKind::reduce_scatter, operands[i],
                                    of_all_tokens(results[i]), {results[i]}));
    }
  }

  Item exchange(CollectiveKind kind, ValueId from, Bytes payload,
                const std::vector<ValueId>& results) {
    Item item =
        call(kind, hearing_, builder_.value(from).dtype, payload, builder_.value(from).name);
    item.name = builder_.value(from).name;
    item.reason = RowsExchanged{&op_};
    item.operands = {from};
    item.results = results;
    if (returns_wide()) widen(item.collective);
    return item;
  }

  // Of rows that lie by token, with one for each choice: a row for each token of all devices; of
  // weights, one for each expert.
  [[nodiscard]] Bytes of_all_tokens(ValueId by_token) const {
    const std::int64_t each = builder_.value(by_token).bytes.count() / choice_;
    return Bytes(each * Mesh::size_of(hearing_) * (is_weight(by_token) ? all_experts_ : 1));
  }
  [[nodiscard]] bool is_weight(ValueId rows) const {
    const Operand& by_token = to_experts_ ? op_.operands.front() : op_.results.front();
    return builder_.value(rows).sharding.dims.size() < by_token.dims.size();
  }

  ValueId tell_routing(ValueId rows, ValueId numbers) {
    numbers = sum_counts(numbers);
    if (hearing_.empty()) return numbers;
    const std::vector<Dim>& dims = op_.operands.front().dims;
    const std::int64_t row = label(op_.operands.front(), dims.size() - 1).size *
                             size_of(builder_.value(rows).dtype).count() * choice_;
    const std::int64_t tokens = builder_.value(rows).bytes.count() / row;
    return tell(numbers, CollectiveKind::all_gather, hearing_,
                Bytes(tokens * all_experts_ * Mesh::size_of(hearing_)), "routing");
  }

  // The value that says that they are known.
  ValueId tell_counts(ValueId numbers) {
    const Bytes counts = all_experts_ * size_of(DType::i64);
    const ValueId known = sum_counts(numbers);
    if (experts_.dispatch != Dispatch::all_to_all) return known;
    if (experts_.counts == ExpertCounts::exchanged && !experts_.parallel.empty()) {
      return tell(known, CollectiveKind::all_to_all, experts_.parallel, counts, "counts");
    }
    if (experts_.counts != ExpertCounts::gathered || hearing_.empty()) return known;
    return tell(known, CollectiveKind::all_gather, hearing_, Mesh::size_of(hearing_) * counts,
                "counts");
  }

  // For auxiliary losses, which a forward pass that is repeated does not compute
  // (megatron/core/transformer/moe/router.py: torch.is_grad_enabled).
  ValueId sum_counts(ValueId known) {
    if (is_repeated()) return known;
    const auto numbers = builder_.value(known).sharding.dims;
    for (const AuxiliaryLoss loss : experts_.auxiliary_losses) {
      const bool is_global = loss == AuxiliaryLoss::global;
      const AxisList& axes = is_global ? experts_.tokens : experts_.balanced;
      if (axes.empty()) continue;
      const std::int64_t counts = loss == AuxiliaryLoss::sequences ? sequences(numbers.front()) : 1;
      known =
          tell(known, CollectiveKind::all_reduce, axes, counts * all_experts_ * size_of(DType::i64),
               is_global ? "in the batch" : "in sequences");
    }
    return known;
  }
  // Of a microbatch, on this device.
  template <class Dim>
  [[nodiscard]] std::int64_t sequences(const Dim& batch) const {
    return shard_size(label(op_.operands.back(), 0).size, batch);
  }

  [[nodiscard]] bool is_repeated() const {
    const Workload& workload = builder_.workload();
    const auto repeats = [&](const Op& op) {
      return op.recompute && op.function == op_.function &&
             workload.tensors[at(op.results.front().tensor)].primal == op_.results.front().tensor;
    };
    return !op_.recompute &&
           std::any_of(workload.blocks.begin(), workload.blocks.end(), [&](const Block& block) {
             return std::any_of(block.backward.begin(), block.backward.end(), repeats);
           });
  }

  ValueId tell(ValueId known, CollectiveKind kind, const AxisList& axes, Bytes payload,
               const std::string& what) {
    const TensorId numbers = op_.operands.back().tensor;
    const ValueId told =
        builder_.add_value(numbers, replicated(builder_.tensor(numbers).dims.size()), DType::i64,
                           BufferCategory::communication);
    const std::string name = op_.name + " " + what;
    builder_.value(told).name = name;
    builder_.value(told).bytes = payload;
    Item item = call(kind, axes, DType::i64, payload, name);
    item.name = op_.name;
    item.collective.awaited = what == "counts";
    item.reason = RowsCounted{&op_};
    item.operands = {known};
    item.results = {told};
    pass_.body.push_back(std::move(item));
    return told;
  }

  [[nodiscard]] Item call(CollectiveKind kind, const AxisList& axes, DType dtype, Bytes payload,
                          const std::string& part) const {
    Item item;
    item.kind = TaskKind::collective;
    item.stream = Stream::activations;
    item.recompute = op_.recompute;
    item.collective = {kind, axes, {}, {}, dtype, payload, {{part, payload}}, {}, {}};
    return item;
  }

  SpmdBuilder& builder_;
  const ExpertLayout& experts_;
  const Op& op_;
  BlockPass& pass_;
  bool to_experts_ = false;
  AxisList hearing_;  // over whose devices experts are dealt out or split, and tokens differ
  std::int64_t all_experts_ = 1;
  std::int64_t choice_ = 1;  // experts that a token visits
  bool is_even_ = true;      // experts have as many slots as an even routing fills
};

}  // namespace

void exchange_rows(SpmdBuilder& builder, const ExpertLayout& experts, const Op& op,
                   const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
                   BlockPass& pass) {
  RowExchange(builder, experts, op, pass).run(operands, results);
}

}  // namespace shardsim
