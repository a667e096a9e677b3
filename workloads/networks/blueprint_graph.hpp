// Ops of a network that is written down step by step: the walk over its blocks. What becomes of
// each kind of step is in blueprint_picture_graph.cpp and blueprint_row_graph.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "workloads/networks/blueprint_layers.hpp"
#include "workloads/networks/network_graph.hpp"

namespace shardsim::models {

struct MadeValue {
  TensorId id = no_tensor;
  bool is_picture = false;
  Plane grid{0, 0};       // the places of the picture that rows were
  std::size_t inner = 1;  // of its dims are a row's width: parts, heads, their size
  Axes axes{};            // of what a sketch made and no other step reads
};

class BlueprintGraph {
 public:
  BlueprintGraph(NetworkGraph& n, const Blueprint& net, std::int64_t side)
      : n_(n), c_(n.c), net_(net), side_(side), learns_(learning_steps(net)) {}

  TensorId build();

 private:
  // Values that are live, under the block's numbers.
  void enter(const BlueprintBlock& before, const BlueprintBlock& block);

  void add_steps(const BlueprintBlock& block);

  [[nodiscard]] const MadeValue& read(std::size_t n) const;
  [[nodiscard]] const Dims& dims(std::size_t n) const;
  // The dims before a row's width, and those of it.
  [[nodiscard]] std::size_t lead(std::size_t n) const { return dims(n).size() - read(n).inner; }
  [[nodiscard]] Dims width_dims(std::size_t n) const;
  void make(TensorId id, bool is_picture, const Plane& grid = {0, 0});
  void alike(TensorId id);
  [[nodiscard]] std::int64_t size(const Dim& dim) const;
  [[nodiscard]] std::string full(const std::string& name) const;
  // An op's, of which a block has one alone.
  std::string own(const std::string& name);
  [[nodiscard]] Picture picture(std::size_t n) const;
  void make(const Picture& x);
  LabelId places(std::int64_t n);
  LabelId keys(std::int64_t n);
  LabelId hidden(std::int64_t n);
  // The same tensor under other labels.
  TensorId seen(const std::string& name, TensorId x, const Dims& as);

  void add_step(const PictureInput& input);
  void add_step(const RowsInput& input);

  void add_step(const Convolve& k);
  // Sounds have one row.
  [[nodiscard]] bool is_sound(const Picture& x) const;
  TensorId weight_of(const std::string& name, const Convolve& k, const Dims& dims, LabelId width);
  // Windows that do not overlap: a product that gives each place's.
  Picture transposed(const std::string& name, const Convolve& k, const Picture& x);

  void add_step(const BatchNormed& n);
  void add_step(const FrozenNormed& n);
  void add_step(const GroupNormed& n);
  void add_step(const Normed& n);
  void add_step(const Activated& a);
  void add_step(const Combined& f);
  void add_step(const Learned& l);
  void add_step(const Dropped& d);
  void add_step(const Scaled& /*s*/);

  void add_step(const Cast& c);
  TensorId parts_and_table(const Learned& l);

  void add_step(const AsRows& /*a*/);
  void add_step(const AsPicture& /*a*/);
  void add_step(const Windowed& w);
  void add_step(const Unwindowed& /*w*/);
  void add_step(const Merged& /*m*/);
  void add_step(const LearnedRows& l);
  void add_step(const RowsPart& p);
  void add_rows_parts();
  [[nodiscard]] const Dim* rows_like(Ref ref) const;
  void add_step(const WidthPart& /*p*/);
  // Of what is read first; other parts of it that the block reads are made with it.
  struct PartOf {
    Ref step = 0;
    GraphBuilder::Part part{};
  };
  void slice(const std::vector<PartOf>& parts, const std::vector<LabelId>& whole);
  void add_step(const Joined& j);
  void join_parts();

  // Its input under another label where the result's is the same.
  TensorId apart(const std::string& name, TensorId x, LabelId out);
  [[nodiscard]] bool gives_classes() const;
  void add_step(const LinearStep& l);
  Dims out_dims(const LinearStep& l);

  struct Projections {
    TensorId q = no_tensor;
    TensorId k = no_tensor;
    TensorId v = no_tensor;
  };
  Projections project(const Attend& a, const std::string& at, LabelId heads, LabelId dim,
                      LabelId value_dim);
  TensorId decomposed_bias(const std::string& at, const Attend& a, TensorId q, LabelId dim);
  void add_step(const Attend& a);
  TensorId turned(const Turned& t, LabelId rows, LabelId dim, const char* which);
  void add_step(const Turned& t);
  void add_step(const AttendHeads& a);
  void add_step(const AttendLinearly& /*a*/);
  void add_step(const LookedUp& l);
  void add_step(const Flattened& /*f*/);
  void add_channel_part(const WidthPart& p);
  TensorId table_middle(const std::string& name, const Learned& l);
  TensorId made_table(const std::string& name, const DistanceBias& b, LabelId distances,
                      LabelId heads);
  void add_step(const DistanceBias& b);

  void add_step(const Mean& /*m*/);
  void add_step(const Pooled& p);
  void add_step(const Resized& r);

  void add_step(const LossStep& l);
  void add_step(const LayerMark& /*m*/);
  void add_step(const OutsideMark& /*m*/);
  void add_step(const Stored& s);
  void add_step(const Drawn& d);
  void add_step(const Detached& d);
  void add_step(const Alias& /*a*/) {}
  void add_step(const TokenRows& t);

  NetworkGraph& n_;
  GraphContext& c_;
  const Blueprint& net_;
  std::int64_t side_;
  std::vector<bool> learns_;
  const BlueprintStep* now_ = nullptr;
  Ref number_ = 0;
  std::map<Ref, MadeValue> made_;
  std::set<std::string> names_;
  std::set<LabelId> inner_;
  std::set<LabelId> heads_;
  std::size_t block_end_ = 0;
  std::map<Ref, TensorId> sliced_;  // parts that are there
  std::map<Ref, Dim> rows_;         // of what was made, of all blocks
  std::map<std::string, TensorId> tables_;
  TensorId loss_ = no_tensor;
  int further_ = 0;  // losses before it
};

}  // namespace shardsim::models
