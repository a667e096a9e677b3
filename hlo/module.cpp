#include "hlo/module.hpp"

#include <fmt/format.h>

#include "hlo/name_table.hpp"

namespace shardsim {

// One pass: a header line, then computations, each a line that ends in "{", instructions, and "}".
class HloParser {
 public:
  HloParser(std::string text, std::string file) {
    module_.text_ = std::make_unique<const std::string>(std::move(text));
    module_.source_ = {*module_.text_, std::move(file)};
    cursor_ = HloCursor(*module_.text_);
  }

  HloModule parse() {
    parse_header();
    for (;;) {
      cursor_.skip_space();
      if (cursor_.at_end()) break;
      if (at_source_table()) {
        cursor_.skip_line();
      } else {
        parse_computation();
      }
    }
    if (module_.entry_ < 0) fail("the module has no ENTRY computation");
    return std::move(module_);
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    module_.source_.fail(cursor_.rest(), message);
  }

  void parse_header() {
    cursor_.skip_space();
    if (!cursor_.accept("HloModule ")) fail("expected \"HloModule\": this is no HLO text");
    cursor_.skip_blanks();
    module_.name_ = cursor_.name();
    const std::size_t begin = cursor_.position();
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      if (cursor_.value().empty()) cursor_.advance();
    }
    module_.header_ = module_.source_.text.substr(begin, cursor_.position() - begin);
  }

  // FileNames, FunctionNames, FileLocations and StackFrames: a title and numbered lines.
  bool at_source_table() const {
    const std::string_view rest = cursor_.rest();
    for (const std::string_view title :
         {"FileNames", "FunctionNames", "FileLocations", "StackFrames"}) {
      if (rest.substr(0, title.size()) == title && rest.substr(title.size(), 1) == "\n")
        return true;
    }
    return rest.front() >= '0' && rest.front() <= '9';
  }

  void parse_computation() {
    const std::string_view line = cursor_.rest().substr(0, cursor_.rest().find('\n'));
    if (trim_blanks(line).empty() || trim_blanks(line).back() != '{') {
      fail(fmt::format("expected a computation, found \"{}\"", line.substr(0, 60)));
    }
    const bool is_entry = cursor_.accept("ENTRY ");
    cursor_.skip_blanks();
    HloComputation computation;
    computation.name = cursor_.name();
    if (computation.name.empty()) fail("expected the name of a computation");
    cursor_.skip_line();
    computation.first = static_cast<HloId>(module_.instructions_.size());
    computation.root = -1;
    names_.clear();
    for (;;) {
      cursor_.skip_space();
      if (cursor_.accept('}')) break;
      if (cursor_.at_end()) fail(fmt::format("computation {} does not end", computation.name));
      if (parse_instruction()) {
        computation.root = static_cast<HloId>(module_.instructions_.size()) - 1;
      }
    }
    cursor_.skip_line();
    computation.end = static_cast<HloId>(module_.instructions_.size());
    if (computation.first == computation.end) {
      fail(fmt::format("computation {} is empty", computation.name));
    }
    if (computation.root < 0) computation.root = computation.end - 1;
    const auto id = static_cast<HloComputationId>(module_.computations_.size());
    if (is_entry) module_.entry_ = id;
    module_.by_name_.emplace(computation.name, id);
    module_.computations_.push_back(computation);
  }

  // [ROOT] %name = shape opcode(arguments), attributes. Answers whether it is the root.
  bool parse_instruction() {
    const bool is_root = cursor_.accept("ROOT ");
    cursor_.skip_blanks();
    HloInstruction instruction;
    instruction.name = cursor_.name();
    cursor_.skip_blanks();
    if (instruction.name.empty() || !cursor_.accept('=')) fail("expected \"name = shape opcode(\"");
    cursor_.skip_blanks();
    instruction.shape = cursor_.value(/*to_blank=*/true);
    cursor_.skip_blanks();
    instruction.opcode = cursor_.name();
    if (instruction.opcode.empty() || cursor_.peek() != '(') {
      fail(fmt::format("expected an operation and its operands in {}", instruction.name));
    }
    const std::string_view arguments = cursor_.bracketed();
    if (arguments.size() < 2 || arguments.back() != ')') fail("a parenthesis does not close");
    instruction.arguments = arguments.substr(1, arguments.size() - 2);
    const std::size_t begin = cursor_.position();
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      if (cursor_.value().empty()) cursor_.advance();
    }
    instruction.attributes = module_.source_.text.substr(begin, cursor_.position() - begin);
    resolve_operands(instruction);
    names_.add(instruction.name, static_cast<HloId>(module_.instructions_.size()));
    module_.instructions_.push_back(instruction);
    return is_root;
  }

  // Each operand is "%name" or "shape %name".
  void resolve_operands(HloInstruction& instruction) {
    instruction.first_operand = static_cast<std::uint32_t>(module_.operands_.size());
    if (instruction.opcode == "parameter" || instruction.opcode == "constant") return;
    HloCursor list(instruction.arguments);
    for (;;) {
      list.skip_space();
      if (list.at_end()) break;
      const std::string_view operand = trim_blanks(list.value());
      const std::size_t blank = operand.find_last_of(" %");
      const std::string_view name =
          blank == std::string_view::npos ? operand : operand.substr(blank + 1);
      const HloId id = names_.find(name);
      if (id < 0) {
        module_.source_.fail(instruction.name, fmt::format("{} uses \"{}\", which is not defined "
                                                           "before it",
                                                           instruction.name, name.substr(0, 60)));
      }
      module_.operands_.push_back(id);
      ++instruction.operand_count;
      list.skip_space();
      if (!list.accept(',')) break;
    }
  }

  HloModule module_;
  HloCursor cursor_{std::string_view()};
  NameTable names_;
};

