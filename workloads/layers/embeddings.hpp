// What enters a stack: tokens, patches of images, frames of audio. Names are full names.
//
// Tokens: a table of [vocab, width], positions and token types where there are tables of them, a
// norm, dropout. Kept: the numbers that index the tables, unless the batch brought them or they are
// stored; the norm's and dropout's own.
// Patches: a convolution as long as its step, class tokens put before, positions added. The image
// needs no gradient: of the convolution's backward pass only the weight's half is computed.
// Audio: two convolutions over mel frames, the second halves them, GELU after each; positions.
//
// Example: ViT-B/16 at 224: 14 x 14 patches and a class token are 197 rows of 768.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "workloads/layers/context.hpp"
#include "workloads/layers/norm.hpp"

namespace shardsim::models {

enum class PositionNumbers : std::uint8_t {
  made,         // once for all examples
  per_example,  // for each
  stored        // in a buffer
};

// Where a token stands on a page: edges and sizes of its box, each looked up in a table of as many
// rows; two of x and of y, one of height and of width (LayoutLM, arXiv:1912.13318).
struct BoxTables {
  std::string x, y, height, width;  // of modules
  std::int64_t rows = 0;

  bool operator==(const BoxTables&) const = default;
};

// Rows of another table beside those of tokens: their width is put behind that of tokens.
struct BesideTable {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t width = 0;

  bool operator==(const BesideTable&) const = default;
};

// One more table of token types: numbers of several lie side by side (TAPAS, arXiv:2004.02349).
struct TypeTable {
  std::string name;
  std::int64_t rows = 0;

  bool operator==(const TypeTable&) const = default;
};

// Where a token stands in a page's tree: of each step of its path a tag and a number, rows of two
// tables, side by side; both added up, and two products (MarkupLM, arXiv:2110.08518).
struct PathTables {
  std::string name;  // of the module
  std::int64_t depth = 0, tags = 0, numbers = 0, unit = 0;
  double dropout = 0;

  bool operator==(const PathTables&) const = default;
};

struct TokenEmbedding {
  std::string name = "model.embed_tokens";
  std::string table_of{};  // another embedding's full name whose table this is
  std::int64_t vocab = 0;
  std::int64_t width = 0;
  bool scaled = false;           // by a number
  bool shifted = false;          // numbers are made of the labels, moved by one: a decoder's
  std::string positions{};       // a learned table; empty: none
  bool fixed_positions = false;  // that are computed once and not trained
  std::int64_t position_rows = 0;
  std::int64_t position_offset = 0;  // rows before the first position's
  PositionNumbers position_numbers = PositionNumbers::made;
  std::string types{};  // a table of token types; empty: none
  std::int64_t type_rows = 0;
  bool types_per_example = false;
  std::string tasks{};  // a table of tasks, behind positions; empty: none (ERNIE 3)
  std::int64_t task_rows = 0;
  bool types_stored = false;  // their numbers are in a buffer
  std::vector<TypeTable> more_types{};
  std::optional<BoxTables> boxes{};
  std::optional<PathTables> paths{};
  Norm norm{};
  std::string dropout_name{};  // of the module; empty: of none
  double dropout = 0;
  bool masked = false;        // then times a mask of padding
  bool tokens_first = false;  // numbers are copied so that tokens lie before examples (XLNet)
  std::vector<BesideTable> beside{};  // that `project` reads, too (RoCBert)
  bool neighbours = false;            // rows of the tokens at either side, too (MobileBERT)
  std::string project{};              // to the stack's width, where it differs
  bool project_bias = false;
  bool project_last = false;  // after positions, types and norm, which have the table's width: with
                              // a bias (ELECTRA)

  bool operator==(const TokenEmbedding&) const = default;
};

struct PatchEmbedding {
  std::string projection;  // of the convolution's module
  std::int64_t channels = 3;
  std::int64_t image = 0;  // height and width in pixels
  std::int64_t patch = 0;
  bool bias = true;
  std::vector<std::string> tokens{};  // learned rows put before the patches
  bool flat_tokens = false;           // of shape [h], not [1, 1, h]
  bool flat_pixels = false;      // images come as rows of patches; weight [h, pixels] (SigLIP 2)
  std::int64_t kept = 0;         // of the patches: others are masked; 0: all
  bool fixed_positions = false;  // that are not trained
  std::string positions{};       // a parameter [1, rows, h]
  std::string position_table{};  // or an embedding's module
  std::string mask_token{};      // a parameter [1, h] that masked training alone uses
  std::string registers{};       // a parameter [1, register_rows, h], rows without positions
  std::int64_t register_rows = 0;
  Norm norm{};
  double dropout = 0;

  [[nodiscard]] std::int64_t rows() const {
    return patches() + static_cast<std::int64_t>(tokens.size());
  }
  [[nodiscard]] std::int64_t patches() const { return (image / patch) * (image / patch); }
  // That enter the layers.
  [[nodiscard]] std::int64_t entering() const {
    return rows() - (kept > 0 ? patches() - kept : 0) + register_rows;
  }
  bool operator==(const PatchEmbedding&) const = default;
};

struct AudioStem {
  std::string prefix;       // of conv1 and conv2
  std::int64_t bins = 0;    // of mel spectra
  std::int64_t rows = 0;    // positions: half as many as frames
  std::string positions{};  // an embedding's module
  double dropout = 0;

  bool operator==(const AudioStem&) const = default;
};

// What enters comes from parameters that are counted apart: of stacks that do not run.
struct NoInput {
  bool operator==(const NoInput&) const = default;
};

// What an encoder left of the patches that it saw, projected, and a learned row in the place of
// every masked one (masked autoencoders, arXiv:2111.06377); positions that are not trained.
struct MaskedRows {
  std::string project;
  std::string mask_token;  // a parameter [1, 1, h]
  std::string positions;   // [1, rows, h]
  std::int64_t rows = 0;

  bool operator==(const MaskedRows&) const = default;
};

using Input = std::variant<TokenEmbedding, PatchEmbedding, AudioStem, MaskedRows, NoInput>;

// `ids`: token numbers of the batch, which images and audio do not read. Rows of width `hidden`.
Value run(Eager& e, const TokenEmbedding& embedding, std::int64_t hidden, const Value& ids);
Value run(Eager& e, const PatchEmbedding& embedding, std::int64_t hidden, std::int64_t batch);
Value run(Eager& e, const AudioStem& stem, std::int64_t hidden, std::int64_t batch);
Value run(Eager& e, const MaskedRows& rows, std::int64_t hidden, const Value& seen);

}  // namespace shardsim::models
