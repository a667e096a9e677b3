// Launch scripts as a shell reads them. Expectations are bash's own (POSIX 2.6, word expansions).
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "launch/formats/formats.hpp"
#include "launch/formats/shell_script.hpp"

namespace shardsim::shell_test {
namespace {

std::vector<std::string> last_command(const std::string& script) {
  const ShellScript read = read_shell_script(script, "a.sh");
  REQUIRE(!read.commands.empty());
  std::vector<std::string> words;
  for (const ShellWord& word : read.commands.back()) words.push_back(word.text);
  return words;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("Words, quotes, variables") {
  CHECK(last_command("a b 'c d' \"e f\" # g") == Words{"a", "b", "c d", "e f"});
  CHECK(last_command("A=1\nB=\"x $A\"\nrun $B \"$B\" '$B'") == Words{"run", "x", "1", "x 1", "$B"});
  CHECK(last_command("run ${N:-8} ${M:-\"a b\"}") == Words{"run", "8", "a b"});
  CHECK(last_command("N=2\nrun $(($N*4+1)) $((7/2))") == Words{"run", "9", "3"});
  CHECK(last_command("run a \\\n  b") == Words{"run", "a", "b"});
  CHECK(last_command("run $(date +%s) $X") == Words{"run", "$(date +%s)", "$X"});
}

TEST_CASE("Arrays") {
  CHECK(last_command("A=(--x 1 # a comment\n  --y)\nA+=(--z 'a b')\nrun ${A[@]}") ==
        Words{"run", "--x", "1", "--y", "--z", "a", "b"});
  CHECK(last_command("A=(1 'a b')\nrun \"${A[@]}\"") == Words{"run", "1", "a b"});
  CHECK(last_command("A=()\nrun ${A[@]} b") == Words{"run", "b"});
}

TEST_CASE("Conditions") {
  const std::string chosen =
      "T=fp8\nif [[ \"$T\" == fp8 ]] && [ -n \"$T\" ]; then A=1\nelif [ $T = x ]; then A=2\n"
      "else\nA=3\nfi\nrun $A";
  CHECK(last_command(chosen) == Words{"run", "1"});
  CHECK(last_command("N=2\nif [ $N -gt 2 ] || [ -z \"$UNSET\" ]; then A=1; else A=2; fi\nrun $A") ==
        Words{"run", "1"});
  CHECK(last_command("if [ ! -f x ]; then A=1; fi\nrun $A") == Words{"run", "1"});
  CHECK(last_command(
            "S=8B\ncase \"$S\" in\n 1B|2B) L=1;;\n 8B)\n L=2\n ;;\n *) L=3 ;;\nesac\nrun $L") ==
        Words{"run", "2"});
  CHECK(last_command("cat <<EOF > x\nif this is no script (\nEOF\nrun a") == Words{"run", "a"});
}

TEST_CASE("What is not followed is said with its line") {
  CHECK_THROWS_WITH(read_shell_script("a\nfor i in 1 2; do b; done", "a.sh"),
                    Catch::StartsWith("a.sh: line 2: \"for\" is not followed"));
  CHECK_THROWS_WITH(read_shell_script("a\nb 'c", "a.sh"), "a.sh: line 2: ' is not closed");
  CHECK_THROWS_WITH(read_shell_script("A=(1\n2", "a.sh"),
                    "a.sh: line 1: a list that begins here is not closed");
  CHECK_THROWS_WITH(read_shell_script("if [ a ]; then b", "a.sh"),
                    "a.sh: line 1: this has no end, fi or esac");
}

TEST_CASE("Arguments of a launch") {
  const KeyFile file = read_arguments(
      "torchrun --nproc_per_node 8 --nnodes=2 a/pretrain_gpt.py --x 1 --y --z a b --x=2", "a.sh");
  CHECK(file.devices == 16);
  CHECK(file.program == "pretrain_gpt.py");
  REQUIRE(file.entries.size() == 3);
  CHECK(file.entries[0].key == "y");
  CHECK(*file.entries[1].value == Json({"a", "b"}));
  CHECK(*file.entries[2].value == "2");  // the last holds
  CHECK(read_arguments("--a-b 1\n--c_d 2\n", "a").entries[1].key == "c-d");
  CHECK(read_arguments("c=\"python p.py --a 1\"\nsrun sh -c \"$c\"", "a").entries[0].key == "a");
  CHECK_THROWS_AS(read_arguments("echo a", "a.sh"), InputError);
}

}  // namespace shardsim::shell_test
