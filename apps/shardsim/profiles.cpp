#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"

#include "command.hpp"
#include "hardware_profiles/profile_io.hpp"
#include "output.hpp"

namespace shardsim {
namespace {

const Manual manual = {
    "profiles [list | show NAME | check FILE] [OPTION...]",
    "Hardware profiles: the machines that are built in, every number of one with its source, and\n"
    "whether a file of your own is a valid profile.",
    {"shardsim profiles", "shardsim profiles show dgx-h100",
     "shardsim profiles show tpu-v5p --format json -o my-machine.json",
     "shardsim profiles check hardware_profiles/profiles/dgx-h100.json"}};

std::vector<Profile> shipped() {
  std::vector<Profile> profiles;
  for (const std::string& name : shipped_profiles()) profiles.push_back(load_profile(name, {}));
  return profiles;
}

void list(const std::vector<Output>& outputs) {
  const std::vector<Profile> profiles = shipped();
  write(outputs, [&](const std::string& format) {
    return format == "json" ? profile_list_json(profiles).dump(2) + "\n"
                            : profile_list_text(profiles);
  });
}

void show(const std::string& name, const std::vector<Output>& outputs) {
  if (is_network_text(name)) {
    throw InputError({"command line", ""}, "a network written in place has no profile to show");
  }
  const Profile profile = load_profile(name, {"command line", ""});
  write(outputs, [&](const std::string& format) {
    return format == "json" ? profile_to_json(profile).dump(2) + "\n" : profile_to_text(profile);
  });
}

// Reading is the check.
void check(const std::string& file) {
  const Profile profile = read_profile(load_json(file), file);
  print(fmt::format("{}: a valid profile, {}\n", file, profile.name));
}

}  // namespace

int profiles_command(const Words& words) {
  const std::vector<std::string> formats = {"text", "json"};
  boost::program_options::options_description options("Options");
  add_output_options(options, formats);
  const std::optional<Given> answered = parse_or_help(words, options, manual);
  if (!answered) return exit_done;
  const Given& given = *answered;
  const auto outputs = read_outputs(given, formats, /*text_beside_files=*/false);
  const Words operands = given.all("operand");
  const std::string action = operands.empty() ? "list" : operands[0];
  if (action == "list" && operands.size() <= 1) {
    list(outputs);
  } else if (action == "show" && operands.size() == 2) {
    show(operands[1], outputs);
  } else if (action == "check" && operands.size() == 2) {
    check(operands[1]);
  } else {
    throw UsageError("expected: profiles [list | show NAME | check FILE]");
  }
  return exit_done;
}

}  // namespace shardsim
