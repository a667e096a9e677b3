// Products of a step's kernels.
#include "strategies/partition/kernel_product.hpp"

#include <catch2/catch.hpp>

#include "model_step.hpp"

namespace shardsim {
namespace {

// Of the first kernel of a layer's op.
Product product_at(const Plan& plan, const std::string& op, Phase phase) {
  for (const Task& task : plan.programs[0].tasks) {
    if (task.kind != TaskKind::kernel || task.phase != phase) continue;
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(task.work)];
    if (plan.task_name(task) == op && kernel.product) return *kernel.product;
  }
  FAIL("no product at " << op);
  return {};
}

}  // namespace

// Llama-3.1-8B, 8 sequences of 4096 over fsdp = 8, tensors over 2: hidden 4096, feed-forward 14336,
// 32 heads of 128 for queries and 8 for keys.
TEST_CASE("products have the sizes that a device holds") {
  constexpr std::int64_t sequences = 8;
  constexpr std::int64_t tokens = 4096;
  const Step step{.batch = sequences, .sequence = tokens};
  const Mesh mesh({{"fsdp", 8}, {"model", 2}});
  const Plan plan = test::compile_step("llama-3.1-8b", mesh, R"("fsdp+tp")", step).plan;
  const std::string layer = "model.layers.3.";
  CHECK(product_at(plan, layer + "mlp.up_proj", Phase::forward) == Product{1, 4096, 7168, 4096});
  CHECK(product_at(plan, layer + "mlp.down_proj", Phase::forward) == Product{1, 4096, 4096, 7168});
  CHECK(product_at(plan, layer + "self_attn.k_proj", Phase::forward) ==
        Product{1, 4096, 512, 4096});
  // Half of the heads.
  const Product heads{16, 4096, 4096, 128};
  CHECK(product_at(plan, layer + "self_attn.attention", Phase::forward) == heads);
  CHECK(product_at(plan, layer + "self_attn.attention", Phase::backward) == heads);
}

// 2 a multiply-add; FlashAttention 4 a number of a score forward and 10 backward, half of them
// under a causal mask (workloads/graph/functions.cpp).
TEST_CASE("a product has its kernel's operations") {
  for (const char* model : {"llama-3.1-8b", "gpt2", "vit-b16"}) {
    for (const Mesh& mesh : {Mesh({{"fsdp", 4}, {"model", 2}}), Mesh({{"fsdp", 1}})}) {
      CAPTURE(model, mesh.devices());
      const bool is_causal = reads_tokens(load_model_config(model, "", {}));
      Step step = usual_step();
      step.sequence.reset();
      constexpr std::int64_t gpt2_positions = 1024;
      if (is_causal) step.sequence = gpt2_positions;
      const char* strategy = mesh.devices() > 1 ? R"("fsdp+tp")" : R"("fsdp")";
      const Plan plan = test::compile_step(model, mesh, strategy, step).plan;
      int products = 0;
      for (const Kernel& kernel : plan.kernels) {
        CHECK(kernel.product.has_value() == (kernel.kernel_class != KernelClass::memory));
        if (!kernel.product) continue;
        ++products;
        const auto& [batch, m, n, k, aligned] = *kernel.product;
        const double points = static_cast<double>(batch) * static_cast<double>(m) *
                              static_cast<double>(n) * static_cast<double>(k);
        const double of_each = kernel.flops.count() / points;
        const double of_mask = is_causal ? 0.5 : 1;
        switch (kernel.kernel_class) {
          case KernelClass::attention:
            CHECK(of_each == Approx(4 * of_mask));
            break;
          case KernelClass::attention_backward:
            CHECK(of_each == Approx(10 * of_mask));
            break;
          default:
            CHECK(of_each == Approx(2));
        }
      }
      CHECK(products > 0);
    }
  }
}

// 50257 is no multiple of 8: the logits, and what both of their gradients read. Compilers pad.
TEST_CASE("rows of a vocabulary that is no multiple of 8 are not aligned") {
  const auto unaligned = [](const char* strategy) {
    Step step = usual_step();
    step.sequence = 1024;
    const Plan plan = test::compile_step("gpt2", Mesh({{"data", 2}}), strategy, step).plan;
    int count = 0;
    for (const Kernel& kernel : plan.kernels) {
      if (!kernel.product || kernel.product->aligned) continue;
      CHECK(
          (kernel.product->m == 50257 || kernel.product->n == 50257 || kernel.product->k == 50257));
      ++count;
    }
    return count;
  };
  CHECK(unaligned(R"({"name": "ddp", "kernels": "eager"})") == 3);
  CHECK(unaligned(R"({"name": "ddp", "kernels": "compiled"})") == 0);
  CHECK(unaligned(R"({"name": "ddp"})") == 0);
}

}  // namespace shardsim
