#include "strategies/partition/row_exchange.hpp"

#include <string>

#include "base/index.hpp"

namespace shardsim {
namespace {

class RowExchange {
 public:
  RowExchange(SpmdBuilder& builder, const ExpertLayout& experts, const Op& op, BlockPass& pass)
      : builder_(builder), experts_(experts), op_(op), pass_(pass) {
    const Operand& result = op.results.front();
    to_experts_ = role(result, 0) == LabelRole::experts;
    const Operand& by_expert = to_experts_ ? result : op.operands.front();
    const Operand& by_token = to_experts_ ? op.operands.front() : result;
    all_experts_ = label(by_expert, 0).size;
    for (std::size_t d = 0; d < by_token.dims.size(); ++d) {
      if (role(by_token, d) == LabelRole::expert_tokens) choice_ = label(by_token, d).size;
    }
  }

  void run(const std::vector<ValueId>& operands, const std::vector<ValueId>& results) {
    if (to_experts_) {
      const bool counts = operands.size() > results.size() && !experts_.pads;
      const ValueId known = counts ? tell_counts(operands.back()) : no_value;
      std::vector<ValueId> arrived;
      for (std::size_t i = 0; i < results.size(); ++i) {
        arrived.push_back(add_sent(results[i]));
        send(operands[i], arrived.back(), arrived.back(), known);
      }
      for (std::size_t i = 0; i < results.size(); ++i)
        become(bring_computed(arrived[i]), results[i]);
      return;
    }
    // The other way round.
    std::vector<ValueId> leaving;
    for (std::size_t i = results.size(); i-- > 0;) leaving.push_back(bring_sent(operands[i]));
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
    const std::size_t rank = builder_.value(sent).sharding.dims.size();
    return builder_.bring(sent, computed_rows(experts_, rank), Stream::activations,
                          RowsExchanged{&op_}, pass_.body);
  }
  ValueId bring_sent(ValueId computed) {
    const std::size_t rank = builder_.value(computed).sharding.dims.size();
    return builder_.bring(computed, sent_rows(experts_, rank), Stream::activations,
                          RowsExchanged{&op_}, pass_.body);
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
    const bool even = experts_.exchange.rows == 1;
    const ValueId counted = even == (by_expert == from) ? to : from;
    auto bytes = static_cast<double>(builder_.value(counted).bytes.count());
    if (by_device) {
      bytes *= copies_by_device(all_experts_, choice_, Mesh::size_of(experts_.parallel)) /
               static_cast<double>(choice_);
    }
    Item item = call(CollectiveKind::all_to_all, experts_.parallel, builder_.value(from).dtype,
                     Bytes(static_cast<std::int64_t>(bytes)), builder_.value(from).name);
    item.name = builder_.value(from).name;
    item.reason = RowsExchanged{&op_};
    item.operands = {from};
    if (counts != no_value) item.operands.push_back(counts);
    item.results = {to};
    pass_.body.push_back(std::move(item));
  }

  // The value that says that they are known.
  ValueId tell_counts(ValueId numbers) {
    const Bytes counts = all_experts_ * size_of(DType::i64);
    ValueId known = numbers;
    if (experts_.auxiliary_loss && !experts_.balanced.empty()) {
      known = tell(known, CollectiveKind::all_reduce, experts_.balanced, counts, "in sequences");
    }
    if (experts_.dispatch != Dispatch::all_to_all) return known;
    if (experts_.counts == ExpertCounts::exchanged && !experts_.parallel.empty()) {
      return tell(known, CollectiveKind::all_to_all, experts_.parallel, counts, "counts");
    }
    AxisList hear = experts_.parallel;
    if (is_within(experts_.tensor, experts_.tokens)) {
      hear.insert(hear.end(), experts_.tensor.begin(), experts_.tensor.end());
    }
    if (experts_.counts != ExpertCounts::gathered || hear.empty()) return known;
    return tell(known, CollectiveKind::all_gather, hear, Mesh::size_of(hear) * counts, "counts");
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
  std::int64_t all_experts_ = 1;
  std::int64_t choice_ = 1;  // experts that a token visits
};

}  // namespace

void exchange_rows(SpmdBuilder& builder, const ExpertLayout& experts, const Op& op,
                   const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
                   BlockPass& pass) {
  RowExchange(builder, experts, op, pass).run(operands, results);
}

}  // namespace shardsim
