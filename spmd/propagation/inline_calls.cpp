#include <fmt/format.h>

#include <algorithm>

#include "spmd/propagation/function_rewriter.hpp"
#include "spmd/propagation/prepare_passes.hpp"

namespace shardsim::spmd {

using stablehlo::Attribute;
using stablehlo::Function;
using stablehlo::Module;
using stablehlo::Op;
using stablehlo::ValueId;

namespace {

constexpr std::size_t most_ops = std::size_t{1} << 20;

class CallInliner : public FunctionRewriter {
 public:
  explicit CallInliner(const Module& module) : module_(module) {}

 private:
  bool rewrite(const Op& op) override {
    if (op.name != "func.call") return false;
    const Attribute* called = find(op.attributes, "callee");
    const std::string name = called == nullptr ? "" : called->text;
    const Function* callee = module_.find_function(name);
    if (callee == nullptr) {
      throw InputError(module_.place_of(op), fmt::format("call of @{}, which is not there", name));
    }
    if (std::find(active_.begin(), active_.end(), callee) != active_.end()) {
      throw InputError(module_.place_of(op), fmt::format("@{} calls itself", name));
    }
    if (callee->body().arguments.size() != op.operands.size() ||
        callee->results.size() != op.results.size()) {
      throw InputError(module_.place_of(op),
                       fmt::format("@{} has other arguments or results", name));
    }
    if (target().ops.size() > most_ops) {
      throw InputError(module_.place_of(op),
                       fmt::format("more than {} ops when calls are inlined", most_ops));
    }
    active_.push_back(callee);
    const std::vector<ValueId> results = splice(*callee, renamed(op.operands));
    active_.pop_back();
    for (std::size_t i = 0; i < results.size(); ++i) replace(op.results[i], results[i]);
    return true;
  }

  const Module& module_;
  std::vector<const Function*> active_;
};

}  // namespace

Function inline_calls(const Module& module, const Function& function) {
  return CallInliner(module).run(function);
}

}  // namespace shardsim::spmd
