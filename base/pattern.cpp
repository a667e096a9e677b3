#include "base/pattern.hpp"

#include <fmt/format.h>

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace shardsim {

struct Pattern::Code {
  pcre2_code* compiled = nullptr;
  pcre2_match_data* match = nullptr;
  Place place;

  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    pcre2_match_data_free(match);
    pcre2_code_free(compiled);
  }
};

Pattern::Pattern(std::string_view expression, const Place& place)
    : code_(std::make_unique<Code>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->place = place;
  code_->compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  if (code_->compiled == nullptr) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    throw InputError(place,
                     fmt::format("pattern \"{}\" is not a regular expression: {} at position {}",
                                 expression, reinterpret_cast<const char*>(text.data()), offset));
  }
  code_->match = pcre2_match_data_create_from_pattern(code_->compiled, nullptr);
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::search(std::string_view text) const {
  const int found = pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), 0, 0, code_->match, nullptr);
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
    throw InputError(code_->place, fmt::format("pattern cannot be matched against \"{}\"", text));
  }
  return found >= 0;
}

}  // namespace shardsim
