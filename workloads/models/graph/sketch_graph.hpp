// A sketch (layers/sketch.hpp) written down as ops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workloads/layers/sketch.hpp"
#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {

class SketchGraph : public Sketch {
 public:
  SketchGraph(GraphContext& c, TensorId x);
  // Or nothing, within a module of a full name: what enters is told.
  SketchGraph(GraphContext& c, const std::string& scope) : c_(c), scopes_{scope} {}

  [[nodiscard]] Node entered() const { return 0; }
  [[nodiscard]] TensorId tensor(Node node) const {
    return tensors_[static_cast<std::size_t>(node)];
  }
  Node enter(TensorId x, const Axes& axes) { return made(x, axes); }
  // [batch, sequence, hidden], as the stream is.
  [[nodiscard]] TensorId as_stream(Node node);

  // The same with its labels in the order of its axes.
  [[nodiscard]] Node in_order(Node node);
  [[nodiscard]] Dims dims(const Axes& axes);

  [[nodiscard]] Axis batch() const override;
  [[nodiscard]] Axis sequence() const override;
  [[nodiscard]] Axis keys() const override;
  Node linear(const Linear& module, Node x, const Axes& out) override;
  Node product_normed(const Norm& norm, const Linear& matrix, Node x, const Axes& over,
                      const Axes& out) override {
    return linear(matrix, this->norm(norm, x, over), out);
  }
  void stored(const Linear& module, Node x, const Axes& out) override;
  Node product(const std::string& name, Node a, Node b, const Axes& result) override;
  Node add(Node a, Node b) override { return point(Function::add, "sum", a, b); }
  Node multiply(Node a, Node b) override { return point(Function::multiply, "product", a, b); }
  Node apply(PointFunction function, Node x) override;
  Node activate(const std::string& activation, Node x) override;
  Node scaled(Node x) override { return point(Function::scale, "scaled", x); }
  Node softmax(Node x, const Axis& over, bool fp32) override;
  Node dropout(double rate, Node x) override;
  Node norm(const Norm& norm, Node x, const Axes& over) override;
  Node cast(Node x, DType dtype) override;
  Node mean(Node x, const Axis& over) override;
  Node weighted_sum(const std::string& name, Node x, Node weights, const Axis& over) override;
  Node balanced(Node x, const Axis& rows, const Axis& columns, std::int64_t times) override;
  void choose(Node x, const Axis& among, std::int64_t count) override;
  Node turn_last(Node x, std::int64_t dims, const Axis& tokens, bool by_example) override;
  void forward_alone(bool alone) override { alone_ = alone; }
  Node parameter(const std::string& name, const Axes& axes) override;
  void idle_parameter(const std::string& name, const Axes& axes) override;
  Node table(const std::string& name, const Axes& axes) override;
  Node look_up(const std::string& name, const Axes& table, const Axes& numbers,
               const Axes& result) override;
  // Looked up where the stack begins (score_graph.cpp).
  Node handed(const std::string& name, const Axes& axes, bool is_first,
              const std::function<Node(Sketch&)>& make) override;
  Node buffer(const std::string& name, const Axes& axes) override;
  Node constant(DType dtype, const Axes& axes, const std::string& shared) override;
  Node repeated(Node x, const Axis& /*tokens*/) override { return x; }
  Node view(Node x, const Axes& axes) override;
  Node copy(Node x, const Axes& axes) override;
  Node expand(Node x, const Axes& axes) override;
  std::vector<Node> parts(Node x, const std::vector<Axes>& axes) override;
  Node join(const std::vector<Node>& parts, const Axes& axes) override;
  Node largest(const std::string& name, Node x, const Axis& from, const Axis& to,
               const Axes& axes) override;
  Node sample(const std::string& name, Node value, Node grid, const Axis& coordinates,
              const Axes& axes) override;
  Node pick(Node x, const Axes& numbers, const Axes& axes) override;
  Node attend(const std::string& name, Node q, Node k, Node v, const Attend& rules) override;
  void turn(const Rotary& rotary, Node& q, Node& k) override;
  Node convolve_each(const std::string& name, Node x, std::int64_t taps) override;
  Node convolve_heads(const std::string& name, Node x, std::int64_t taps) override;
  Node convolve_causal(const std::string& name, Node x, std::int64_t taps, bool bias) override;
  Node keep(const std::string& name, Node x, std::int64_t window) override;
  [[nodiscard]] Axis kept(std::int64_t window) override;
  [[nodiscard]] bool is_inference() const override { return c_.options.cache.has_value(); }
  [[nodiscard]] bool is_decoding() const override { return c_.is_decoding(); }
  Node keep_entries(const std::string& name, Node x, std::int64_t tokens) override;
  void leave(const std::string& name, Node state) override;
  Node step(const Step& step) override;
  Node recur(const Step& step) override;
  Node remember(const Memory& memory) override;
  Node before(const std::string& name, Node x) override;
  Node lies(Node x) override { return x; }
  void keeps(Node /*x*/) override {}
  void unread_product(Node /*a*/, Node /*b*/, const Axes& /*result*/) override {}
  void unread_operations(std::int64_t /*operations*/) override {}
  void keeps_numbers(DType /*dtype*/, const Axes& /*axes*/) override {}
  void cache(std::int64_t /*bytes_per_token*/, std::int64_t /*state_bytes*/) override {}
  [[nodiscard]] bool is_fused() const override { return true; }
  void refuse_if(bool has, const std::string& what) const override { c_.refuse_if(has, what); }
  void note(const std::string& text) override { c_.note(text); }

 protected:
  void open(const std::string& module) override;
  void close() override;

 private:
  Node made(TensorId tensor, Axes axes);
  Node point(Function function, const std::string& name, Node a, Node b = no_node);
  Node scanned(Function function, const Step& step, bool reads);
  [[nodiscard]] LabelId label(const Axis& axis);
  // Trained, or not where nothing is taken back; `name` is full.
  TensorId own_parameter(const std::string& name, const Dims& dims);
  // Under which a module's state lies.
  TensorId state_cache(const std::string& name, const Axes& axes, DType dtype);
  // A name of its own for an op of the current module.
  [[nodiscard]] std::string unique(const std::string& name);
  // Labels that one of both has and the other has not.
  [[nodiscard]] std::vector<LabelId> changed(const Axes& from, const std::vector<Axes>& to);

  GraphContext& c_;
  std::vector<std::string> scopes_;
  std::vector<TensorId> tensors_;
  std::map<std::string, int> names_;
  bool alone_ = false;
  std::map<std::string, LabelId> kept_;  // by the axis' name
};

}  // namespace shardsim::models
