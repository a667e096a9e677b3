#include "workloads/networks/blueprint_graph.hpp"

#include <fmt/format.h>

namespace shardsim::models {

TensorId BlueprintGraph::build() {
  const std::vector<BlueprintBlock> blocks = blocks_of(net_);
  n_.first_block("embedding");
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (b > 0) enter(blocks[b - 1], blocks[b]);
    add_steps(blocks[b]);
  }
  return loss_;
}

void BlueprintGraph::enter(const BlueprintBlock& before, const BlueprintBlock& block) {
  std::map<Ref, MadeValue> live;
  for (std::size_t i = 0; i < block.live.size(); ++i) {
    const Ref from = before.hands_on[i];
    const Ref ref = from < 0 ? static_cast<Ref>(before.begin) - 1 - from
                             : before.live[static_cast<std::size_t>(from)];
    live[block.live[i]] = made_.at(ref);
  }
  made_ = std::move(live);
  n_.live.clear();
  for (auto& [ref, value] : made_) n_.live.push_back(&value.id);
  if (const auto* mark = std::get_if<LayerMark>(&net_.steps[block.begin].what)) {
    n_.next_layers(mark->prefix, block.numbers);
  } else {
    n_.next_block(std::get<OutsideMark>(net_.steps[block.begin].what).block);
  }
  names_.clear();
  sliced_.clear();
  tables_.clear();
}

namespace {

// Of what has parameters: its module with a dot behind it, or the parameter itself.
std::string parameters_of(const StepKind& what) {
  if (const auto* s = std::get_if<Learned>(&what)) return s->name;
  if (const auto* s = std::get_if<LinearStep>(&what)) return s->name + ".";
  if (const auto* s = std::get_if<Normed>(&what)) return s->norm.name + ".";
  if (const auto* s = std::get_if<BatchNormed>(&what)) return s->name + ".";
  if (const auto* s = std::get_if<GroupNormed>(&what)) return s->name + ".";
  if (const auto* s = std::get_if<Convolve>(&what)) return s->name + ".";
  if (const auto* s = std::get_if<Attend>(&what)) return s->name + ".";
  if (const auto* s = std::get_if<DistanceBias>(&what)) return s->name;
  return "";
}

}  // namespace

// Parameters of steps that no loss reads are not trained, unless another step has them, too.
void BlueprintGraph::add_steps(const BlueprintBlock& block) {
  block_end_ = block.end;
  std::set<std::string> learning;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    if (learns_[i]) learning.insert(parameters_of(net_.steps[i].what));
  }
  for (std::size_t i = block.begin; i < block.end; ++i) {
    now_ = &net_.steps[i];
    number_ = static_cast<Ref>(i);
    std::visit([this](const auto& what) { add_step(what); }, now_->what);
    if (const auto made = made_.find(number_); made != made_.end()) {
      if (net_.sequences && now_->mark != RowMark::none) {
        c_.g.marked(made->second.id,
                    now_->mark == RowMark::stream ? StreamMark::stream : StreamMark::branch);
      }
      const Dims& made_dims = c_.g.dims_of(made->second.id);
      if (made_dims.size() > 1) rows_[number_] = made_dims[1];
    }
    const std::string name = parameters_of(now_->what);
    if (learns_[i] || name.empty() || learning.contains(name)) continue;
    c_.note("parameters that no loss reads are stored and not trained");
    c_.g.leave_untrained(full(name));
  }
}

const MadeValue& BlueprintGraph::read(std::size_t n) const { return made_.at(now_->reads[n]); }

const Dims& BlueprintGraph::dims(std::size_t n) const { return c_.g.dims_of(read(n).id); }

void BlueprintGraph::make(TensorId id, bool is_picture, const Plane& grid) {
  made_[number_] = {id, is_picture, grid};
  if (grid[0] == 0 && !now_->reads.empty()) made_[number_].grid = read(0).grid;
}

void BlueprintGraph::alike(TensorId id) {
  const std::size_t inner = read(0).inner;
  make(id, read(0).is_picture);
  made_[number_].inner = inner;
}

Dims BlueprintGraph::width_dims(std::size_t n) const {
  return {dims(n).begin() + static_cast<std::ptrdiff_t>(lead(n)), dims(n).end()};
}

std::int64_t BlueprintGraph::size(const Dim& dim) const { return c_.g.label_size(dim.front()); }

std::string BlueprintGraph::full(const std::string& name) const {
  if (c_.layer.empty()) return name;
  return c_.inside(name);
}

std::string BlueprintGraph::own(const std::string& name) {
  std::string wanted = full(name);
  for (int again = 2; !names_.insert(wanted).second; ++again) {
    wanted = fmt::format("{}_{}", full(name), again);
  }
  return wanted;
}

Picture BlueprintGraph::picture(std::size_t n) const {
  const Dims& d = dims(n);
  return {read(n).id, d[1].front(), d[2].front(), d[3].front()};
}

void BlueprintGraph::make(const Picture& x) { make(x.id, true); }

LabelId BlueprintGraph::places(std::int64_t n) {
  if (net_.sequences) return c_.label("sequence", n, LabelRole::sequence);
  return c_.label("place_sequence", n);
}

LabelId BlueprintGraph::keys(std::int64_t n) {
  if (net_.sequences) return c_.label("key_sequence", n, LabelRole::key_sequence);
  return c_.label("key_place_sequence", n);
}

LabelId BlueprintGraph::hidden(std::int64_t n) { return c_.label("hidden", n, LabelRole::hidden); }

