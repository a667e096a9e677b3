// Why collectives of inputs, activations and outputs are there and what would avoid them
// (parameter_reasons.hpp has the form).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strategies/compile/parameter_reasons.hpp"
#include "strategies/layout/factors.hpp"
#include "strategies/partition/partial_sums.hpp"

namespace shardsim {

class ActivationReasons {
 public:
  ActivationReasons(const SpmdBuilder& builder, const Layout& layout, const PartialSums& sums,
                    const ParameterReasons& parameters);

  [[nodiscard]] Words words(const InputEnters& fact, const Collective& call) const;
  [[nodiscard]] Words words(const OpReads& fact, const Collective& call) const;
  [[nodiscard]] Words words(const OpMakes& fact, const Collective& call) const;
  [[nodiscard]] Words words(const OpNeeds& fact, const Collective& call) const;
  [[nodiscard]] Words words(const RowsExchanged& fact, const Collective& call) const;
  [[nodiscard]] Words words(const RowsCounted& fact, const Collective& call) const;
  [[nodiscard]] Words words(const KeysPassedOn& fact, const Collective& call) const;
  [[nodiscard]] Words words(const HeadsExchanged& fact, const Collective& call) const;
  [[nodiscard]] Words words(const OutputLeaves& fact, const Collective& call) const;

 private:
  // A factor that an op sums over, split.
  struct Summed {
    const Op* op = nullptr;
    LabelId label = 0;
  };

  // Parameters that split `label` over `axes`: those of the block, or where activations carry the
  // label from block to block, all.
  [[nodiscard]] bool is_carried(LabelId label) const;
  [[nodiscard]] std::vector<TensorId> splitting(LabelId label, const AxisList& axes,
                                                int block) const;
  void find_summed(const Op& op, const AxisList& axes, std::vector<Summed>& found) const;
  [[nodiscard]] std::string split_none(const std::vector<LabelId>& labels, const AxisList& axes,
                                       int block) const;
  // Of a look-up that reads its table in shards over `axes`; empty for other ops.
  [[nodiscard]] std::string gather_embedding_on(const Op& op, const AxisList& axes) const;
  [[nodiscard]] std::string sequence_axes_off(const AxisList& axes) const;
  [[nodiscard]] std::string sequence_parallel_off(const Value& value, const AxisList& axes) const;
  [[nodiscard]] bool is_model_axis(const AxisList& axes) const;
  [[nodiscard]] const std::string& label_name(LabelId label) const;

  const SpmdBuilder& builder_;
  const Layout& layout_;
  const PartialSums& sums_;
  const ParameterReasons& parameters_;
  std::map<TensorId, const Op*> makers_;
};

}  // namespace shardsim
