#include "base/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/regex_syntax.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace shardsim {
namespace {

template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, void (*destroy)(T*)>
using Handle = std::unique_ptr<T, Destroy<T, destroy>>;
using CompiledCode = Handle<pcre2_code, pcre2_code_free>;
using CompileContext = Handle<pcre2_compile_context, pcre2_compile_context_free>;
using MatchContext = Handle<pcre2_match_context, pcre2_match_context_free>;
using MatchData = Handle<pcre2_match_data, pcre2_match_data_free>;

constexpr std::uint32_t most_steps = 10'000'000;   // in one search
constexpr std::uint32_t least_steps = 1'000;       // from one start
constexpr std::size_t longest_text = 64 << 10;     // keeps least_steps from every start affordable
constexpr std::uint32_t most_heap_kib = 64 << 10;  // without JIT

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// What a search writes to, one for each thread.
struct Workspace {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
};

Workspace& workspace() {
  thread_local Workspace space;
  return space;
}

struct Engine {
  CompiledCode code;
  bool has_jit = false;

  // Throws the PCRE2 error as RegexSyntaxError.
  void compile(const std::string& text, std::uint32_t options) {
    const CompileContext context(pcre2_compile_context_create(nullptr));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             PCRE2_UTF | options, &error, &offset, context.get()));
    if (code == nullptr) throw RegexSyntaxError(message_of(error), 0);
    has_jit = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
  }

  // Matched, or PCRE2's error.
  [[nodiscard]] int match(std::string_view text) const {
    const Workspace& space = workspace();
    const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    // The engine counts anew from every start in the text.
    const auto starts = static_cast<std::uint32_t>(text.size() + 1);
    pcre2_set_match_limit(space.context.get(), std::max(most_steps / starts, least_steps));
    pcre2_set_heap_limit(space.context.get(), most_heap_kib);
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (has_jit && is_ascii(text)) {
      found = pcre2_jit_match(code.get(), subject, text.size(), 0, 0, space.data.get(),
                              space.context.get());
    } else if (has_jit) {
      found = pcre2_match(code.get(), subject, text.size(), 0, 0, space.data.get(),
                          space.context.get());
    }
    if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
    return pcre2_match(code.get(), subject, text.size(), 0, PCRE2_NO_JIT, space.data.get(),
                       space.context.get());
  }
};

}  // namespace

struct Pattern::Code {
  std::string expression;
  Place place;
  TranslatedRegex regex;
  Engine search;
  Engine full_match;

  [[nodiscard]] bool decide(const Glob& glob, const Engine& engine, std::string_view text) const {
    if (text.find('\n') == std::string_view::npos) {
      if (!glob.matches(text)) return false;
      if (regex.globs_suffice) return true;
    }
    if (text.size() > longest_text) {
      throw InputError(place, fmt::format("a text of {} bytes is too long for pattern \"{}\"",
                                          text.size(), expression));
    }
    const int found = engine.match(text);
    if (found >= 0) return true;
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_HEAPLIMIT ||
        found == PCRE2_ERROR_DEPTHLIMIT) {
      throw InputError(
          place, fmt::format("pattern \"{}\" takes too many steps on \"{}\"", expression, text));
    }
    throw InputError(place, fmt::format("pattern \"{}\" cannot be matched against \"{}\": {}",
                                        expression, text, message_of(found)));
  }
};

Pattern::Pattern(std::string_view expression, const Place& place)
    : code_(std::make_unique<Code>()) {
  code_->expression = expression;
  code_->place = place;
  try {
    code_->regex = translate_python_regex(expression);
    code_->search.compile(code_->regex.text, 0);
    code_->full_match.compile(code_->regex.text, PCRE2_ANCHORED | PCRE2_ENDANCHORED);
  } catch (const RegexSyntaxError& error) {
    throw PatternError(place,
                       fmt::format("pattern \"{}\" is not a regular expression: {} at position {}",
                                   expression, error.what(), error.position()));
  }
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::search(std::string_view text) const {
  return code_->decide(code_->regex.search, code_->search, text);
}

bool Pattern::full_match(std::string_view text) const {
  return code_->decide(code_->regex.full_match, code_->full_match, text);
}

}  // namespace shardsim