HloModule HloModule::parse(std::string text, std::string file) {
  return HloParser(std::move(text), std::move(file)).parse();
}

std::int64_t HloModule::header_integer(std::string_view key, std::int64_t otherwise) const {
  const std::string_view value = header(key);
  return value.empty() ? otherwise : parse_integer(value, source_);
}

std::span<const HloId> HloModule::operands(HloId id) const {
  const HloInstruction& user = instruction(id);
  return std::span(operands_).subspan(user.first_operand, user.operand_count);
}

HloId HloModule::operand(HloId id, std::size_t index) const {
  const auto all = operands(id);
  if (index >= all.size()) {
    const HloInstruction& user = instruction(id);
    source_.fail(user.name, fmt::format("{} has {} operands, {} expected at least", user.name,
                                        all.size(), index + 1));
  }
  return all[index];
}

HloComputationId HloModule::named_above(std::string_view name, HloId id) const {
  if (name.starts_with('%')) name.remove_prefix(1);
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || computation(found->second).end > id) {
    source_.fail(name, fmt::format("no computation \"{}\" above", name));
  }
  return found->second;
}

std::vector<HloComputationId> HloModule::called(HloId id, std::string_view key) const {
  std::vector<HloComputationId> ids;
  for (const std::string_view name : split_list(attribute(id, key))) {
    ids.push_back(named_above(name, id));
  }
  return ids;
}

HloComputationId HloModule::callee(HloId id, std::string_view key) const {
  const std::string_view name = trim_blanks(without_brackets(attribute(id, key)));
  if (name.empty() || name.find(',') != std::string_view::npos) {
    const HloInstruction& caller = instruction(id);
    source_.fail(caller.name, fmt::format("{} has no {}=computation", caller.name, key));
  }
  return named_above(name, id);
}

const HloShapes::Known& HloShapes::known(HloId id) {
  const auto found = known_.find(module_.instruction(id).shape);
  if (found != known_.end()) return found->second;
  HloShape shape = module_.shape(id);
  const Bytes bytes = shape.bytes();
  return known_.emplace(module_.instruction(id).shape, Known{std::move(shape), bytes})
      .first->second;
}

std::string HloModule::op_name(HloId id) const {
  const std::string_view metadata = without_brackets(attribute(id, "metadata"));
  const std::size_t at = metadata.find("op_name=\"");
  std::string name;
  if (at == std::string_view::npos) return name;
  for (std::size_t i = at + 9; i < metadata.size() && metadata[i] != '"'; ++i) {
    if (metadata[i] == '\\' && i + 1 < metadata.size()) ++i;
    name += metadata[i];
  }
  return name;
}

HloUsers::HloUsers(const HloModule& module, const HloComputation& computation)
    : first_(computation.first),
      begin_(static_cast<std::size_t>(computation.end - computation.first) + 1) {
  const auto slot = [&](HloId id) { return static_cast<std::size_t>(id - first_); };
  for (HloId id = computation.first; id < computation.end; ++id) {
    for (const HloId operand : module.operands(id)) ++begin_[slot(operand) + 1];
  }
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  users_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (HloId id = computation.first; id < computation.end; ++id) {
    for (const HloId operand : module.operands(id)) users_[next[slot(operand)]++] = id;
  }
}

std::span<const HloId> HloUsers::of(HloId id) const {
  const auto slot = static_cast<std::size_t>(id - first_);
  return std::span(users_).subspan(begin_[slot], begin_[slot + 1] - begin_[slot]);
}

}  // namespace shardsim
