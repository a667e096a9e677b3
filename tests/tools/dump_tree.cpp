// Prints a tree file as shardsim reads it, with mesh and specs: dump_tree FILE. The tests of the
// exporters compare it with what the real libraries say.
#include <iostream>

#include "base/error.hpp"
#include "base/json.hpp"
#include "strategies/specs/placed_tree.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    std::cout << placed_tree_to_json(shardsim::read_placed_tree_file(argv[1])).dump(1) << "\n";
    return 0;
  } catch (const shardsim::InputError& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
