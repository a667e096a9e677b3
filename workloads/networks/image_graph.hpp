// What the op graphs of networks over images share: blocks that hand on several values, and the
// modules of convolution.hpp and unet_blocks.hpp as ops.
//
// Batch is what data parallelism splits; channels and places are whole. Rows that attend have the
// labels of a transformer's, so that heads and the widths of MLPs are split under tensor
// parallelism.
#pragma once

#include <string>
#include <vector>

#include "workloads/models/graph/graph_context.hpp"
#include "workloads/networks/unet_blocks.hpp"

namespace shardsim::models {

// [batch, channels, rows, columns]
struct Picture {
  TensorId id = no_tensor;
  LabelId channels = 0, rows = 0, columns = 0;
};

class NetworkGraph {
 public:
  explicit NetworkGraph(GraphContext& context) : c(context) {}

  // Values that every block from here on is handed, with what `c.beside` has; of no block before.
  std::vector<TensorId*> live;

  // The first block; a kind of layers, "{prefix}.{}" of these numbers, which continues the stack of
  // the kind before or not; what is no layer.
  void first_block(const std::string& name);
  void next_layers(const std::string& prefix, std::vector<std::int32_t> numbers,
                   bool continues = false);
  void next_block(const std::string& name);

  Picture input(std::int64_t channels, std::int64_t side);
  // A convolution under a full name.
  Picture convolve(const std::string& name, const Convolution& k, const Picture& x);
  Picture group_norm(const std::string& name, std::int64_t groups, const Picture& x);
  Picture batch_norm(const std::string& name, const Picture& x);
  Picture activate(const std::string& activation, const std::string& name, const Picture& x);
  Picture add(const std::string& name, const Picture& a, const Picture& b);
  Picture beside(const std::string& name, const Picture& a, const Picture& b);  // channels
  Picture twice_as_large(const std::string& name, const Picture& x);            // nearest places
  // Places as rows [batch, sequence, hidden] and back; sets the context's labels to theirs.
  TensorId rows_of(const std::string& name, const Picture& x, LabelRole places = LabelRole::none);
  Picture picture_of(const std::string& name, TensorId rows, const Picture& like);
  void attend_among(std::int64_t places, std::int64_t width, LabelRole role);

  // Blocks of U-Nets and autoencoders under a full name; `time`: [batch, time_width].
  Picture residual(const std::string& name, const ResidualBlock& block, const Picture& x,
                   TensorId time);
  // `name` is within the current layer.
  Picture transformer(const std::string& name, const ImageTransformer& t, const Picture& x);
  Picture halve(const std::string& name, const Picture& x, bool one_side);
  Picture double_size(const std::string& name, const Picture& x);

  // linear_1, activation, linear_2: [batch, condition].
  TensorId condition(const std::string& name, TensorId x, std::int64_t width,
                     const std::string& activation);
  // The mean of a result, of networks without a loss of their own.
  TensorId mean_loss(TensorId x);

  GraphContext& c;

 private:
  void hand_on();
  void take(const std::string& name);
  [[nodiscard]] Dims dims(const Picture& x) const {
    return {{c.batch}, {x.channels}, {x.rows}, {x.columns}};
  }
  TensorId text_block(const std::string& name, const ImageTransformer& t, TensorId rows);
};

}  // namespace shardsim::models
