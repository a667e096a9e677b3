// Classes of a Python file as Pax's experiments are written: constants of numbers, names, lists and
// arithmetic, and methods.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "base/json.hpp"
#include "launch/pax_classes.hpp"
#include "strategies/rules/python_lexer.hpp"

namespace shardsim {
namespace {

using TokenKind = PythonToken::Kind;
using Constants = std::map<std::string, OwnedJson>;

// An expression of constants.
class PaxExpression {
 public:
  PaxExpression(const std::string& text, const Constants& names, Place place)
      : tokens_(read_python_tokens(text, place)), names_(names), place_(std::move(place)) {}

  Json value() {
    Json value = sum();
    if (is(",")) value = rest_of(std::move(value), "");
    if (tokens_[next_].kind != TokenKind::end) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw InputError(place_, fmt::format("\"{}\": expected numbers, names and lists of them",
                                         tokens_[next_].text));
  }

  [[nodiscard]] bool is(std::string_view symbol) const {
    return tokens_[next_].kind == TokenKind::symbol && tokens_[next_].text == symbol;
  }
  bool take(std::string_view symbol) {
    if (!is(symbol)) return false;
    ++next_;
    return true;
  }

  // "(a, b, c" behind its first value; an empty `end` is that of the text.
  Json rest_of(Json first, std::string_view end) {
    Json list = Json::array({std::move(first)});
    while (take(",")) {
      const bool ends = end.empty() ? tokens_[next_].kind == TokenKind::end : is(end);
      if (!ends) list.push_back(sum());
    }
    return list;
  }

  Json sum() {
    Json value = product();
    while (is("+") || is("-")) {
      const std::string op = tokens_[next_++].text;
      value = applied(op, value, product());
    }
    return value;
  }

  Json product() {
    Json value = factor();
    while (is("*") || is("/") || is("//")) {
      const std::string op = tokens_[next_++].text;
      value = applied(op, value, factor());
    }
    return value;
  }

  Json applied(const std::string& op, const Json& a, const Json& b) {
    if (!a.is_number() || !b.is_number()) fail();
    const double x = a.get<double>(), y = b.get<double>();
    const bool whole = a.is_number_integer() && b.is_number_integer() && op != "/";
    if (op.front() == '/' && y == 0) fail();
    const double result = op == "+"    ? x + y
                          : op == "-"  ? x - y
                          : op == "*"  ? x * y
                          : op == "//" ? std::floor(x / y)
                                       : x / y;
    if (!(std::abs(result) < 0x1p53)) fail();
    return whole ? Json(static_cast<std::int64_t>(result)) : Json(result);
  }

  Json factor() {
    bool negative = false;
    while (take("-")) negative = !negative;
    if (negative) return applied("-", Json(0), factor());
    if (take("(")) {
      Json value = sum();
      if (is(",")) value = rest_of(std::move(value), ")");
      if (!take(")")) fail();
      return value;
    }
    if (take("[")) {
      if (take("]")) return Json::array();
      Json list = rest_of(sum(), "]");
      if (!take("]")) fail();
      return list;
    }
    const PythonToken token = tokens_[next_];
    if (token.kind == TokenKind::literal) {
      ++next_;
      return to_json(token.value);
    }
    if (token.kind == TokenKind::keyword) {
      ++next_;
      if (token.text == "True" || token.text == "False") return token.text == "True";
      if (token.text == "None") return Json();
      --next_;
    }
    if (token.kind != TokenKind::name) fail();
    return name();
  }

  // A constant, int(a / b), or of a dotted name the last part.
  Json name() {
    std::string name = tokens_[next_++].text;
    if (name == "int" && take("(")) {
      const Json value = sum();
      const bool fits = value.is_number() && std::abs(value.get<double>()) < 0x1p53;
      if (!take(")") || !fits) fail();
      return static_cast<std::int64_t>(value.get<double>());
    }
    if (!is(".")) {
      const auto found = names_.find(name);
      if (found != names_.end()) return *found->second;
      --next_;
      fail();
    }
    while (take(".")) {
      if (tokens_[next_].kind != TokenKind::name) fail();
      name = tokens_[next_++].text;
    }
    return name;
  }

