#include "base/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "base/file.hpp"

namespace shardsim {
namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 30U;

// One z_stream over a text of any length: zlib counts in 32 bits.
class Inflater {
 public:
  explicit Inflater(std::string_view input) : input_(input) {
    constexpr int gzip_only = MAX_WBITS + 16;  // zlib.h, inflateInit2
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends what the next step gives. Answers Z_OK, Z_STREAM_END, or what is wrong.
  int step(std::string& output) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(input_.size(), most);
    // zlib only reads its input; older versions do not declare it const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = buffer_.data();
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input_.remove_prefix(given - stream_.avail_in);
    output.append(buffer_.begin(), buffer_.end() - stream_.avail_out);
    return status;
  }

  [[nodiscard]] bool next_member() { return !input_.empty() && inflateReset(&stream_) == Z_OK; }

 private:
  std::string_view input_;
  z_stream stream_{};
  std::array<Bytef, 1U << 16U> buffer_{};
};

}  // namespace

std::string gunzip(std::string_view compressed, const std::string& file) {
  const auto inflater = std::make_unique<Inflater>(compressed);
  std::string output;
  for (;;) {
    const int status = inflater->step(output);
    if (output.size() > most_bytes) {
      throw InputError({file, ""}, "gzip: more than 4 GiB when decompressed");
    }
    if (status == Z_STREAM_END) {
      if (!inflater->next_member()) return output;
    } else if (status == Z_BUF_ERROR) {
      throw InputError({file, ""}, "gzip: ends too early");
    } else if (status != Z_OK) {
      throw InputError({file, ""}, "gzip: damaged");
    }
  }
}

std::string read_maybe_gzip(const std::string& path) {
  std::string content = read_file(path);
  return content.starts_with("\x1f\x8b") ? gunzip(content, path) : content;
}

}  // namespace shardsim
