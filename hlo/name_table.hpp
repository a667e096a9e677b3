// From names to ids within one computation: a hash table that is emptied in constant time, since a
// module has tens of thousands of computations of a few instructions each and a few huge ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace shardsim {

class NameTable {
 public:
  NameTable() : slots_(64) {}

  void clear() {
    ++generation_;
    size_ = 0;
  }

  // A later one of the same name hides the earlier.
  void add(std::string_view name, std::int32_t id) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(slots_, name);
    if (slot.generation != generation_) ++size_;
    slot = {name, id, generation_};
  }

  // -1 when it is not there.
  [[nodiscard]] std::int32_t find(std::string_view name) {
    const Slot& slot = slot_of(slots_, name);
    return slot.generation == generation_ ? slot.id : -1;
  }

 private:
  struct Slot {
    std::string_view name;
    std::int32_t id = -1;
    std::uint32_t generation = 0;
  };

  Slot& slot_of(std::vector<Slot>& slots, std::string_view name) const {
    std::size_t i = std::hash<std::string_view>()(name) & (slots.size() - 1);
    while (slots[i].generation == generation_ && slots[i].name != name) {
      i = (i + 1) & (slots.size() - 1);
    }
    return slots[i];
  }

  void grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    for (const Slot& slot : slots_) {
      if (slot.generation == generation_) slot_of(larger, slot.name) = slot;
    }
    slots_.swap(larger);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace shardsim
