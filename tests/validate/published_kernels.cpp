#include "published_kernels.hpp"

#include "base/json.hpp"
#include "measurements/kernel_table.hpp"

namespace shardsim::test {
namespace {

std::vector<std::string> words_of(const JsonReader& list) {
  std::vector<std::string> words;
  for (const JsonReader& word : list.elements()) words.push_back(word.string());
  return words;
}

}  // namespace

std::vector<PublishedKernels> published_kernels() {
  const std::string folder = SHARDSIM_SOURCE_DIR "/tests/measurements/";
  const std::string list = folder + "kernels.json";
  const Json document = load_json(list);
  std::vector<PublishedKernels> all;
  for (const JsonReader& one : JsonReader(document, {list, ""}).elements()) {
    KernelTableChoice choice;
    choice.machine = one.at("machine").string();
    choice.date = "2026-08";
    choice.where = read_column_values(words_of(one.at("where")), "where");
    choice.set = read_column_values(words_of(one.at("set")), "set");
    const std::string file = folder + "kernels/" + one.at("table").string();
    all.push_back(
        {one.at("name").string(), read_kernel_table(load_json(file), file, choice).sweep});
  }
  return all;
}

}  // namespace shardsim::test
