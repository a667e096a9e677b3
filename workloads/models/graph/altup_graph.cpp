// Alternating updates: the stream is [streams, batch, sequence, hidden]. Sums of streams are
// products with coefficients of each token; what makes the streams as long as the first is one pass
// over each.
#include <fmt/format.h>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

LabelId streams_label(GraphContext& c, std::int64_t inputs) { return c.label("streams", inputs); }

Dims all_streams(GraphContext& c, LabelId streams) {
  return {{streams}, {c.batch}, {c.sequence}, {c.hidden}};
}

// The first of the streams: a view.
TensorId first_of(GraphContext& c, const std::string& name, TensorId x, LabelId streams) {
  return c.g.slices(name, x, {{name, c.stream()}}, {streams}).front();
}

// One stream through a matrix, as long as the first.
TensorId projected(GraphContext& c, const std::string& module, TensorId x, TensorId first) {
  const LabelId in = c.label("stream_width", c.g.label_size(c.hidden));
  const std::string name = module + ".input";
  const TensorId read =
      c.g.slices(name, x, {{name, {{c.batch}, {c.sequence}, {in}}}}, {c.hidden, in}).front();
  const TensorId y = c.linear({module, {c.hidden}, {in}}, read, c.stream());
  return c.g.elementwise(Function::multiply, module + ".as_long", {y, first});
}

TensorId modalities(GraphContext& c, const AltUp& altup, const std::string& at, TensorId x,
                    const std::string& which, LabelId streams) {
  const TensorId normed =
      c.norm(altup.router_norm, GraphContext::inside(at, altup.router_norm.name), x, {c.hidden});
  const TensorId read = c.g.elementwise(Function::scale, at + "." + which + "_read", {normed});
  const Dims rows{{c.batch}, {c.sequence}, {streams}};
  const TensorId logits = c.linear({at + ".modality_router", {streams}, {c.hidden}}, read, rows);
  const TensorId wide = c.g.cast(at + "." + which + "_fp32", logits, DType::f32);
  const TensorId open = c.g.elementwise(Function::tanh, at + "." + which + "_tanh", {wide});
  return c.g.cast(at + "." + which + "_modalities", open, c.g.compute_dtype());
}

}  // namespace

TensorId spread_streams(GraphContext& c, const AltUpEnds& ends, TensorId x) {
  c.note("streams of alternating updates are made as long as the first by one kernel each");
  const LabelId streams = streams_label(c, ends.inputs);
  const LabelId one = c.label("one_stream", 1);
  const auto as_one = [&](const std::string& name, TensorId t) {
    return c.g.expand(name, t, all_streams(c, one));
  };
  std::vector<TensorId> parts{as_one(ends.project + ".first", x)};
  for (std::int64_t i = 0; i + 1 < ends.inputs; ++i) {
    const std::string module = fmt::format("{}.{}", ends.project, i);
    parts.push_back(as_one(module + ".stream", projected(c, module, x, x)));
  }
  return c.g.concatenate(ends.project + ".streams", parts, all_streams(c, streams), {one, streams});
}

TensorId gather_streams(GraphContext& c, const AltUpEnds& ends, TensorId x) {
  const LabelId streams = streams_label(c, ends.inputs);
  const TensorId first = first_of(c, ends.back + ".first", x, streams);
  TensorId sum = first;
  for (std::int64_t i = 0; i + 1 < ends.inputs; ++i) {
    const std::string module = fmt::format("{}.{}", ends.back, i);
    const TensorId own = first_of(c, module + ".stream", x, streams);
    sum = c.g.elementwise(Function::add, module + ".sum", {sum, projected(c, module, own, first)});
  }
  return c.g.marked(c.g.elementwise(Function::scale, ends.back + ".mean", {sum}),
                    StreamMark::stream);
}

