// One function per alternative of a variant, so that the compiler says which is forgotten.
//
//   std::visit(Overloaded{[](const Ring& ring) { ... }, [](const Tree& tree) { ... }}, algorithm);
#pragma once

namespace shardsim {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace shardsim
