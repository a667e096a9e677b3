#include "workloads/layers/windowed_attention.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardsim::models {
namespace {

class WindowSketch {
 public:
  WindowSketch(Sketch& s, const WindowedAttention& a)
      : s_(s),
        half_(a.window / 2),
        heads_(heads_axis(a.heads)),
        dim_{"head_dim", a.head_dim},
        chunks_{"chunks", std::max<std::int64_t>(s.tokens() / half_ - 1, 1)},
        halves_{"half_windows", std::max<std::int64_t>(s.tokens() / half_, 1)},
        half_rows_{"half_window", half_},
        window_{"window", 2 * half_ + 1},
        rate_(a.dropout) {}

  // One score for each token of the window and the token itself.
  Node scores(Node q, Node k) {
    const Axis rows{"chunk_rows", 2 * half_}, keys{"chunk_keys", 2 * half_};
    const Node query = s_.copy(q, {s_.batch(), heads_, chunks_, rows, dim_});
    const Node key = s_.copy(k, {s_.batch(), heads_, chunks_, keys, dim_});
    const Node all =
        s_.product("chunk_scores", query, key, {s_.batch(), heads_, chunks_, rows, keys});
    for (int end = 0; end < 2; ++end) {  // of what there is of windows at either end
      s_.keeps_numbers(DType::boolean,
                       {s_.batch(), half_rows_, heads_, {"half_and_one", half_ + 1}});
    }
    return s_.copy(all, {s_.batch(), s_.sequence(), heads_, window_});
  }

  Node probabilities(Node scores) {
    const Node all = s_.softmax(scores, window_, /*fp32=*/true);
    s_.keeps(s_.constant(DType::boolean, {s_.batch(), s_.sequence()}, "masked"));
    return s_.dropout(rate_, all);
  }

  Node context(Node probabilities, Node v) {
    const Axis keys{"window_keys", 3 * half_}, padded{"padded_keys", 3 * half_ + 2};
    const Axes chunked{s_.batch(), heads_, halves_, half_rows_, keys};
    const Node rows =
        s_.view(s_.copy(probabilities, {s_.batch(), heads_, halves_, half_rows_, padded}), chunked);
    const Node values = s_.copy(v, {s_.batch(), heads_, halves_, keys, dim_});
    const Node seen =
        s_.product("context", rows, values, {s_.batch(), heads_, halves_, half_rows_, dim_});
    return s_.copy(seen, {s_.batch(), s_.sequence(), heads_, dim_});
  }

 private:
  Sketch& s_;
  std::int64_t half_;
  Axis heads_, dim_, chunks_, halves_, half_rows_, window_;
  double rate_;
};

}  // namespace

Node draw(Sketch& s, const WindowedAttention& a, Node x) {
  // One token asks for parameters alone.
  s.refuse_if(s.tokens() > 1 && s.tokens() % a.window != 0,
              fmt::format("a sequence that is no multiple of the window, {}", a.window));
  WindowSketch windows(s, a);
  const Axis heads = heads_axis(a.heads);
  const Axis dim{"head_dim", a.head_dim};
  const bool apart = s.batch().size > 1;
  Node context = no_node;
  {
    const Sketch::In in(s, a.name);
    // The class has tokens before examples.
    const auto project = [&](const char* name) {
      return s.linear({.name = name, .bias = true, .bias_apart = apart}, s.lies_by_example(x),
                      {heads, dim});
    };
    const Node q = s.scaled(project("query"));
    const Node k = project("key");
    const Node v = project("value");
    for (const char* name : {"query_global", "key_global", "value_global"}) {
      s.stored({name, /*bias=*/true}, x, {heads, dim});
    }
    context = windows.context(windows.probabilities(windows.scores(q, k)), v);
  }
  return s.linear({.name = a.out, .bias = true, .in = 2, .bias_apart = apart}, context,
                  {s.axes_of(x).back()});
}

std::string to_text(const WindowedAttention& a) {
  return fmt::format("attention in windows of {} in chunks, {} heads of {}", a.window, a.heads,
                     a.head_dim);
}

}  // namespace shardsim::models
