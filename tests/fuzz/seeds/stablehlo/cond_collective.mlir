module @jit_cond_collective attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.num_partitions = 8 : i32, mhlo.use_auto_spmd_partitioning = false} {
  sdy.mesh @mesh = <["x"=8]> {stablehlo.mesh = {axes = [{name = "x", size = 8 : i64}]}}
  func.func @main(%arg0: tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<i1> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.convert %arg1 {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>} : (tensor<i1>) -> tensor<i32>
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %arg0 : tensor<1024x512xf32>
    }, {
      %2 = sdy.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([j]) {i=1024, j=512} reduction={i}>} : (tensor<1024x512xf32>, tensor<f32>) -> tensor<512xf32>
      %4 = sdy.constant dense<1.024000e+03> : tensor<f32>
      %5 = stablehlo.broadcast_in_dim %4, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i]) {i=512}>} : (tensor<f32>) -> tensor<512xf32>
      %6 = stablehlo.divide %3, %5 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=512}>} : tensor<512xf32>
      %7 = stablehlo.reshape %6 {sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=1, j=512}>} : (tensor<512xf32>) -> tensor<1x512xf32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=1, j=512}>} : (tensor<1x512xf32>) -> tensor<1x512xf32>
      %9 = stablehlo.reshape %8 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j]) {i=1, j=512}>} : (tensor<1x512xf32>) -> tensor<512xf32>
      %10 = stablehlo.broadcast_in_dim %9, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=1024, j=512}>} : (tensor<512xf32>) -> tensor<1024x512xf32>
      %11 = stablehlo.subtract %arg0, %10 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=1024, j=512}>} : tensor<1024x512xf32>
      stablehlo.return %11 : tensor<1024x512xf32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<1024x512xf32>
    return %1 : tensor<1024x512xf32>
  }
}
