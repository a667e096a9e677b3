// A sketch run as eager PyTorch runs it: FLOPs, parameters and what autograd keeps.
#pragma once

#include "workloads/layers/sketch.hpp"

namespace shardsim::models {

class CountSketch : public Sketch {
 public:
  // x [batch, sequence, hidden] enters it.
  CountSketch(Eager& eager, Context& context, const Value& x);

  // Or nothing: what enters is told.
  CountSketch(Eager& eager, Context& context) : e_(eager), context_(context) {}

  [[nodiscard]] Node entered() const { return 0; }
  Node enter(const Value& x, const Axes& axes) { return made(x, axes); }
  [[nodiscard]] const Value& value(Node node) const;

  [[nodiscard]] Axis batch() const override;
  [[nodiscard]] Axis sequence() const override;
  [[nodiscard]] Axis keys() const override;
  Node linear(const Linear& module, Node x, const Axes& out) override;
  Node product_normed(const Norm& norm, const Linear& matrix, Node x, const Axes& over,
                      const Axes& out) override;
  void stored(const Linear& module, Node x, const Axes& out) override;
  Node product(const std::string& name, Node a, Node b, const Axes& result) override;
  Node add(Node a, Node b) override;
  Node multiply(Node a, Node b) override;
  Node apply(PointFunction function, Node x) override;
  Node activate(const std::string& activation, Node x) override;
  Node scaled(Node x) override;
  Node softmax(Node x, const Axis& over, bool fp32) override;
  Node dropout(double rate, Node x) override;
  Node norm(const Norm& norm, Node x, const Axes& over) override;
  Node cast(Node x, DType dtype) override;
  Node mean(Node x, const Axis& over) override;
  Node weighted_sum(const std::string& name, Node x, Node weights, const Axis& over) override;
  Node balanced(Node x, const Axis& rows, const Axis& columns, std::int64_t times) override;
  void choose(Node x, const Axis& among, std::int64_t count) override;
  Node turn_last(Node x, std::int64_t dims, const Axis& tokens, bool by_example) override;
  void forward_alone(bool alone) override { e_.run_forward_alone(alone); }
  Node parameter(const std::string& name, const Axes& axes) override;
  void idle_parameter(const std::string& name, const Axes& axes) override { parameter(name, axes); }
  Node table(const std::string& name, const Axes& axes) override;
  Node look_up(const std::string& name, const Axes& table, const Axes& numbers,
               const Axes& result) override;
  Node handed(const std::string& name, const Axes& axes, bool is_first,
              const std::function<Node(Sketch&)>& make) override;
  Node buffer(const std::string& name, const Axes& axes) override;
  Node constant(DType dtype, const Axes& axes, const std::string& shared) override;
  Node repeated(Node x, const Axis& tokens) override;
  Node view(Node x, const Axes& axes) override;
  Node copy(Node x, const Axes& axes) override;
  Node expand(Node x, const Axes& axes) override { return view(x, axes); }
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
  [[nodiscard]] Axis kept(std::int64_t /*window*/) override { return sequence(); }
  Node keep_entries(const std::string& name, Node x, std::int64_t tokens) override;
  [[nodiscard]] bool is_inference() const override { return false; }
  [[nodiscard]] bool is_decoding() const override { return false; }
  void leave(const std::string& /*name*/, Node /*state*/) override {}
  Node step(const Step& step) override;
  Node recur(const Step& step) override;
  Node remember(const Memory& memory) override;
  Node before(const std::string& name, Node x) override;
  Node lies(Node x) override;
  void keeps(Node x) override { e_.save(value(x)); }
  void unread_product(Node a, Node b, const Axes& result) override;
  void unread_operations(std::int64_t operations) override { e_.count("mm", operations, "mm", 0); }
  void keeps_numbers(DType dtype, const Axes& axes) override;
  void cache(std::int64_t bytes_per_token, std::int64_t state_bytes) override {
    e_.cache(bytes_per_token, state_bytes);
  }
  [[nodiscard]] bool is_fused() const override {
    return e_.options().attention == AttentionKernel::fused;
  }
  void refuse_if(bool has, const std::string& what) const override;
  void note(const std::string& /*text*/) override {}

 protected:
  void open(const std::string& module) override { e_.open(module); }
  void close() override { e_.close(); }

 private:
  Node made(Value value, Axes axes);
  // Under the axes of another, which has all of its own: 1 where it lacks one.
  [[nodiscard]] Value spread(Node x, const Axes& axes) const;
  [[nodiscard]] Value by_heads(Node x, const Axis& rows) const;

  Eager& e_;
  Context& context_;
  std::vector<Value> values_;
};

}  // namespace shardsim::models
