// Files as lists of keys with values and places, and back. What a key means is not known here.
//
//   arguments   --key value, in a launch script, alone, or as MODEL_ARGS of Megatron's own YAML
//   TOML, YAML, JSON: sections joined by dots, lists as one value
//
// Throw InputError with the line for what is no such file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/keys.hpp"

namespace shardsim {

// What the environment of a script or of MODEL_ARGS holds, given beside the file: TP=2.
using GivenVariables = std::map<std::string, std::string, std::less<>>;

struct KeyFile {
  std::vector<Entry> entries;
  std::optional<std::int64_t> devices = std::nullopt;  // that the file launches on
  std::string program = {};                            // that it launches: "pretrain_gpt.py"
  Place program_place = {};
};

[[nodiscard]] KeyFile read_arguments(const std::string& text, const std::string& file,
                                     const GivenVariables& given = {});
[[nodiscard]] KeyFile read_toml(const std::string& text, const std::string& file);
[[nodiscard]] KeyFile read_yaml(const std::string& text, const std::string& file);
[[nodiscard]] KeyFile read_json_keys(const std::string& text, const std::string& file);

// {"ENV_VARS": {...}, "MODEL_ARGS": {"--num-layers": 32, "--swiglu": true}}, as Megatron-LM's
// functional tests and the recipes around it hold their arguments: is it one, and its entries.
[[nodiscard]] bool is_argument_yaml(const std::string& text);
[[nodiscard]] std::vector<Entry> read_argument_yaml(const std::string& text,
                                                    const std::string& file,
                                                    const GivenVariables& given);
// Are there $NAME or ${NAME} in it?
[[nodiscard]] bool has_variable(const std::string& text, const std::string& name);

// A value as it is given on a command line, key=value: JSON, or else a word.
[[nodiscard]] Json value_of_word(const std::string& text);

// What stands above the keys, as comments, where the format has them.
struct FileHead {
  std::vector<std::string> lines;
  std::string launch;  // of arguments: the command before them
};

[[nodiscard]] std::string print_arguments(const std::vector<WrittenKey>& keys,
                                          const FileHead& head);
[[nodiscard]] std::string print_toml(const std::vector<WrittenKey>& keys, const FileHead& head);
[[nodiscard]] std::string print_yaml(const std::vector<WrittenKey>& keys, const FileHead& head);
[[nodiscard]] std::string print_json_keys(const std::vector<WrittenKey>& keys,
                                          const FileHead& head);

}  // namespace shardsim
