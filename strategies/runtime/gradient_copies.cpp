// Gradients on their way to a reduction: cast, and copied to where it reads them.
#include <fmt/format.h>

#include "strategies/runtime/gradient_reductions.hpp"

namespace shardsim {

bool GradientReductions::is_wide(ValueId gradient) const {
  const Value& value = builder_.value(gradient);
  const DType compute_dtype = builder_.tensor(builder_.tensor(value.tensor).primal).dtype;
  return size_of(value.dtype) > size_of(reduce_dtype_) &&
         size_of(value.dtype) > size_of(compute_dtype);
}

std::vector<ValueId> GradientReductions::cast_to_reduce(std::vector<ValueId> gradients,
                                                        const std::vector<Sharding>& to,
                                                        std::string_view unit,
                                                        std::vector<Item>& items) {
  std::vector<BufferCategory> categories;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool moves = goes_through_arrays() || builder_.value(gradients[i]).sharding != to[i];
    categories.push_back(moves ? BufferCategory::communication : BufferCategory::gradients);
  }
  std::vector<ValueId> narrow;
  std::vector<BufferCategory> of_narrow;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (is_wide(gradients[i])) continue;
    narrow.push_back(gradients[i]);
    of_narrow.push_back(categories[i]);
  }
  if (runtime_.copies == GradientCopies::flat && !narrow.empty()) {
    items.push_back(
        builder_.copy(fmt::format("{} gradients joined", unit), narrow, Stream::compute));
  }
  const std::size_t begin = items.size();
  std::vector<ValueId> cast = cast_gradients(narrow, reduce_dtype_, of_narrow, unit, items);
  copy_in(cast, of_narrow, unit, begin, items);
  for (std::size_t i = 0, k = 0; i < gradients.size(); ++i) {
    if (!is_wide(gradients[i])) gradients[i] = cast[k++];
  }
  return gradients;
}

// `begin`: where the kernel that has cast them is, where they are cast. What moves is copied, into
// one array for all.
void GradientReductions::copy_in(std::vector<ValueId>& cast,
                                 const std::vector<BufferCategory>& categories,
                                 std::string_view unit, std::size_t begin,
                                 std::vector<Item>& items) {
  if (cast.empty()) return;
  if (runtime_.copies == GradientCopies::chunks) {
    if (begin == items.size()) {
      Item copy = builder_.copy(fmt::format("{} gradients copied in", unit), cast, Stream::compute);
      for (std::size_t i = 0; i < cast.size() && reduces_now(); ++i) {
        if (categories[i] != BufferCategory::communication) continue;
        const Value from = builder_.value(cast[i]);
        cast[i] = builder_.add_value(from.tensor, from.sharding, from.dtype, categories[i]);
        copy.results.push_back(cast[i]);
      }
      items.push_back(std::move(copy));
    }
    items.back().stream = Stream::compute;
  } else if (runtime_.copies == GradientCopies::flat) {
    items.push_back(
        builder_.copy(fmt::format("{} gradients divided", unit), cast, Stream::reductions));
  }
}

std::vector<ValueId> GradientReductions::cast_gradients(
    std::vector<ValueId> gradients, DType dtype, const std::vector<BufferCategory>& categories,
    std::string_view unit, std::vector<Item>& items) {
  std::vector<ValueId> cast_from, cast_to;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Value from = builder_.value(gradients[i]);
    if (from.dtype == dtype) continue;
    cast_from.push_back(gradients[i]);
    gradients[i] = builder_.add_value(from.tensor, from.sharding, dtype, categories[i]);
    cast_to.push_back(gradients[i]);
  }
  if (!cast_from.empty()) {
    items.push_back(builder_.cast(fmt::format("{} gradient cast", unit), cast_from, cast_to,
                                  Stream::reductions));
  }
  return gradients;
}

// Of FSDP2, where there is anybody to reduce with: also what nobody else has, as experts that are
// dealt out over all devices (_fsdp_collectives.py, foreach_reduce, world_size 1).
bool GradientReductions::goes_through_arrays() const {
  return runtime_.copies == GradientCopies::chunks && !data_axes_.empty();
}

// FSDP2's reduced array is another than that which was copied in, also where nothing is scattered
// and replicas add it up in place (_fsdp_collectives.py, foreach_reduce).
void GradientReductions::copy_to_sum(std::vector<ValueId>& gradients,
                                     const std::vector<Sharding>& to, std::string_view unit,
                                     std::vector<Item>& items) {
  if (!goes_through_arrays()) return;
  std::vector<std::size_t> added;
  std::vector<ValueId> from;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Sharding& made = builder_.value(gradients[i]).sharding;
    const bool is_copied = builder_.value(gradients[i]).category == BufferCategory::communication;
    if (!is_copied || split_axes(made) != split_axes(to[i])) continue;
    added.push_back(i);
    from.push_back(gradients[i]);
  }
  if (from.empty()) return;
  // By the name of the calls beside it, with which it is held (compile/held_gradients.hpp).
  Item copy = builder_.copy(std::string(unit), from, Stream::reductions);
  for (const std::size_t i : added) {
    const Value value = builder_.value(gradients[i]);
    gradients[i] = builder_.add_value(value.tensor, value.sharding, value.dtype,
                                      BufferCategory::communication);
    copy.results.push_back(gradients[i]);
  }
  items.push_back(std::move(copy));
}

}  // namespace shardsim
