#include "workloads/layers/embeddings.hpp"

#include "workloads/layers/activation.hpp"
#include "workloads/layers/mlp.hpp"

namespace shardsim::models {
namespace {

Value token_rows(Eager& e, const TokenEmbedding& embedding, const Value& ids) {
  const Scope at(e, embedding.name);
  if (embedding.table_of.empty()) {
    return e.embedding(ids, e.embedding_table("weight", {embedding.vocab, embedding.width}));
  }
  e.tie(embedding.table_of + ".weight", e.path() + ".weight");
  e.look_up_again(embedding.table_of + ".weight");
  return e.embedding(ids, e.named(embedding.table_of + ".weight"));
}

// What `project` reads where it is more than a token's own row.
Value with_others(Eager& e, const TokenEmbedding& embedding, Value x) {
  Shape shape = x.shape;
  if (embedding.neighbours) {
    constexpr std::int64_t itself_and_two = 3;
    shape.back() *= itself_and_two;
    x = e.copy(x, shape);
  }
  for (const BesideTable& table : embedding.beside) {
    const Scope at(e, table.name);
    const Value numbers = e.constant(DType::i64, {x.shape[0], x.shape[1]});
    e.embedding(numbers, e.embedding_table("weight", {table.rows, table.width}));
    shape.back() += table.width;
    x = e.copy(x, shape);
  }
  return x;
}

Value with_types(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& x) {
  if (embedding.types.empty()) return x;
  const Scope at(e, embedding.types);
  const Value table = e.embedding_table("weight", {embedding.type_rows, hidden});
  const std::int64_t rows = embedding.types_per_example ? x.shape[0] : 1;
  const Shape shape{rows, x.shape[1]};
  const bool stored = embedding.types_stored;
  return e.add(
      x, e.embedding(stored ? e.input(DType::i64, shape) : e.constant(DType::i64, shape), table));
}

// Their numbers are one tensor, in which each table's are a view.
Value with_more_types(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, Value x) {
  if (embedding.more_types.empty()) return x;
  const auto tables = static_cast<std::int64_t>(embedding.more_types.size());
  const Value numbers = e.constant(DType::i64, {x.shape[0], x.shape[1], tables});
  const Value own = Eager::view(numbers, {x.shape[0], x.shape[1]});
  for (const TypeTable& table : embedding.more_types) {
    const Scope at(e, table.name);
    x = e.add(x, e.embedding(own, e.embedding_table("weight", {table.rows, hidden})));
  }
  return x;
}

// A token without a path has numbers of padding.
Value with_paths(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& x) {
  if (!embedding.paths) return x;
  const PathTables& paths = *embedding.paths;
  const Scope at(e, paths.name);
  const auto side_by_side = [&](const char* list, std::int64_t rows) {
    const Value numbers = e.constant(DType::i64, {x.shape[0], x.shape[1], paths.depth});
    const Value own = Eager::view(numbers, {x.shape[0], x.shape[1]});
    Value last;
    for (std::int64_t i = 0; i < paths.depth; ++i) {
      const Scope in(e, list + ("." + std::to_string(i)));
      last = e.embedding(own, e.embedding_table("weight", {rows, paths.unit}));
    }
    return e.copy(last, {x.shape[0], x.shape[1], paths.depth * paths.unit});
  };
  const Value tags = side_by_side("xpath_tag_sub_embeddings", paths.tags);
  const Value path = e.add(tags, side_by_side("xpath_subs_sub_embeddings", paths.numbers));
  constexpr std::int64_t wider = 4;
  const Value inner = activate(
      e, "relu", run_linear(e, "xpath_unitseq2_inner", path, wider * hidden, /*bias=*/true));
  return e.add(x,
               run_linear(e, "inner2emb", e.dropout(inner, paths.dropout), hidden, /*bias=*/true));
}

// A page without boxes has zeros, one tensor; sizes are differences.
Value with_boxes(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, Value x) {
  if (!embedding.boxes) return x;
  const BoxTables& boxes = *embedding.boxes;
  constexpr std::int64_t edges = 4;
  const Value box = e.constant(DType::i64, {x.shape[0], x.shape[1], edges});
  const Value edge = Eager::view(box, {x.shape[0], x.shape[1]});
  const auto look_up = [&](const std::string& name, const Value& numbers) {
    const Scope at(e, name);
    const Value table = e.embedding_table("weight", {boxes.rows, hidden});
    x = e.add(x, e.embedding(numbers, table));
  };
  for (const std::string* name : {&boxes.x, &boxes.y, &boxes.x, &boxes.y}) look_up(*name, edge);
  for (const std::string* name : {&boxes.height, &boxes.width}) {
    look_up(*name, e.constant(DType::i64, edge.shape));
  }
  return x;
}

Value with_positions(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden,
                     const Value& x) {
  if (embedding.positions.empty()) return x;
  const Scope at(e, embedding.positions);
  const Value table = e.embedding_table("weight", {embedding.position_rows, hidden});
  const bool each = embedding.position_numbers == PositionNumbers::per_example;
  const Shape shape{each ? x.shape[0] : 1, x.shape[1]};
  const bool stored = embedding.position_numbers == PositionNumbers::stored;
  // Of a table that does not learn no numbers are kept.
  const bool kept = !stored && !embedding.fixed_positions;
  const Value numbers = kept ? e.constant(DType::i64, shape) : e.input(DType::i64, shape);
  return e.add(x, e.embedding(numbers, table));
}

Value with_tasks(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& x) {
  if (embedding.tasks.empty()) return x;
  const Scope at(e, embedding.tasks);
  const Value table = e.embedding_table("weight", {embedding.task_rows, hidden});
  return e.add(x, e.embedding(e.constant(DType::i64, {x.shape[0], x.shape[1]}), table));
}

}  // namespace

Value run(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& ids) {
  const bool made = embedding.shifted || (embedding.tokens_first && ids.shape[0] > 1);
  Value x = token_rows(e, embedding, made ? e.constant(DType::i64, ids.shape) : ids);
  if (embedding.scaled) x = e.scaled(x);
  const bool last = embedding.project_last;
  x = with_others(e, embedding, x);
  if (!embedding.project.empty() && !last) {
    x = run_linear(e, embedding.project, x, hidden, embedding.project_bias);
  }
  const std::int64_t width = last ? embedding.width : hidden;
  x = with_types(e, embedding, width, x);
  x = with_positions(e, embedding, width, x);
  x = with_tasks(e, embedding, width, x);
  x = with_more_types(e, embedding, width, x);
  x = with_boxes(e, embedding, width, x);
  x = with_paths(e, embedding, width, x);
  x = run(e, embedding.norm, x);
  {
    const Scope at(e, embedding.dropout_name);
    x = e.dropout(x, embedding.dropout);
  }
  if (embedding.masked) x = e.multiply(x, e.constant(x.dtype, {x.shape[0], x.shape[1], 1}));
  return last ? run_linear(e, embedding.project, x, hidden, /*bias=*/true) : x;
}

namespace {

// Of shape [batch, patches, hidden].
void patches_of(Eager& e, const PatchEmbedding& embedding, std::int64_t hidden,
                std::int64_t batch) {
  const Scope at(e, embedding.projection);
  const std::int64_t pixels = embedding.channels * embedding.patch * embedding.patch;
  if (embedding.flat_pixels) {
    const Value rows = e.input(e.dtype(), {batch, embedding.patches(), pixels});
    const Value weight = e.parameter("weight", {hidden, pixels});
    e.linear(rows, weight, embedding.bias ? e.parameter("bias", {hidden}) : Value{});
    return;
  }
  const std::int64_t side = embedding.image / embedding.patch;
  const Value image =
      e.input(e.dtype(), {batch, embedding.channels, embedding.image, embedding.image});
  const Value weight =
      e.parameter("weight", {hidden, embedding.channels, embedding.patch, embedding.patch});
  if (embedding.bias) e.parameter("bias", {hidden});
  e.convolution(image, weight, {side, side});
}

}  // namespace

Value run(Eager& e, const PatchEmbedding& embedding, std::int64_t hidden, std::int64_t batch) {
  patches_of(e, embedding, hidden, batch);
  for (const std::string& token : embedding.tokens) {
    e.parameter(token, embedding.flat_tokens ? Shape{hidden} : Shape{1, 1, hidden});
  }
  if (!embedding.mask_token.empty()) e.parameter(embedding.mask_token, {1, hidden});
  Value x = e.make({batch, embedding.rows(), hidden}, e.dtype(), true);
  if (!embedding.positions.empty()) {
    x = e.add(x, e.parameter(embedding.positions, {1, embedding.rows(), hidden}));
  }
  if (!embedding.position_table.empty()) {
    const Scope at(e, embedding.position_table);
    const Value table = e.embedding_table("weight", {embedding.rows(), hidden});
    // Of images in rows of patches the table itself is stretched, which is no look-up.
    x = embedding.flat_pixels
            ? e.copy(x)
            : e.add(x, e.embedding(e.input(DType::i64, {1, embedding.rows()}), table));
  }
  if (embedding.kept > 0) {
    const Shape picked{batch, embedding.kept, hidden};
    x = e.index(x, e.constant(DType::i64, picked), picked);
    x = e.copy(x, {batch, embedding.entering(), hidden});
  }
  if (embedding.register_rows > 0) {
    e.parameter(embedding.registers, {1, embedding.register_rows, hidden});
    x = e.copy(x, {batch, embedding.rows() + embedding.register_rows, hidden});
  }
  return e.dropout(run(e, embedding.norm, x), embedding.dropout);
}

Value run(Eager& e, const MaskedRows& rows, std::int64_t hidden, const Value& seen) {
  const Value x = run_linear(e, rows.project, seen, hidden, /*bias=*/true);
  e.parameter(rows.mask_token, {1, 1, hidden});
  e.parameter(rows.positions, {1, rows.rows, hidden});
  const Shape placed{x.shape[0], rows.rows - 1, hidden};
  e.index(x, e.constant(DType::i64, placed), placed);
  return e.copy(x, {x.shape[0], rows.rows, hidden});
}

Value run(Eager& e, const AudioStem& stem, std::int64_t hidden, std::int64_t batch) {
  constexpr std::int64_t kernel = 3;
  const Scope at(e, stem.prefix);
  Value x = e.input(e.dtype(), {batch, stem.bins, 2 * stem.rows});
  const auto convolve = [&](const char* name, std::int64_t places) {
    const Scope of(e, name);
    const Value weight = e.parameter("weight", {hidden, x.shape[1], kernel});
    e.parameter("bias", {hidden});
    x = e.convolution(x, weight, {places});
  };
  convolve("conv1", 2 * stem.rows);
  x = e.apply(x, Keeps::input);
  convolve("conv2", stem.rows);
  x = Eager::view(e.apply(x, Keeps::input), {batch, stem.rows, hidden});
  const Scope of(e, stem.positions);
  x = e.add(x, e.embedding_table("weight", {stem.rows, hidden}));
  return e.dropout(x, stem.dropout);
}

}  // namespace shardsim::models