TensorId BlueprintGraph::seen(const std::string& name, TensorId x, const Dims& as) {
  if (c_.g.dims_of(x) == as) return x;
  std::vector<LabelId> whole;
  for (std::size_t i = 0; i < as.size(); ++i) {
    const Dim& from = c_.g.dims_of(x)[i];
    if (from == as[i]) continue;
    whole.insert(whole.end(), from.begin(), from.end());
    whole.insert(whole.end(), as[i].begin(), as[i].end());
  }
  return c_.g.slices(name, x, {{name, as}}, std::move(whole)).front();
}

void BlueprintGraph::add_step(const Normed& n) {
  Dim over = read(0).is_picture ? dims(0)[1] : dims(0).back();
  if (n.whole) {
    over.clear();
    for (const Dim& dim : width_dims(0)) over.insert(over.end(), dim.begin(), dim.end());
  }
  alike(c_.norm(n.norm, full(n.norm.name), read(0).id, over));
}

void BlueprintGraph::add_step(const Activated& a) {
  alike(c_.activate(a.function, own(a.name), read(0).id, full(a.name)));
}

void BlueprintGraph::add_step(const Combined& f) {
  TensorId other = read(1).id;
  if (lead(1) == lead(0)) {
    other = seen(own("operand"), other, dims(0));
  } else {  // a vector
    Dims vector{{c_.batch}};
    for (const Dim& dim : read(0).is_picture ? Dims{dims(0)[1]} : width_dims(0)) {
      vector.push_back(dim);
    }
    other = seen(own("operand"), other, vector);
  }
  const bool adds = f.function == Pointwise::add;
  alike(c_.g.elementwise(adds ? Function::add : Function::multiply, own(adds ? "sum" : "product"),
                         {read(0).id, other}));
}

void BlueprintGraph::add_step(const Dropped& d) {
  if (!d.by_example && !d.by_channel) {
    return alike(c_.dropped(own("dropout"), read(0).id, d.rate));
  }
  if (!c_.options.drops) return alike(read(0).id);
  const std::string name = own(d.by_channel ? "drop_channels" : "drop_path");
  const TensorId left = c_.g.input(name, c_.g.compute_dtype(),
                                   d.by_channel ? Dims{{c_.batch}, dims(0)[1]} : Dims{{c_.batch}});
  alike(c_.g.elementwise(Function::multiply, name + ".left", {read(0).id, left}));
}

void BlueprintGraph::add_step(const Scaled& /*s*/) {
  alike(c_.g.elementwise(Function::scale, own("scaled"), {read(0).id}));
}

void BlueprintGraph::add_step(const Detached& /*d*/) {
  c_.note("where the model cuts gradients off, a step computes them");
  alike(read(0).id);
}

void BlueprintGraph::add_step(const Mean& /*m*/) {
  const Dim width = read(0).is_picture ? dims(0)[1] : dims(0).back();
  make(c_.g.mean(own("mean"), read(0).id, {{c_.batch}, width}), false);
}

void BlueprintGraph::add_step(const LossStep& l) {
  const TensorId x = read(0).id;
  if (loss_ != no_tensor) {
    c_.g.further_loss(loss_);
    ++further_;
  }
  if (l.kind == LossKind::sum) {
    c_.note("the model has no loss of its own: a step's is the mean of its result");
    loss_ = c_.g.mean(further_ > 0 ? fmt::format("loss_{}", further_ + 1) : "loss", x, {});
    return;
  }
  if (l.kind == LossKind::span) {
    const Dims ends{{c_.batch}, dims(0)[1]};
    const std::vector<TensorId> both = c_.g.slices(
        "ends", x, {{"ends.start", ends}, {"ends.end", ends}}, {dims(0).back().front()});
    const TensorId last = c_.g.input("end_positions", c_.options.index_dtype, {{c_.batch}});
    c_.g.further_loss(c_.g.cross_entropy(both[1], last, dims(0)[1].front(), "loss_of_ends"));
    loss_ = c_.cross_entropy(both[0], dims(0)[1].front(), /*fp32=*/false);
    return;
  }
  const Dim classes = read(0).is_picture ? dims(0)[1] : dims(0).back();
  if (further_ == 0) {
    loss_ = c_.cross_entropy(x, classes.front(), /*fp32=*/false);
    return;
  }
  Dims rows = dims(0);
  std::erase(rows, classes);
  const std::string name = fmt::format("loss_{}", further_ + 1);
  const TensorId labels = c_.g.input(name + ".labels", c_.options.index_dtype, std::move(rows));
  loss_ = c_.g.cross_entropy(x, labels, classes.front(), name);
}

void BlueprintGraph::add_step(const LayerMark& /*m*/) {}

void BlueprintGraph::add_step(const OutsideMark& /*m*/) {}

void BlueprintGraph::add_step(const Stored& s) {
  if (s.buffer && s.shape.empty()) return;  // a count of steps
  Dims dims;
  for (const std::int64_t n : s.shape) dims.push_back({c_.g.label(full(s.name), n)});
  if (s.buffer) {
    c_.g.buffer(full(s.name), c_.g.compute_dtype(), std::move(dims));
    return;
  }
  c_.note("parameters that no loss reads are stored and not trained");
  c_.g.untrained_parameter(full(s.name), std::move(dims));
}

TensorId add(NetworkGraph& n, const Blueprint& net, std::int64_t side) {
  if (net.takes_one_side && side != net.side) {
    throw InputError(n.c.place, fmt::format("reads images of {} alone, for which it has positions; "
                                            "an image of {} is another",
                                            net.side, side));
  }
  return BlueprintGraph(n, net, side).build();
}

}  // namespace shardsim::models
