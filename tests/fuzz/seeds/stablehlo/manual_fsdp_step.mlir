module @jit_manual_fsdp_step attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.num_partitions = 8 : i32, mhlo.use_auto_spmd_partitioning = false} {
  sdy.mesh @mesh = <["x"=8]> {stablehlo.mesh = {axes = [{name = "x", size = 8 : i64}]}}
  func.func @main(%arg0: tensor<2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<2048x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg3: tensor<256x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg4: tensor<256x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<2048xf32>, tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<2048x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<f32>) {
    %0:4 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3, %arg4) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>, <@mesh, []>] manual_axes={"x"} (%arg5: tensor<2048xf32>, %arg6: tensor<64x2048xf32>, %arg7: tensor<256x512xf32>, %arg8: tensor<32x512xf32>, %arg9: tensor<32x512xf32>) {
      %1 = sdy.constant dense<0> : tensor<i32>
      %2 = sdy.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i]) {i=2048}>} : (tensor<f32>) -> tensor<2048xf32>
      %4 = stablehlo.broadcast_in_dim %2, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=64, j=2048}>} : (tensor<f32>) -> tensor<64x2048xf32>
      %5 = stablehlo.broadcast_in_dim %2, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=256, j=512}>} : (tensor<f32>) -> tensor<256x512xf32>
      %6 = stablehlo.iota dim = 0 : tensor<4xi32>
      %7 = sdy.reshard %arg8 <@mesh, [{}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=32, j=512}>} : tensor<32x512xf32>
      %8 = sdy.reshard %arg6 <@mesh, [{}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=64, j=2048}>} : tensor<64x2048xf32>
      %9 = sdy.reshard %arg5 <@mesh, [{}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=2048}>} : tensor<2048xf32>
      %10 = sdy.reshard %arg7 <@mesh, [{}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=256, j=512}>} : tensor<256x512xf32>
      %11 = sdy.reshard %arg9 <@mesh, [{}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=32, j=512}>} : tensor<32x512xf32>
      %12:5 = stablehlo.while(%iterArg = %1, %iterArg_0 = %2, %iterArg_1 = %3, %iterArg_2 = %4, %iterArg_3 = %5) : tensor<i32>, tensor<f32>, tensor<2048xf32>, tensor<64x2048xf32>, tensor<256x512xf32>
      cond {
        %35 = sdy.constant dense<4> : tensor<i32>
        %36 = stablehlo.compare LT, %iterArg, %35 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %36 : tensor<i1>
      } do {
        %35 = sdy.constant dense<1> : tensor<i32>
        %36 = stablehlo.add %iterArg, %35 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>
        %37 = stablehlo.dynamic_slice %6, %iterArg, sizes = [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [])->([i]) {i=4} need_replication={i} blocked_propagation={i}>} : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
        %38 = stablehlo.reshape %37 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([]) {i=1}>} : (tensor<1xi32>) -> tensor<i32>
        %39 = sdy.constant dense<8> : tensor<i32>
        %40 = stablehlo.multiply %38, %39 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>
        %41 = sdy.constant dense<0> : tensor<i32>
        %42 = stablehlo.compare LT, %40, %41 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %43 = sdy.constant dense<32> : tensor<i32>
        %44 = stablehlo.add %40, %43 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>
        %45 = stablehlo.select %42, %44, %40 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [], [])->([])>} : tensor<i1>, tensor<i32>
        %46 = stablehlo.dynamic_slice %7, %45, %41, sizes = [8, 512] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [], [])->([i, j]) {i=32, j=512} need_replication={i} blocked_propagation={i}>} : (tensor<32x512xf32>, tensor<i32>, tensor<i32>) -> tensor<8x512xf32>
        %47 = "stablehlo.all_gather"(%8) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([k, i]) {i=2048, j=64, k=512} need_replication={j, k}>} : (tensor<64x2048xf32>) -> tensor<512x2048xf32>
        %48 = stablehlo.dot %46, %47, precision = [DEFAULT, DEFAULT] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=2048, k=512} reduction={k}>} : (tensor<8x512xf32>, tensor<512x2048xf32>) -> tensor<8x2048xf32>
        %49 = stablehlo.reshape %9 {sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=1, j=2048}>} : (tensor<2048xf32>) -> tensor<1x2048xf32>
        %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=1, j=2048}>} : (tensor<1x2048xf32>) -> tensor<1x2048xf32>
        %51 = stablehlo.reshape %50 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j]) {i=1, j=2048}>} : (tensor<1x2048xf32>) -> tensor<2048xf32>
        %52 = stablehlo.broadcast_in_dim %51, dims = [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=8, j=2048}>} : (tensor<2048xf32>) -> tensor<8x2048xf32>
        %53 = stablehlo.add %48, %52 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %54 = sdy.constant dense<1.000000e+00> : tensor<f32>
        %55 = stablehlo.broadcast_in_dim %54, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=8, j=2048}>} : (tensor<f32>) -> tensor<8x2048xf32>
        %56 = stablehlo.negate %53 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %57 = stablehlo.exponential %56 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %58 = stablehlo.add %57, %55 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %59 = stablehlo.divide %55, %58 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %60 = stablehlo.multiply %53, %59 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %61 = stablehlo.subtract %55, %59 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %62 = stablehlo.multiply %59, %61 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %63 = "stablehlo.all_gather"(%10) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([k, i]) {i=512, j=256, k=2048} need_replication={j, k}>} : (tensor<256x512xf32>) -> tensor<2048x512xf32>
        %64 = stablehlo.dot %60, %63, precision = [DEFAULT, DEFAULT] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=512, k=2048} reduction={k}>} : (tensor<8x2048xf32>, tensor<2048x512xf32>) -> tensor<8x512xf32>
        %65 = stablehlo.multiply %38, %39 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>
        %66 = stablehlo.compare LT, %65, %41 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %67 = stablehlo.add %65, %43 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<i32>
        %68 = stablehlo.select %66, %67, %65 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [], [])->([])>} : tensor<i1>, tensor<i32>
        %69 = stablehlo.dynamic_slice %11, %68, %41, sizes = [8, 512] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [], [])->([i, j]) {i=32, j=512} need_replication={i} blocked_propagation={i}>} : (tensor<32x512xf32>, tensor<i32>, tensor<i32>) -> tensor<8x512xf32>
        %70 = stablehlo.subtract %64, %69 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=512}>} : tensor<8x512xf32>
        %71 = stablehlo.multiply %70, %70 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=512}>} : tensor<8x512xf32>
        %72 = sdy.constant dense<0.000000e+00> : tensor<f32>
        %73 = stablehlo.reduce(%71 init: %72) applies stablehlo.add across dimensions = [0, 1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([]) {i=8, j=512} reduction={i, j}>} : (tensor<8x512xf32>, tensor<f32>) -> tensor<f32>
        %74 = sdy.constant dense<4.096000e+03> : tensor<f32>
        %75 = stablehlo.divide %73, %74 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
        %76 = stablehlo.add %iterArg_0, %75 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
        %77 = sdy.constant dense<2.000000e+00> : tensor<f32>
        %78 = stablehlo.broadcast_in_dim %77, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=8, j=512}>} : (tensor<f32>) -> tensor<8x512xf32>
        %79 = stablehlo.multiply %70, %78 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=512}>} : tensor<8x512xf32>
        %80 = sdy.constant dense<2.44140625E-4> : tensor<f32>
        %81 = stablehlo.broadcast_in_dim %80, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=8, j=512}>} : (tensor<f32>) -> tensor<8x512xf32>
        %82 = stablehlo.multiply %79, %81 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=512}>} : tensor<8x512xf32>
        %83 = stablehlo.dot_general %82, %63, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [j, k])->([i, j]) {i=8, j=2048, k=512} reduction={k}>} : (tensor<8x512xf32>, tensor<2048x512xf32>) -> tensor<8x2048xf32>
        %84 = stablehlo.multiply %83, %59 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %85 = stablehlo.multiply %53, %83 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %86 = stablehlo.multiply %85, %62 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %87 = stablehlo.add %84, %86 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=2048}>} : tensor<8x2048xf32>
        %88 = stablehlo.reduce(%87 init: %72) applies stablehlo.add across dimensions = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([j]) {i=8, j=2048} reduction={i}>} : (tensor<8x2048xf32>, tensor<f32>) -> tensor<2048xf32>
        %89 = stablehlo.reshape %88 {sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=1, j=2048}>} : (tensor<2048xf32>) -> tensor<1x2048xf32>
        %90 = stablehlo.reduce(%89 init: %72) applies stablehlo.add across dimensions = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([j]) {i=1, j=2048} reduction={i}>} : (tensor<1x2048xf32>, tensor<f32>) -> tensor<2048xf32>
        %91 = stablehlo.add %iterArg_1, %90 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=2048}>} : tensor<2048xf32>
        %92 = stablehlo.dot_general %87, %46, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] {sdy.sharding_rule = #sdy.op_sharding_rule<([k, i], [k, j])->([i, j]) {i=2048, j=512, k=8} reduction={k}>} : (tensor<8x2048xf32>, tensor<8x512xf32>) -> tensor<2048x512xf32>
        %93 = stablehlo.transpose %92, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=512, j=2048}>, xla_shape = "f32[512,2048]{0,1}"} : (tensor<2048x512xf32>) -> tensor<512x2048xf32>
        %94 = "stablehlo.reduce_scatter"(%93) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
        ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
          %105 = stablehlo.add %arg10, %arg11 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
          stablehlo.return %105 : tensor<f32>
        }) {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([k, i]) {i=2048, j=512, k=64} need_replication={j, k}>, xla_shape = "f32[64,2048]{0,1}"} : (tensor<512x2048xf32>) -> tensor<64x2048xf32>
        %95 = sdy.constant dense<8.000000e+00> : tensor<f32>
        %96 = stablehlo.broadcast_in_dim %95, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=64, j=2048}>} : (tensor<f32>) -> tensor<64x2048xf32>
        %97 = stablehlo.divide %94, %96 {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=64, j=2048}>, xla_shape = "f32[64,2048]{0,1}"} : tensor<64x2048xf32>
        %98 = stablehlo.add %iterArg_2, %97 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=64, j=2048}>} : tensor<64x2048xf32>
        %99 = stablehlo.dot_general %82, %60, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] {sdy.sharding_rule = #sdy.op_sharding_rule<([k, i], [k, j])->([i, j]) {i=512, j=2048, k=8} reduction={k}>} : (tensor<8x512xf32>, tensor<8x2048xf32>) -> tensor<512x2048xf32>
        %100 = stablehlo.transpose %99, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=2048, j=512}>, xla_shape = "f32[2048,512]{0,1}"} : (tensor<512x2048xf32>) -> tensor<2048x512xf32>
        %101 = "stablehlo.reduce_scatter"(%100) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
        ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
          %105 = stablehlo.add %arg10, %arg11 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
          stablehlo.return %105 : tensor<f32>
        }) {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([k, i]) {i=512, j=2048, k=256} need_replication={j, k}>, xla_shape = "f32[256,512]{0,1}"} : (tensor<2048x512xf32>) -> tensor<256x512xf32>
        %102 = stablehlo.broadcast_in_dim %95, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=256, j=512}>} : (tensor<f32>) -> tensor<256x512xf32>
        %103 = stablehlo.divide %101, %102 {result_layout = dense<[0, 1]> : tensor<2xindex>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=256, j=512}>, xla_shape = "f32[256,512]{0,1}"} : tensor<256x512xf32>
        %104 = stablehlo.add %iterArg_3, %103 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=256, j=512}>} : tensor<256x512xf32>
        stablehlo.return %36, %76, %91, %98, %104 : tensor<i32>, tensor<f32>, tensor<2048xf32>, tensor<64x2048xf32>, tensor<256x512xf32>
      }
      %13 = "stablehlo.all_reduce"(%12#2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
        %35 = stablehlo.add %arg10, %arg11 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
        stablehlo.return %35 : tensor<f32>
      }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=2048}>} : (tensor<2048xf32>) -> tensor<2048xf32>
      %14 = sdy.constant dense<8.000000e+00> : tensor<f32>
      %15 = stablehlo.broadcast_in_dim %14, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i]) {i=2048}>} : (tensor<f32>) -> tensor<2048xf32>
      %16 = stablehlo.divide %13, %15 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=2048}>} : tensor<2048xf32>
      %17 = sdy.constant dense<1.000000e-03> : tensor<f32>
      %18 = stablehlo.broadcast_in_dim %17, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i]) {i=2048}>} : (tensor<f32>) -> tensor<2048xf32>
      %19 = stablehlo.multiply %16, %18 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=2048}>} : tensor<2048xf32>
      %20 = sdy.constant dense<4.000000e+00> : tensor<f32>
      %21 = stablehlo.broadcast_in_dim %20, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i]) {i=2048}>} : (tensor<f32>) -> tensor<2048xf32>
      %22 = stablehlo.divide %19, %21 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=2048}>} : tensor<2048xf32>
      %23 = stablehlo.subtract %arg5, %22 {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=2048}>} : tensor<2048xf32>
      %24 = stablehlo.broadcast_in_dim %17, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=64, j=2048}>} : (tensor<f32>) -> tensor<64x2048xf32>
      %25 = stablehlo.multiply %12#3, %24 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=64, j=2048}>} : tensor<64x2048xf32>
      %26 = stablehlo.broadcast_in_dim %20, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=64, j=2048}>} : (tensor<f32>) -> tensor<64x2048xf32>
      %27 = stablehlo.divide %25, %26 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=64, j=2048}>} : tensor<64x2048xf32>
      %28 = stablehlo.subtract %arg6, %27 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=64, j=2048}>} : tensor<64x2048xf32>
      %29 = stablehlo.broadcast_in_dim %17, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=256, j=512}>} : (tensor<f32>) -> tensor<256x512xf32>
      %30 = stablehlo.multiply %12#4, %29 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=256, j=512}>} : tensor<256x512xf32>
      %31 = stablehlo.broadcast_in_dim %20, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=256, j=512}>} : (tensor<f32>) -> tensor<256x512xf32>
      %32 = stablehlo.divide %30, %31 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=256, j=512}>} : tensor<256x512xf32>
      %33 = stablehlo.subtract %arg7, %32 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=256, j=512}>} : tensor<256x512xf32>
      %34 = "stablehlo.all_reduce"(%12#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg10: tensor<f32>, %arg11: tensor<f32>):
        %35 = stablehlo.add %arg10, %arg11 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>} : tensor<f32>
        stablehlo.return %35 : tensor<f32>
      }) {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([])>} : (tensor<f32>) -> tensor<f32>
      sdy.return %23, %28, %33, %34 : tensor<2048xf32>, tensor<64x2048xf32>, tensor<256x512xf32>, tensor<f32>
    } : (tensor<2048xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>) -> (tensor<2048xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2, %0#3 : tensor<2048xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>, tensor<f32>
  }
}