TensorId predict_streams(GraphContext& c, const AltUp& altup, TensorId x) {
  const std::string at = c.inside(altup.name);
  const LabelId streams = streams_label(c, altup.inputs);
  const LabelId predicted = c.label("predicted_streams", altup.inputs);
  const TensorId active = first_of(c, at + ".active", x, streams);
  const TensorId routed = modalities(c, altup, at, active, "prediction", streams);
  const LabelId read = c.label("read_streams", altup.inputs);
  const TensorId matrix = c.linear({at + ".prediction_coefs", {read, predicted}, {streams}}, routed,
                                   {{c.batch}, {c.sequence}, {read}, {predicted}});
  const std::string name = at + ".read";
  const TensorId renamed =
      c.g.slices(name, x, {{name, all_streams(c, read)}}, {streams, read}).front();
  const TensorId product =
      c.g.linear(at + ".predictions", renamed, matrix, all_streams(c, predicted));
  const std::string back = at + ".predicted";
  const TensorId named =
      c.g.slices(back, product, {{back, all_streams(c, streams)}}, {predicted, streams}).front();
  return c.g.elementwise(Function::add, at + ".with_streams", {named, x});
}

TensorId correct_streams(GraphContext& c, const AltUp& altup, TensorId predictions,
                         TensorId activated) {
  const std::string at = c.inside(altup.name);
  const LabelId streams = streams_label(c, altup.inputs);
  const TensorId routed = modalities(c, altup, at, activated, "correction", streams);
  const LabelId corrected = c.label("corrected_streams", altup.inputs);
  const TensorId coefficients = c.linear({at + ".correction_coefs", {corrected}, {streams}}, routed,
                                         {{c.batch}, {c.sequence}, {corrected}});
  const std::string name = at + ".coefficients";
  const TensorId named =
      c.g.slices(name, coefficients, {{name, {{c.batch}, {c.sequence}, {streams}}}},
                 {corrected, streams})
          .front();
  const TensorId first = first_of(c, at + ".prediction", predictions, streams);
  const TensorId difference =
      c.g.elementwise(Function::add, at + ".difference", {activated, first});
  const TensorId repeated = c.g.expand(at + ".differences", difference, all_streams(c, streams));
  const TensorId product =
      c.g.elementwise(Function::multiply, at + ".innovation", {repeated, named});
  return c.g.elementwise(Function::add, at + ".corrected", {product, predictions});
}

TensorId active_stream(GraphContext& c, const AltUp& altup, TensorId predictions) {
  return first_of(c, c.inside(altup.name) + ".active_prediction", predictions,
                  streams_label(c, altup.inputs));
}

TensorId first_scaled(GraphContext& c, const AltUp& altup, TensorId corrected) {
  const std::string at = c.inside(altup.name);
  const TensorId first = first_of(c, at + ".first", corrected, streams_label(c, altup.inputs));
  const std::string name = at + ".correct_output_scale";
  if (!altup.scales_first) {
    c.g.untrained_parameter(name, {{c.hidden}});
    return first;
  }
  const TensorId scale = c.g.parameter(name, {{c.hidden}});
  return c.g.elementwise(Function::multiply, at + ".first_scaled", {first, scale});
}

TensorId add_to_streams(GraphContext& c, const AltUp& altup, TensorId streams, TensorId x) {
  const std::string at = c.inside(altup.name);
  const LabelId label = streams_label(c, altup.inputs);
  return c.g.elementwise(Function::add, at + ".with_layer_inputs",
                         {streams, c.g.expand(at + ".layer_inputs", x, all_streams(c, label))});
}

TensorId add(GraphContext& c, const Laurel& laurel, TensorId x) {
  const std::string at = c.inside(laurel.name);
  const LabelId rank = c.label("laurel_rank", laurel.rank);
  const TensorId left =
      c.linear({at + ".linear_left", {rank}, {c.hidden}}, x, {{c.batch}, {c.sequence}, {rank}});
  const TensorId right = c.linear({at + ".linear_right", {c.hidden}, {rank}}, left, c.stream());
  const TensorId normed =
      c.norm(laurel.norm, GraphContext::inside(at, laurel.norm.name), right, {c.hidden});
  return c.g.elementwise(Function::add, at + ".sum", {x, normed});
}

}  // namespace shardsim::models
