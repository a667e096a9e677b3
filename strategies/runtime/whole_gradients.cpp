// Gradients that stay whole until the last microbatch: each is added up as soon as backward has
// made it, the first in the type that gradients are reduced in (FSDP2 without synchronization:
// _fsdp_param_group.py, _set_unsharded_grad_dtypes, and autograd's AccumulateGrad).
#include <fmt/format.h>

#include <utility>

#include "strategies/runtime/gradient_reductions.hpp"

namespace shardsim {

bool GradientReductions::adds_up_as_made() const {
  return runtime_.copies == GradientCopies::chunks && !reduces_now();
}

// `maker`: the item that has made it. DTensor adds up all rows of a table of which the device has a
// part, and takes its own when they are reduced.
Item GradientReductions::added_as_made(Write& write, Item* maker) {
  const auto sum_of = [&](ValueId made) {
    const DType dtype = is_wide(made) ? builder_.value(made).dtype : reduce_dtype_;
    const Value from = builder_.value(made);
    const ValueId sum =
        builder_.add_value(from.tensor, from.sharding, dtype, BufferCategory::gradients);
    builder_.value(made).category = BufferCategory::gradients;
    return sum;
  };
  Item item;
  item.name = fmt::format("{} gradient accumulation", builder_.tensor(write.parameter).name);
  item.adds_up = true;
  item.operands = {write.gradient};
  item.results = {sum_of(write.gradient)};
  const Value part = builder_.value(write.gradient);
  Value sum = builder_.value(item.results.front());
  Bytes read = part.bytes;
  const bool is_whole = maker != nullptr && maker->kernel.op == "embedding_backward" &&
                        maker->results.size() == 2 && maker->results.front() == write.gradient;
  if (is_whole) {
    const ValueId whole = maker->results.back();
    std::erase(maker->results, write.gradient);
    builder_.value(write.gradient).storage = whole;
    read = builder_.value(whole).bytes;
    sum.name += ".others";
    sum.bytes = (read.count() / part.bytes.count() - 1) * sum.bytes;
    builder_.value(whole).category = BufferCategory::gradients;
    sum.tensor = no_tensor;
    const auto others = static_cast<ValueId>(builder_.step.values.size());
    builder_.step.values.push_back(sum);
    others_[write.parameter] = others;
    item.operands.push_back(whole);
    item.results.push_back(others);
  }
  Bytes written{0};
  for (const ValueId result : item.results) written += builder_.value(result).bytes;
  item.kernel.op = "add";
  item.kernel.dtype = sum.dtype;
  item.kernel.bytes = read + 2 * written;
  const std::int64_t elements = written.count() / size_of(sum.dtype).count();
  item.kernel.flops = Flops(static_cast<double>(elements));
  write.gradient = item.results.front();
  return item;
}

void GradientReductions::add_up_as_made(BlockPass& pass) {
  std::vector<Item> made = std::move(pass.body);
  std::vector<Item> body;
  std::vector<std::size_t> places;  // of the items that were there
  auto write = pass.writes.begin();
  for (std::size_t i = 0; i <= made.size(); ++i) {
    for (; write != pass.writes.end() && write->after == i; ++write) {
      Item added = added_as_made(*write, body.empty() ? nullptr : &body.back());
      body.push_back(std::move(added));
      write->after = body.size();
    }
    places.push_back(body.size());
    if (i < made.size()) body.push_back(std::move(made[i]));
  }
  pass.body = std::move(body);
  if (!pass.inner) return;
  pass.inner->needed = places[pass.inner->needed];
  pass.inner->opens = places[pass.inner->opens];
  pass.inner->closes = places[pass.inner->closes];
}

// Of a unit, copied into one array before they are reduced.
void GradientReductions::copy_sums(std::vector<ValueId>& sums,
                                   const std::vector<TensorId>& parameters,
                                   const std::vector<Sharding>& targets, std::string_view unit,
                                   std::vector<Item>& items) {
  Item copy = builder_.copy(fmt::format("{} gradients copied in", unit), sums, Stream::compute);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Value from = builder_.value(sums[i]);
    if (from.sharding == targets[i] && !goes_through_arrays()) continue;
    sums[i] =
        builder_.add_value(from.tensor, from.sharding, from.dtype, BufferCategory::communication);
    copy.results.push_back(sums[i]);
    const auto others = others_.find(parameters[i]);
    if (others != others_.end()) copy.operands.push_back(others->second);
  }
  if (!copy.results.empty()) items.push_back(std::move(copy));
}

void GradientReductions::reduce_sums(const std::vector<Write>& writes, const std::string& unit,
                                     std::vector<Item>& items) {
  auto [sums, targets, parameters] = together(writes);
  copy_sums(sums, parameters, targets, unit, items);
  copy_to_sum(sums, targets, unit, items);
  keep(parameters, kept(bring_home(sums, targets, {unit, parameters}, items), unit, items));
}

}  // namespace shardsim
