#include "strategies/compile/word_reasons.hpp"

#include <type_traits>
#include <utility>
#include <variant>

#include "strategies/compile/activation_reasons.hpp"
#include "strategies/compile/parallelism_of.hpp"
#include "strategies/compile/parameter_reasons.hpp"
#include "strategies/partition/spmd_builder.hpp"

namespace shardsim {

SpmdStep word_reasons(SpmdStep called, const Workload& workload, const Mesh& mesh,
                      const Layout& layout, const PartialSums& sums, const Runtime& runtime,
                      const Step& step, std::string_view stages_axis) {
  SpmdBuilder builder(workload, mesh, std::move(called));
  const ParameterReasons parameters(builder, layout, runtime, step);
  const ActivationReasons activations(builder, layout, sums, parameters);
  const auto word = [&](Item& item) {
    const auto words_of = [&](const auto& fact) -> Words {
      using Fact = std::decay_t<decltype(fact)>;
      if constexpr (std::is_same_v<Fact, std::monostate>) {
        return {};
      } else if constexpr (requires { parameters.words(fact, item.collective); }) {
        return parameters.words(fact, item.collective);
      } else {
        return activations.words(fact, item.collective);
      }
    };
    Words words = std::visit(words_of, item.reason);
    item.collective.reason = std::move(words.reason);
    item.collective.remedy = std::move(words.remedy);
    item.collective.parallelism =
        parallelism_of(item.reason, item.collective.axes, mesh, layout, stages_axis);
  };
  for (BlockProgram& block : builder.step.blocks) {
    for (Item& item : block.shared) word(item);
    for (BlockPass* pass : {&block.forward, &block.backward, &block.optimizer}) {
      for (std::vector<Item>* items :
           {&pass->gathers, &pass->body, &pass->reductions, &pass->last_reductions}) {
        for (Item& item : *items) {
          if (item.kind == TaskKind::collective) word(item);
        }
      }
    }
  }
  return std::move(builder.step);
}

}  // namespace shardsim
