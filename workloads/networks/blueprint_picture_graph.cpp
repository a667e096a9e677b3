// Ops of pictures [batch, channels, rows, columns].
#include "workloads/networks/blueprint_graph.hpp"

namespace shardsim::models {

void BlueprintGraph::add_step(const PictureInput& input) {
  const std::int64_t side = input.times * side_;
  const std::int64_t columns = input.is_text_long ? c_.options.sequence.value_or(net_.text) : side;
  Picture x{
      no_tensor, c_.label("channels", input.channels),
      c_.label("rows", input.frames * (input.rows > 0 ? input.rows : side)),
      c_.label("columns", input.columns > 0 ? input.columns
                                            : columns_of(columns, input.aspect, net_.coarsest))};
  x.id = c_.g.input(input.name, c_.g.compute_dtype(),
                    {{c_.batch}, {x.channels}, {x.rows}, {x.columns}});
  make(x);
}

void BlueprintGraph::add_step(const Convolve& k) {
  Picture x = picture(0);
  const std::string name = full(k.name);
  const std::int64_t in = c_.g.label_size(x.channels);
  const std::int64_t groups = k.each ? in : k.groups;
  if (k.transposed) return make(transposed(name, k, x));
  const Plane places =
      places_of(k, {c_.g.label_size(x.rows), c_.g.label_size(x.columns)}, c_.place);
  const bool alone = k.each && k.out == in;
  const LabelId one = c_.label("one", 1);
  const LabelId group = c_.label("channel_groups", groups);
  const LabelId from = c_.label("in_channels", in / groups);
  const LabelId to = c_.label("out_channels", k.out / groups);
  Picture y{no_tensor, alone ? x.channels : c_.label("channels", k.out),
            c_.label("rows", places[0]), c_.label("columns", places[1])};
  const LabelId height = c_.label("kernel_rows", k.kernel[0]);
  const LabelId width = c_.label("kernel_columns", k.kernel[1]);
  const bool grouped = groups > 1 && !alone;
  const Dim out = grouped ? Dim{group, to} : Dim{y.channels};
  Dims kernel{out, {alone ? one : from}, {height}, {width}};
  Dim window{height, width};
  if (k.kernel[0] == 1 && is_sound(x)) {
    kernel.erase(kernel.begin() + 2);
    window = {width};
  }
  if (k.tubelet > 0) {
    const LabelId tubelet = c_.label("kernel_frames", k.tubelet);
    kernel.insert(kernel.begin() + 2, {tubelet});
    window.insert(window.begin(), tubelet);
  }
  Dim reads = grouped ? Dim{group, from} : Dim{alone ? x.channels : from};
  reads.insert(reads.end(), window.begin(), window.end());
  const TensorId weight = weight_of(name, k, kernel, width);
  const TensorId bias = k.bias ? c_.g.parameter(name + ".bias", {out}) : no_tensor;
  if (k.frozen) c_.g.untrained_parameter(name + ".weight", kernel);
  const Dims whole{{c_.batch}, {y.channels}, {y.rows}, {y.columns}};
  y.id = c_.g.image_convolution(name, {x.id, {{c_.batch}, reads, {y.rows}, {y.columns}}}, weight,
                                {{c_.batch}, out, {y.rows}, {y.columns}}, bias);
  y.id = seen(name + ".channels", y.id, whole);
  if (k.cut > 0) {
    y.columns = c_.label("columns", c_.g.label_size(y.columns) - k.cut);
    y.id = seen(name + ".cut", y.id, {{c_.batch}, {y.channels}, {y.rows}, {y.columns}});
  }
  make(y);
}

bool BlueprintGraph::is_sound(const Picture& x) const {
  return c_.g.label_size(x.rows) == 1 && net_.text > 0;
}

TensorId BlueprintGraph::weight_of(const std::string& name, const Convolve& k, const Dims& dims,
                                   LabelId width) {
  if (!k.weight_normed) return c_.g.parameter(name + ".weight", dims);
  const std::string of = name + ".parametrizations.weight.original";
  const LabelId one = c_.label("one", 1);
  const TensorId length = c_.g.parameter(of + "0", {{one}, {one}, {width}});
  return c_.g.elementwise(Function::multiply, name + ".weight_of_length",
                          {c_.g.parameter(of + "1", dims), length});
}

Picture BlueprintGraph::transposed(const std::string& name, const Convolve& k, const Picture& x) {
  c_.refuse_if(k.stride != k.kernel || k.padding != Plane{0, 0} || k.groups != 1,
               "a transposed convolution whose windows overlap");
  Picture y{no_tensor, c_.label("channels", k.out),
            c_.label("rows", c_.g.label_size(x.rows) * k.stride[0]),
            c_.label("columns", c_.g.label_size(x.columns) * k.stride[1])};
  const LabelId from = c_.label("in_channels", c_.g.label_size(x.channels));
  const LabelId height = c_.label("kernel_rows", k.kernel[0]);
  const LabelId width = c_.label("kernel_columns", k.kernel[1]);
  const TensorId weight =
      c_.g.parameter(name + ".weight", {{from}, {y.channels}, {height}, {width}});
  const TensorId bias = k.bias ? c_.g.parameter(name + ".bias", {{y.channels}}) : no_tensor;
  const TensorId made = c_.g.image_convolution(
      name, {x.id, {{c_.batch}, {from}, {x.rows}, {x.columns}}}, weight,
      {{c_.batch}, {y.channels}, {x.rows, height}, {x.columns, width}}, bias);
  y.id = seen(name + ".places", made, {{c_.batch}, {y.channels}, {y.rows}, {y.columns}});
  return y;
}

void BlueprintGraph::add_step(const BatchNormed& n) {
  make(n_.batch_norm(own(n.name), picture(0)));
}

void BlueprintGraph::add_step(const FrozenNormed& n) {
  const std::string name = own(n.name);
  const Dims channels{dims(0)[1]};
  const auto number = [&](const char* which) {
    return c_.g.buffer(name + which, c_.g.compute_dtype(), channels);
  };
  const TensorId scale = number(".weight");
  const TensorId shift = number(".bias");
  number(".running_mean");
  number(".running_var");
  const TensorId scaled =
      c_.g.elementwise(Function::multiply, name + ".scaled", {read(0).id, scale});
  alike(c_.g.elementwise(Function::add, name, {scaled, shift}));
}

void BlueprintGraph::add_step(const GroupNormed& n) {
  const Picture x = picture(0);
  make(n_.group_norm(own(n.name), n.groups > 0 ? n.groups : c_.g.label_size(x.channels), x));
}

void BlueprintGraph::add_step(const AsRows& /*a*/) {
  const Picture x = picture(0);
  const LabelId rows = places(c_.g.label_size(x.rows) * c_.g.label_size(x.columns));
  const bool stays = inner_.contains(x.channels);
  const LabelId width = stays ? x.channels : hidden(c_.g.label_size(x.channels));
  std::vector<LabelId> whole{x.rows, x.columns, rows};
  if (!stays) whole.insert(whole.end(), {x.channels, width});
  make(c_.g.rearranged(own("rows"), x.id, {{c_.batch}, {rows}, {width}}, std::move(whole)), false,
       {c_.g.label_size(x.rows), c_.g.label_size(x.columns)});
}

void BlueprintGraph::add_step(const AsPicture& /*a*/) {
  const LabelId width = dims(0).back().front();
  const bool stays = inner_.contains(width);
  const Picture y{no_tensor, stays ? width : c_.label("channels", c_.g.label_size(width)),
                  c_.label("rows", read(0).grid[0]), c_.label("columns", read(0).grid[1])};
  std::vector<LabelId> whole{y.rows, y.columns, dims(0)[1].front()};
  if (!stays) whole.insert(whole.end(), {y.channels, width});
  make(c_.g.rearranged(own("places"), read(0).id, {{c_.batch}, {y.channels}, {y.rows}, {y.columns}},
                       std::move(whole)),
       true);
}

void BlueprintGraph::add_step(const Pooled& p) {
  const Picture x = picture(0);
  Plane kernel = p.kernel;
  Plane sides{};
  const Plane from{c_.g.label_size(x.rows), c_.g.label_size(x.columns)};
  for (std::size_t i = 0; i < 2; ++i) {
    sides[i] = p.whole    ? 1
               : p.to > 0 ? p.to
                          : (from[i] + 2 * p.padding[i] - p.kernel[i]) / p.stride[i] + 1;
    if (p.whole) kernel[i] = from[i];
    if (p.to > 0) kernel[i] = (from[i] + p.to - 1) / p.to;
  }
  Picture y = x;
  y.rows = c_.label("rows", sides[0]);
  y.columns = c_.label("columns", sides[1]);
  const LabelId height = c_.label("kernel_rows", kernel[0]);
  const LabelId width = c_.label("kernel_columns", kernel[1]);
  const GraphBuilder::Seen windows{
      x.id, {{c_.batch}, {x.channels}, {y.rows, height}, {y.columns, width}}};
  const Dims shape{{c_.batch}, {x.channels}, {y.rows}, {y.columns}};
  y.id = p.largest ? c_.g.largest(own("pool"), windows, shape, {height, width})
                   : c_.g.mean_of_windows(own("pool"), windows, shape);
  make(y);
}

void BlueprintGraph::add_step(const Resized& r) {
  Picture x = picture(0);
  c_.note("interpolated pictures are copies of the nearest places");
  Plane sides{c_.g.label_size(x.rows), c_.g.label_size(x.columns)};
  Plane times{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t before = sides[i];
    if (r.times > 0) sides[i] *= r.times;
    if (r.side > 0) sides[i] = r.side;
    if (r.to_image) sides[i] = side_;
    if (now_->reads.size() > 1) sides[i] = size(dims(1)[i + 2]);
    times[i] = (sides[i] + before - 1) / before;
  }
  Picture y = x;
  y.rows = c_.label("rows", sides[0]);
  y.columns = c_.label("columns", sides[1]);
  if (y.rows == x.rows && y.columns == x.columns) return make(x);
  const std::string name = own("resized");
  const TensorId repeated = c_.g.expand(name + ".repeated", x.id,
                                        {{c_.batch},
                                         {x.channels},
                                         {x.rows, c_.label("repeated_rows", times[0])},
                                         {x.columns, c_.label("repeated_columns", times[1])}});
  y.id = c_.g.copy(
      name, seen(name + ".places", repeated, {{c_.batch}, {x.channels}, {y.rows}, {y.columns}}));
  make(y);
}

}  // namespace shardsim::models
