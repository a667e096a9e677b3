// Parameters, FLOPs and what is kept of a network that is written down step by step: the walk over
// its steps. What becomes of each kind of step is in blueprint_count.cpp (rows, marks) and
// blueprint_picture_count.cpp.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/layers/context.hpp"
#include "workloads/networks/blueprint.hpp"

namespace shardsim::models {

// `turned`: a picture that lies channels last, rows that lie channel after channel. `cut`: rows of
// examples between which others lie.
struct Counted {
  Value value;
  bool turned = false;
  bool one_dimension = false;
  bool cut = false;
  Plane grid{0, 0};        // the places of the picture that rows were
  std::int64_t heads = 0;  // that a row is of, or each of its parts; 0: those of what is read first
  std::int64_t parts = 1;  // side by side
  Axes axes{};             // of what a sketch made and no other step reads
};

class BlueprintCount {
 public:
  BlueprintCount(Eager& e, const Blueprint& net, const ImageStep& step)
      : e_(e), net_(net), step_(step), learns_(learning_steps(net)) {}

  Value run();

 private:
  [[nodiscard]] const Counted& read(std::size_t n) const;
  [[nodiscard]] bool reads_picture(std::size_t n) const;
  Counted a_picture(Value value, bool turned, bool one_dimension = false);
  // Of the kind of what is read first.
  Counted alike(Value value, bool turned);

  Counted count(const PictureInput& input);
  Counted count(const RowsInput& input);

  Value weight_of(const Convolve& c, const Counted& x, std::int64_t in, std::int64_t groups);

  Counted count(const Convolve& c);

  Counted count(const BatchNormed& n);
  Counted count(const FrozenNormed& n);
  Counted count(const GroupNormed& n);
  Counted count(const Normed& n);
  Counted count(const Activated& a);

  // A vector is seen at all places.
  [[nodiscard]] Value spread(std::size_t n) const;
  Counted count(const Combined& c);
  Counted count(const Learned& l);
  Counted parts_and_table(const Learned& l);
  Counted table_middle(const Learned& l);
  Counted count(const Dropped& d);
  Counted count(const Scaled& /*s*/);

  Counted count(const Cast& c);

  Counted count(const AsRows& a);
  Counted count(const AsPicture& a);
  Counted count(const Windowed& w);
  Counted count(const Unwindowed& /*w*/);
  Counted count(const Merged& /*m*/);
  Counted count(const LearnedRows& l);
  Counted count(const RowsPart& p);
  Counted count(const Joined& j);

  Value project(const std::string& name, const Counted& x, std::int64_t out, bool bias);
  Counted count(const LinearStep& l);

  Counted count(const WidthPart& p);
  Counted count(const Turned& t);
  Counted count(const AttendHeads& a);
  Counted count(const AttendLinearly& a);
  Counted count(const LookedUp& l);
  Counted count(const Flattened& f);

  // x / max(|x|, eps) over the last dimension.
  Value of_length_one(const Value& x);
  Value attend_by_cosine(const Attend& a, Value q, Value k, Value v, const Value& bias);
  Value decomposed_bias(const Attend& a, const Value& q, bool lies_apart);
  Counted count(const Attend& a);

  // Two products over coordinates, which a buffer holds.
  Value made_table(const DistanceBias& b);
  Counted count(const DistanceBias& b);

  Counted count(const Mean& /*m*/);
  Counted count(const Pooled& p);
  Counted count(const Resized& r);

  Counted count(const LossStep& l);

  Counted count(const LayerMark& m);
  Counted count(const OutsideMark& /*m*/);
  Counted count(const Stored& s);
  Counted count(const Drawn& d);
  Counted count(const Detached& d);
  Counted count(const Alias& a);
  Counted count(const TokenRows& t);

  Eager& e_;
  const Blueprint& net_;
  const ImageStep& step_;
  std::vector<bool> learns_;
  const BlueprintStep* now_ = nullptr;
  std::vector<Counted> values_;
  std::vector<bool> pictures_;
  bool picture_ = false;
  bool in_layer_ = false;
  std::map<std::string, Value> shared_;
  Context context_{};  // of sketches
};

}  // namespace shardsim::models
