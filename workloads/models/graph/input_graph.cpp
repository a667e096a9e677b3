// What enters a stack: tokens, patches of images, frames of audio.
//
//   tokens   look-ups of [batch, sequence] in tables, added up
//   patches  a convolution as long as its step is a product over a patch's pixels: of images
//            [batch, channels, rows*height, columns*width]; learned rows are put before
//   audio    a convolution over windows of frames is a product over a window's frames and channels;
//            windows are views, as of an implicit product, and their gradients are put together
#include <fmt/format.h>

#include "workloads/models/graph/graph_context.hpp"

namespace shardsim::models {
namespace {

// What the projection reads where it is more than a token's own row; answers its width.
LabelId put_others_beside(GraphContext& c, const TokenEmbedding& input, LabelId width,
                          TensorId& x) {
  std::int64_t all = c.g.label_size(width);
  if (input.neighbours) {
    all *= 3;
    const LabelId wide = c.label("neighbours_width", all);
    x = c.g.rearranged(input.name + ".neighbours", x, {{c.batch}, {c.sequence}, {wide}},
                       {c.sequence, width, wide});
    width = wide;
  }
  if (input.beside.empty()) return width == c.hidden ? c.label("token_width", all) : width;
  std::vector<TensorId> parts{x};
  std::vector<LabelId> whole{width};
  for (const BesideTable& table : input.beside) {
    const LabelId rows = c.label(table.name + "_rows", table.rows);
    const LabelId of_table = c.label(table.name + "_width", table.width);
    const TensorId ids =
        c.g.input(table.name + ".numbers", c.options.index_dtype, {{c.batch}, {c.sequence}});
    parts.push_back(c.g.embedding(table.name, ids,
                                  c.g.parameter(table.name + ".weight", {{rows}, {of_table}}),
                                  {{c.batch}, {c.sequence}, {of_table}}));
    whole.push_back(of_table);
    all += table.width;
  }
  const LabelId wide = c.label("beside_width", all);
  whole.push_back(wide);
  x = c.g.concatenate(input.name + ".beside", parts, {{c.batch}, {c.sequence}, {wide}}, whole);
  return wide;
}

TensorId looked_up(GraphContext& c, const TokenEmbedding& input, TensorId ids) {
  const bool is_wide = input.width == c.g.label_size(c.hidden);
  const LabelId width = is_wide ? c.hidden : c.label("embedding_width", input.width);
  TensorId x =
      c.g.embedding(input.name, ids, c.token_table(input), {{c.batch}, {c.sequence}, {width}});
  if (input.scaled) x = c.g.elementwise(Function::scale, input.name + ".scaled", {x});
  if (input.project.empty() || input.project_last) return x;
  const LabelId wide = put_others_beside(c, input, width, x);
  return c.linear({input.project, {c.hidden}, {wide}, input.project_bias}, x, c.stream());
}

// Rows of a table that numbers of no input pick, the same for each example or not.
struct NumberedRows {
  TensorId numbers = no_tensor;
  TensorId table = no_tensor;
  Dims result;
};

NumberedRows numbered_rows(GraphContext& c, const std::string& numbers, const std::string& name,
                           LabelId rows, bool each, LabelId width) {
  const Dims places = each ? Dims{{c.batch}, {c.sequence}} : Dims{{c.sequence}};
  Dims result = places;
  result.push_back({width});
  const TensorId ids = c.g.constant(numbers, c.options.index_dtype, places);
  return {ids, c.g.parameter(name + ".weight", {{rows}, {width}}), std::move(result)};
}

// Rows of edges and sizes of tokens' boxes, which enter the step.
TensorId with_boxes(GraphContext& c, const BoxTables& boxes, TensorId x, LabelId width) {
  const LabelId rows = c.label("box_positions", boxes.rows);
  int number = 0;
  for (const std::string* name :
       {&boxes.x, &boxes.y, &boxes.x, &boxes.y, &boxes.height, &boxes.width}) {
    const std::string at = fmt::format("{}.{}", *name, number++);
    const TensorId numbers =
        c.g.input(at + ".numbers", c.options.index_dtype, {{c.batch}, {c.sequence}});
    const TensorId table = c.g.parameter(*name + ".weight", {{rows}, {width}});
    x = c.g.elementwise(Function::add, at + ".added",
                        {x, c.g.embedding(at, numbers, table, c.g.dims_of(x))});
  }
  return x;
}

TensorId with_more_types(GraphContext& c, const std::vector<TypeTable>& tables, TensorId x,
                         LabelId width) {
  for (const TypeTable& table : tables) {
    const LabelId rows = c.label(table.name + "_rows", table.rows);
    const TensorId numbers =
        c.g.input(table.name + ".numbers", c.options.index_dtype, {{c.batch}, {c.sequence}});
    const TensorId matrix = c.g.parameter(table.name + ".weight", {{rows}, {width}});
    x = c.g.elementwise(Function::add, table.name + ".added",
                        {x, c.g.embedding(table.name, numbers, matrix, c.g.dims_of(x))});
  }
  return x;
}

// Rows of the tags of a path, or of their numbers, side by side.
TensorId steps_of_paths(GraphContext& c, const PathTables& paths, const std::string& list,
                        std::int64_t rows_of_each, LabelId unit, LabelId whole) {
  const LabelId rows = c.label(list + "_rows", rows_of_each);
  std::vector<TensorId> parts;
  for (std::int64_t i = 0; i < paths.depth; ++i) {
    const std::string at = fmt::format("{}.{}.{}", paths.name, list, i);
    const TensorId numbers =
        c.g.input(at + ".numbers", c.options.index_dtype, {{c.batch}, {c.sequence}});
    parts.push_back(c.g.embedding(at, numbers, c.g.parameter(at + ".weight", {{rows}, {unit}}),
                                  {{c.batch}, {c.sequence}, {unit}}));
  }
  return c.g.concatenate(fmt::format("{}.{}", paths.name, list), parts,
                         {{c.batch}, {c.sequence}, {whole}}, {unit, whole});
}

TensorId with_paths(GraphContext& c, const PathTables& paths, TensorId x, LabelId width) {
  const LabelId unit = c.label("path_unit", paths.unit);
  const LabelId whole = c.label("path_width", paths.depth * paths.unit);
  constexpr std::int64_t wider = 4;
  const LabelId inner = c.label("path_inner", wider * c.g.label_size(width));
  const TensorId tags =
      steps_of_paths(c, paths, "xpath_tag_sub_embeddings", paths.tags, unit, whole);
  const TensorId numbers =
      steps_of_paths(c, paths, "xpath_subs_sub_embeddings", paths.numbers, unit, whole);
  const std::string up = paths.name + ".xpath_unitseq2_inner";
  TensorId path = c.g.elementwise(Function::add, paths.name + ".sum", {tags, numbers});
  path = c.linear({up, {inner}, {whole}, /*bias=*/true}, path, {{c.batch}, {c.sequence}, {inner}});
  path = c.dropped(up + ".dropout", c.activate("relu", up + ".act", path), paths.dropout);
  path =
      c.linear({paths.name + ".inner2emb", {width}, {inner}, /*bias=*/true}, path, c.g.dims_of(x));
  return c.g.elementwise(Function::add, paths.name + ".added", {x, path});
}

std::string beside(const std::string& module, const std::string& name) {
  const std::size_t dot = module.rfind('.');
  return GraphContext::inside(dot == std::string::npos ? "" : module.substr(0, dot), name);
}

// A learned row [1, 1, hidden] or [hidden] for each example.
TensorId row_for_all(GraphContext& c, const std::string& name, const Dims& dims, LabelId rows) {
  return c.g.expand(name + ".expanded", c.g.parameter(name, dims), {{c.batch}, {rows}, {c.hidden}});
}

}  // namespace

TensorId enter(GraphContext& c, const TokenEmbedding& input) {
  const TensorId ids = c.g.input(c.decodes ? "decoder_input_ids" : "input_ids",
                                 c.options.index_dtype, {{c.batch}, {c.sequence}});
  const LabelId width = input.project_last ? c.label("embedding_width", input.width) : c.hidden;
  NumberedRows places;
  if (!input.positions.empty()) {
    places =
        numbered_rows(c, "position_ids", input.positions, c.label("positions", input.position_rows),
                      input.position_numbers == PositionNumbers::per_example, width);
    if (input.fixed_positions) {
      c.g.untrained_parameter(c.g.name_of(places.table), c.g.dims_of(places.table));
    }
  }
  TensorId x = looked_up(c, input, ids);
  if (!input.types.empty()) {
    const NumberedRows types =
        numbered_rows(c, "token_type_ids", input.types, c.label("token_types", input.type_rows),
                      input.types_per_example, width);
    const TensorId rows = c.g.embedding(input.types, types.numbers, types.table, types.result);
    x = c.g.elementwise(Function::add, beside(input.name, "types"), {x, rows});
  }
  if (!input.positions.empty()) {
    const TensorId rows =
        c.g.embedding(input.positions, places.numbers, places.table, places.result);
    x = c.g.marked(c.g.elementwise(Function::add, beside(input.name, "positions"), {x, rows}),
                   StreamMark::stream);
  }
  if (!input.tasks.empty()) {
    const NumberedRows tasks =
        numbered_rows(c, "task_type_ids", input.tasks, c.label("tasks", input.task_rows),
                      /*each=*/true, width);
    const TensorId rows = c.g.embedding(input.tasks, tasks.numbers, tasks.table, tasks.result);
    x = c.g.elementwise(Function::add, beside(input.name, "tasks"), {x, rows});
  }
  x = with_more_types(c, input.more_types, x, width);
  if (input.boxes) x = with_boxes(c, *input.boxes, x, width);
  if (input.paths) x = with_paths(c, *input.paths, x, width);
  if (input.norm.exists()) x = c.norm(input.norm, input.norm.name, x, {width});
  x = c.dropped(input.name + ".dropout", x, input.dropout);
  if (input.masked) x = c.g.elementwise(Function::scale, input.name + ".masked", {x});
  if (!input.project_last) return x;
  return c.linear({input.project, {c.hidden}, {width}, /*bias=*/true}, x, c.stream());
}

namespace {

// Products over the pixels of each patch: [batch, patches, hidden].
TensorId products_of_patches(GraphContext& c, const PatchEmbedding& input, const Dim& patches) {
  const LabelId channels = c.label("channels", input.channels);
  const LabelId height = c.label("patch_height", input.patch);
  const LabelId width = c.label("patch_width", input.patch);
  const std::string& name = input.projection;
  const bool flat = input.flat_pixels;
  const Dim pixels{channels, height, width};
  const TensorId image =
      c.g.input("pixel_values", c.g.compute_dtype(),
                flat ? Dims{{c.batch}, patches, pixels}
                     : Dims{{c.batch}, {channels}, {patches[0], height}, {patches[1], width}});
  const TensorId kernel =
      c.g.parameter(name + ".weight", flat ? Dims{{c.hidden}, pixels}
                                           : Dims{{c.hidden}, {channels}, {height}, {width}});
  const TensorId bias = input.bias ? c.g.parameter(name + ".bias", {{c.hidden}}) : no_tensor;
  return c.g.linear(name, image, kernel, {{c.batch}, patches, {c.hidden}}, bias);
}

// Of the rows behind the learned ones those that are not masked, picked by a copy.
TensorId kept_rows(GraphContext& c, const PatchEmbedding& input, TensorId x, LabelId all) {
  const std::string name = input.projection + ".kept";
  const Dims rows{{c.batch}, {c.sequence}, {c.hidden}};
  return c.g.copy(
      name, c.g.slices(name + ".rows", x, {{name + ".rows", rows}}, {all, c.sequence}).front());
}

}  // namespace

TensorId enter(GraphContext& c, const PatchEmbedding& input) {
  const std::int64_t side = input.image / input.patch;
  const LabelId one = c.label("one", 1);
  const LabelId row = c.label("learned_row", 1);
  const Dim patches{c.label("patch_rows", side), c.label("patch_columns", side)};
  const std::string& name = input.projection;
  TensorId x = products_of_patches(c, input, patches);

  const bool is_part = input.register_rows > 0 || input.kept > 0;
  const LabelId placed = is_part ? c.label("placed_rows", input.rows()) : c.sequence;
  std::vector<LabelId> whole{patches[0], patches[1], placed};
  if (input.tokens.empty()) {
    x = c.g.slices(name + ".rows", x, {{name + ".rows", {{c.batch}, {placed}, {c.hidden}}}}, whole)
            .front();
  } else {
    std::vector<TensorId> parts;
    for (const std::string& token : input.tokens) {
      const Dims dims = input.flat_tokens ? Dims{{c.hidden}} : Dims{{one}, {row}, {c.hidden}};
      parts.push_back(row_for_all(c, token, dims, row));
    }
    parts.push_back(x);
    whole.push_back(row);
    x = c.g.concatenate(name + ".rows", parts, {{c.batch}, {placed}, {c.hidden}}, whole);
  }
  if (!input.positions.empty()) {
    const Dims dims{{one}, {placed}, {c.hidden}};
    const TensorId positions = input.fixed_positions
                                   ? c.g.untrained_parameter(input.positions, dims)
                                   : c.g.parameter(input.positions, dims);
    x = c.g.elementwise(Function::add, input.positions + ".added", {x, positions});
  }
  if (!input.position_table.empty()) {
    const NumberedRows rows =
        numbered_rows(c, "position_ids", input.position_table, c.label("positions", input.rows()),
                      /*each=*/false, c.hidden);
    x = c.g.elementwise(
        Function::add, input.position_table + ".added",
        {x, c.g.embedding(input.position_table, rows.numbers, rows.table, rows.result)});
  }
  if (input.register_rows > 0) {
    const LabelId registers = c.label("registers", input.register_rows);
    const TensorId rows =
        row_for_all(c, input.registers, {{one}, {registers}, {c.hidden}}, registers);
    x = c.g.concatenate(input.registers + ".beside", {rows, x}, c.stream(),
                        {registers, placed, c.sequence});
  }
  if (input.kept > 0) x = kept_rows(c, input, x, placed);
  x = c.g.marked(x, StreamMark::stream);
  if (input.norm.exists()) x = c.norm(input.norm, input.norm.name, x, {c.hidden});
  return c.dropped(input.projection + ".dropout", x, input.dropout);
}

TensorId enter(GraphContext& c, const AudioStem& input) {
  constexpr std::int64_t taps_of_both = 3;
  c.note(
      "a convolution is a product over windows of its input, which take no memory; gradients of "
      "windows do");
  const LabelId frames = c.label("frames", 2 * input.rows);
  const LabelId bins = c.label("mel_bins", input.bins);
  const LabelId taps = c.label("taps", taps_of_both);
  const LabelId inner = c.label("stem_channels", c.g.label_size(c.hidden));
  const auto convolve = [&](const std::string& module, TensorId x, LabelId places, LabelId in,
                            LabelId out) {
    const std::string name = GraphContext::inside(input.prefix, module);
    const Dims windows{{c.batch}, {places}, {taps}, {in}};
    const TensorId seen =
        c.g.slices(name + ".windows", x, {{name + ".windows", windows}}, {frames, places, taps})
            .front();
    const TensorId weight = c.g.parameter(name + ".weight", {{out}, {in}, {taps}});
    const TensorId bias = c.g.parameter(name + ".bias", {{out}});
    const TensorId y = c.g.linear(name, seen, weight, {{c.batch}, {places}, {out}}, bias);
    return c.g.elementwise(Function::gelu, name + ".gelu", {y});
  };
  TensorId x = c.g.input("input_features", c.g.compute_dtype(), {{c.batch}, {frames}, {bins}});
  x = convolve("conv1", x, frames, bins, inner);
  x = convolve("conv2", x, c.sequence, inner, c.hidden);
  const std::string name = GraphContext::inside(input.prefix, input.positions);
  const TensorId positions = c.g.parameter(name + ".weight", {{c.sequence}, {c.hidden}});
  x = c.g.marked(c.g.elementwise(Function::add, name + ".added", {x, positions}),
                 StreamMark::stream);
  return c.dropped(name + ".dropout", x, input.dropout);
}

// The rows that were seen, projected, then a learned one for each that was not; sorting them into
// places is the copy that puts them together.
TensorId enter(GraphContext& c, const MaskedRows& input) {
  const GraphContext::Beside seen = c.beside.front();
  c.beside.clear();
  c.ended.clear();
  const std::int64_t kept = c.g.label_size(seen.sequence);
  const LabelId missing = c.label("masked_rows", input.rows - kept);
  const LabelId one = c.label("one", 1);
  const LabelId row = c.label("learned_row", 1);
  const TensorId projected = c.linear({input.project, {c.hidden}, {seen.hidden}, /*bias=*/true},
                                      seen.id, {{c.batch}, {seen.sequence}, {c.hidden}});
  const TensorId token = c.g.parameter(input.mask_token, {{one}, {row}, {c.hidden}});
  const TensorId masked =
      c.g.expand(input.mask_token + ".expanded", token, {{c.batch}, {row}, {missing}, {c.hidden}});
  const TensorId rows =
      c.g.slices(input.mask_token + ".rows", masked,
                 {{input.mask_token + ".rows", {{c.batch}, {missing}, {c.hidden}}}}, {row})
          .front();
  const TensorId x = c.g.concatenate(input.project + ".rows", {projected, rows}, c.stream(),
                                     {seen.sequence, missing, c.sequence});
  const TensorId positions =
      c.g.untrained_parameter(input.positions, {{one}, {c.sequence}, {c.hidden}});
  return c.g.marked(c.g.elementwise(Function::add, input.positions + ".added", {x, positions}),
                    StreamMark::stream);
}

TensorId enter(GraphContext& c, const NoInput&) { c.refuse("a stack that runs without an input"); }

}  // namespace shardsim::models
