#include "experiments/read_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace shardsim {
namespace {

constexpr std::int64_t most_wide_layers = std::int64_t{1} << 31;

DType read_float_type(const JsonReader& json) {
  const auto dtype = parse_dtype(json.string());
  const std::vector<DType> floats = {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8};
  if (dtype && std::find(floats.begin(), floats.end(), *dtype) != floats.end()) return *dtype;
  json.fail(fmt::format("\"{}\" is no floating-point type; known are fp64, fp32, bf16, fp16, fp8",
                        json.string()));
}

std::optional<ProductFormat> format_named(const std::string& name) {
  for (const ProductFormat format :
       {ProductFormat::fp8, ProductFormat::mxfp8, ProductFormat::nvfp4, ProductFormat::int8}) {
    if (name == name_of(format)) return format;
  }
  return std::nullopt;
}

void read_compute(const JsonReader& json, Precision& precision) {
  if (const auto format = format_named(json.string())) {
    precision.products.format = *format;
    return;
  }
  const auto dtype = parse_dtype(json.string());
  const std::vector<DType> wide = {DType::f64, DType::f32, DType::bf16, DType::f16};
  if (!dtype || std::find(wide.begin(), wide.end(), *dtype) == wide.end()) {
    json.fail(
        fmt::format("\"{}\" is nothing to compute in; known are fp64, fp32, bf16, fp16 and, of "
                    "products, fp8, mxfp8, nvfp4, int8",
                    json.string()));
  }
  precision.compute = *dtype;
}

// What only steps with narrow products say.
void read_products(const JsonReader& json, NarrowProducts& products) {
  const auto of_products = [&](const char* key) {
    auto found = json.find(key);
    if (found && products.format == ProductFormat::none) {
      found->fail("is of products in a narrow format: \"compute\" fp8, mxfp8, nvfp4 or int8");
    }
    return found;
  };
  if (const auto scaling = of_products("scaling")) {
    products.scaling = scaling->choice({"delayed", "tensorwise", "rowwise", "blockwise"});
  }
  if (const auto gather = of_products("gather")) {
    products.gathered = gather->choice({"fp8"}) == "fp8";
  }
  if (const auto layers = of_products("bf16_layers")) {
    layers->only_keys({"first", "last"});
    if (const auto first = layers->find("first")) {
      products.first_wide = first->integer(0, most_wide_layers);
    }
    if (const auto last = layers->find("last")) {
      products.last_wide = last->integer(0, most_wide_layers);
    }
  }
  if (const auto attention = json.find("attention")) {
    products.attention = attention->choice({"fp8"}) == "fp8";
  }
}

void read_gradients(const JsonReader& json, OptimizerOptions& optimizer) {
  if (const auto kept = json.find("gradients")) optimizer.gradients = read_float_type(*kept);
  if (const auto reduced = json.find("reduce")) optimizer.reduce = read_float_type(*reduced);
  if (optimizer.reduce == optimizer.gradients) optimizer.reduce.reset();
}

// Also the integers that values are quantized to.
DType read_kept_type(const JsonReader& json) {
  const auto dtype = parse_dtype(json.string());
  if (dtype && (*dtype == DType::i8 || *dtype == DType::i4)) return *dtype;
  return read_float_type(json);
}

// Of a step without gradients weights of products may be stored in a type of their own.
void read_parameters(const JsonReader& json, Step& step) {
  const auto given = json.find("parameters");
  if (!given) return;
  const auto dtype = parse_dtype(given->string());
  const bool quantized =
      dtype && (*dtype == DType::i8 || *dtype == DType::i4 || *dtype == DType::f8);
  if (quantized && !has_gradients(step)) {
    step.precision.stored_products = dtype;
    step.optimizer.parameters = step.precision.compute;
  } else {
    step.optimizer.parameters = read_float_type(*given);
  }
}

void read_master(const JsonReader& json, OptimizerOptions& kept) {
  if (!json.json().contains("master")) {
    if (kept.parameters == DType::f32) kept.master.reset();
    return;
  }
  const JsonReader master = json.at("master");
  if (master.is_null() || (master.is_string() && master.string() == "none")) {
    kept.master.reset();
  } else {
    kept.master = read_float_type(master);
  }
}

}  // namespace

void read_precision(const JsonReader& json, Step& step) {
  json.only_keys({"compute", "norms", "look_ups", "indices", "parameters", "gradients", "reduce",
                  "master", "moments", "scaling", "attention", "gather", "bf16_layers",
                  "kv_cache"});
  const auto read = [&](const char* key, auto& dtype) {
    if (const auto found = json.find(key)) dtype = read_float_type(*found);
  };
  Precision& precision = step.precision;
  if (const auto compute = json.find("compute")) read_compute(*compute, precision);
  read_parameters(json, step);
  read("moments", step.optimizer.moments);
  if (const auto kept = json.find("kv_cache")) {
    if (!is_inference(step.kind)) kept->fail("is of steps of inference: prefill, decode, generate");
    precision.kv_cache = read_kept_type(*kept);
  }
  read("norms", precision.weights.norms);
  read("look_ups", precision.weights.look_ups);
  read_gradients(json, step.optimizer);
  read_master(json, step.optimizer);
  read_products(json, precision.products);
  if (const auto indices = json.find("indices")) {
    precision.indices = indices->choice({"int32", "int64"}) == "int32" ? DType::i32 : DType::i64;
  }
}

Json precision_to_json(const Step& step) {
  const OptimizerOptions& kept = step.optimizer;
  const Precision& types = step.precision;
  const NarrowProducts& products = types.products;
  const bool narrow = products.format != ProductFormat::none;
  Json json = {{"compute", narrow ? name_of(products.format) : name_of(types.compute)},
               {"parameters", name_of(types.stored_products.value_or(kept.parameters))},
               {"gradients", name_of(kept.gradients)}};
  if (kept.reduce) json["reduce"] = name_of(*kept.reduce);
  json["master"] = kept.master ? name_of(*kept.master) : "none";
  json["moments"] = name_of(kept.moments);
  if (types.kv_cache) json["kv_cache"] = name_of(*types.kv_cache);
  if (types.weights.norms) json["norms"] = name_of(*types.weights.norms);
  if (types.weights.look_ups) json["look_ups"] = name_of(*types.weights.look_ups);
  json["indices"] = name_of(types.indices);
  if (!products.scaling.empty()) json["scaling"] = products.scaling;
  if (products.attention) json["attention"] = "fp8";
  if (products.gathered) json["gather"] = "fp8";
  if (products.first_wide > 0 || products.last_wide > 0) {
    json["bf16_layers"] = {{"first", products.first_wide}, {"last", products.last_wide}};
  }
  return json;
}

}  // namespace shardsim