  std::vector<PythonToken> tokens_;
  const Constants& names_;
  Place place_;
  std::size_t next_ = 0;
};

struct PythonLine {
  int number = 0;
  std::size_t indent = 0;
  std::string text;
};

// Where a comment begins outside of strings; how many more brackets open than close before it.
std::size_t end_of_code(const std::string& line, int& open) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return i;
    } else if (std::string_view("([{").find(c) != std::string_view::npos) {
      ++open;
    } else if (std::string_view(")]}").find(c) != std::string_view::npos) {
      --open;
    }
  }
  return line.size();
}

// Statements, one on each: without comments, empty lines and texts that stand alone.
std::vector<PythonLine> statements_of(const std::string& text) {
  std::vector<PythonLine> lines;
  std::istringstream stream(text);
  std::string line, until;
  int number = 0, open = 0;
  while (std::getline(stream, line)) {
    ++number;
    if (!until.empty()) {
      if (line.find(until) != std::string::npos) until.clear();
      continue;
    }
    const std::size_t indent = line.find_first_not_of(" \t\r");
    if (indent == std::string::npos) continue;
    const std::size_t quotes = std::min(line.find("\"\"\""), line.find("'''"));
    if (quotes != std::string::npos && quotes <= indent + 1) {
      const std::string mark = line.substr(quotes, 3);
      if (line.find(mark, quotes + 3) == std::string::npos) until = mark;
      continue;
    }
    const bool goes_on = open > 0;
    line.resize(end_of_code(line, open));
    const std::size_t last = line.find_last_not_of(" \t\r");
    if (last == std::string::npos || (last < indent && !goes_on)) continue;
    line.resize(last + 1);
    if (goes_on && !lines.empty()) {
      lines.back().text += " " + line.substr(std::min(indent, line.size()));
    } else {
      lines.push_back({number, indent, line.substr(indent)});
    }
  }
  return lines;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Reads a class and what is indented below it.
class PaxClassReader {
 public:
  PaxClassReader(const std::vector<PythonLine>& lines, const std::string& file)
      : lines_(lines), file_(file) {}

  std::vector<PaxFileClass> run() {
    bool registered = false;
    while (next_ < lines_.size()) {
      const PythonLine& line = lines_[next_++];
      if (line.indent > 0) continue;
      if (line.text.starts_with("class ")) {
        read_class(line, registered);
      } else if (!line.text.starts_with('@')) {
        note_constant(line, module_);
      }
      registered = line.text.starts_with('@') && line.text.find("register") != std::string::npos;
    }
    return std::move(classes_);
  }

 private:
  [[nodiscard]] Place place(const PythonLine& line) const {
    return {file_, fmt::format("line {}", line.number)};
  }

  // "NAME = 3", "NAME: int = 3": where the value begins; npos: no such statement.
  static std::size_t value_of(const std::string& text, std::string& name) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || text.compare(equals, 2, "==") == 0) {
      return std::string::npos;
    }
    name = trimmed(text.substr(0, std::min(equals, text.find(':'))));
    const auto of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), of_name);
    return is_name ? equals + 1 : std::string::npos;
  }

  // Of a module, where other statements say nothing.
  void note_constant(const PythonLine& line, Constants& names) const {
    std::string name;
    const std::size_t value = value_of(line.text, name);
    if (value == std::string::npos) return;
    try {
      names[name] =
          OwnedJson(PaxExpression(trimmed(line.text.substr(value)), names, place(line)).value());
    } catch (const InputError&) {
      return;
    }
  }

  void read_class(const PythonLine& head, bool registered) {
    const std::size_t open = head.text.find('('), close = head.text.rfind(')');
    const std::size_t colon = head.text.rfind(':');
    PaxFileClass made;
    made.registered = registered;
    made.name = trimmed(head.text.substr(6, std::min(open, colon) - 6));
    if (open < close && close != std::string::npos) {
      std::istringstream bases(head.text.substr(open + 1, close - open - 1));
      for (std::string base; std::getline(bases, base, ',');) {
        base = trimmed(base);
        made.bases.push_back(base.substr(base.rfind('.') + 1));
      }
    }
    Constants names = module_;
    const std::size_t indent = next_ < lines_.size() ? lines_[next_].indent : 0;
    while (next_ < lines_.size() && lines_[next_].indent > 0) {
      const PythonLine& line = lines_[next_++];
      if (line.text.starts_with("def ")) {
        read_method(line, made.name);
      } else if (line.indent == indent) {
        read_constant(line, names, made);
      }
    }
    classes_.push_back(std::move(made));
  }

  void read_constant(const PythonLine& line, Constants& names, PaxFileClass& made) const {
    for (const char* word : {"@", "assert ", "pass", "class "}) {
      if (line.text.starts_with(word)) return;
    }
    std::string name;
    const std::size_t value = value_of(line.text, name);
    if (value == std::string::npos) {
      throw InputError(place(line), "expected a constant of the class: NUM_LAYERS = 24");
    }
    Place at{file_, fmt::format("line {}: {}", line.number, name)};
    Json read = PaxExpression(trimmed(line.text.substr(value)), names, at).value();
    names[name] = OwnedJson(read);
    std::erase_if(made.constants, [&](const Entry& entry) { return entry.key == name; });
    made.constants.push_back({name, name, OwnedJson(std::move(read)), std::move(at)});
  }

  // task() of classes that are known here does what their rows say.
  void read_method(const PythonLine& head, const std::string& owner) {
    const bool is_task = head.text.starts_with("def task(");
    const std::vector<std::string> known = pax_experiment_names();
    const bool is_known =
        std::find(known.begin(), known.end(), owner) != known.end() || is_pax_class(owner);
    while (next_ < lines_.size() && lines_[next_].indent > head.indent) {
      const PythonLine& line = lines_[next_++];
      if (!is_task || is_known || changes_no_cost(line.text)) continue;
      throw InputError(
          place(line),
          fmt::format("what task() of {} does here is not read: \"{}\"; say it by constants, or of "
                      "the experiment with --set",
                      owner, line.text));
    }
  }

  static bool is_pax_class(const std::string& name) {
    const auto in = [&](const std::vector<PaxClass>& table) {
      return std::any_of(table.begin(), table.end(),
                         [&](const PaxClass& one) { return one.name == name; });
    };
    return in(pax_base_classes()) || in(pax_c4_classes());
  }

  static bool changes_no_cost(const std::string& text) {
    constexpr std::array passed = std::to_array<std::string_view>(
        {"task_p = super().task()", "return task_p", "model_p = task_p.model",
         "task_p.train.num_train_steps", "task_p.train.save_", "task_p.train.eval_",
         "task_p.train.summary_", "task_p.train.profiler_", "task_p.summary_verbosity",
         "task_p.train.learner.repeat_prefix_sep", "model_p.params_init",
         "model_p.decoder_tpl.eos_id", "model_p.decoder_tpl.seqlen"});
    return std::any_of(passed.begin(), passed.end(),
                       [&](std::string_view one) { return text.starts_with(one); });
  }

  const std::vector<PythonLine>& lines_;
  const std::string& file_;
  std::size_t next_ = 0;
  Constants module_;
  std::vector<PaxFileClass> classes_;
};

}  // namespace

bool is_pax_python(const std::string& text) {
  return text.starts_with("class ") || text.find("\nclass ") != std::string::npos;
}

std::vector<PaxFileClass> read_pax_python(const std::string& text, const std::string& file) {
  const std::vector<PythonLine> lines = statements_of(text);
  return PaxClassReader(lines, file).run();
}

}  // namespace shardsim
