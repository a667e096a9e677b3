// Names as jax 0.8 prints them, with optax' names of its states (ScaleByAdamState: count, mu, nu;
// TraceState: trace).
#include "plan/argument_use.hpp"

#include <catch2/catch.hpp>

using namespace shardsim;  // NOLINT(google-build-using-namespace)

TEST_CASE("what a step hands on is its parameters or its optimizer's state") {
  CHECK(use_of_argument("result[0]['params']['embed']", true).category ==
        BufferCategory::parameters);
  CHECK(use_of_argument("result[0]['mu']['embed']", true).category == BufferCategory::optimizer);
  CHECK(use_of_argument("state.opt_state[0].nu['embed']", true).category ==
        BufferCategory::optimizer);
  // A projection called v, a layer called adamant: parts count whole.
  CHECK(use_of_argument("result['attention']['v']", true).category == BufferCategory::parameters);
  CHECK(use_of_argument("result['adamant']", true).category == BufferCategory::parameters);
}

TEST_CASE("what it only reads are inputs, unless they are called parameters") {
  CHECK(use_of_argument("batch['tokens']", false).category == BufferCategory::inputs);
  CHECK(use_of_argument("params['embed']", false).category == BufferCategory::parameters);
  CHECK(use_of_argument("argument 3", false).category == BufferCategory::inputs);
}

TEST_CASE("the number of a layer is taken out of the name") {
  const ArgumentUse use = use_of_argument("result[0]['mu']['h.12.attn.weight']", true);
  CHECK(use.name == "result[0]['mu']['h.{}.attn.weight']");
  CHECK(use.layer == 12);
  CHECK(use_of_argument("result[0]['ln_1.weight']", true).layer == -1);
  CHECK(use_of_argument("h.99999999999.w", true).name == "h.99999999999.w");
}
