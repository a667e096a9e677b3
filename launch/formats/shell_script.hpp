// The commands of a launch script, with what its variables hold: assignments, arrays, if with tests
// of strings and numbers, case, ${NAME:-otherwise}, $((2*8)). What a script does besides (files it
// looks for, programs whose output it reads) is not done: such a word stays as it is written.
//
//   TP=2
//   ARGS=(--num-layers 32)
//   ARGS+=(--tensor-model-parallel-size $TP)      torchrun pretrain_gpt.py "${ARGS[@]}"
//
// Loops and functions are not understood: InputError with the line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardsim {

struct ShellWord {
  std::string text;
  int line = 0;
};
using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, std::vector<ShellWord>, std::less<>> variables;  // one word, or an array's
};

// `given`: variables that the script begins with, as its environment has them.
[[nodiscard]] ShellScript read_shell_script(
    std::string_view text, const std::string& file,
    const std::map<std::string, std::string, std::less<>>& given = {});

}  // namespace shardsim
