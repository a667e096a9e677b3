#include "base/glob.hpp"

#include <algorithm>

namespace shardsim {

bool Glob::matches(std::string_view text) const {
  const std::string& first = pieces.front();
  const std::string& last = pieces.back();
  if (pieces.size() == 1) return text == first;
  if (text.size() < first.size() + last.size()) return false;
  if (!text.starts_with(first) || !text.ends_with(last)) return false;
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  return std::all_of(pieces.begin() + 1, pieces.end() - 1, [&](const std::string& piece) {
    const std::size_t at = text.find(piece);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + piece.size());
    return true;
  });
}

}  // namespace shardsim
