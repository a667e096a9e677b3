#include "hlo/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardsim {
namespace {

// Of an array with its padding, and of a tuple, in bytes: no device holds as much, and sums of many
// stay within 64 bits.
constexpr std::int64_t most_array_bytes = std::int64_t{1} << 45;
constexpr std::int64_t most_element_bits = 1024;
constexpr int deepest_tuple = 200;

std::optional<DType> parse_element_type(std::string_view name, const HloSource& source) {
  if (name == "token" || name == "opaque") return std::nullopt;
  // 8-bit floats that no other format has.
  if (name == "f8e3m4" || name == "f8e4m3" || name == "f8e4m3b11fnuz") return DType::f8;
  if (name == "f8e8m0fnu") return DType::f8_e8m0;
  if (name == "f8e4m3fn") return DType::f8_e4m3;
  if (name == "f4e2m1fn") return DType::f4_e2m1;
  if (const auto dtype = parse_dtype(name)) return dtype;
  source.fail(name, fmt::format("unknown element type \"{}\"", name));
}

// "(8,128)" of T(8,128), with "*" for a combined dimension.
std::vector<std::int64_t> parse_tile(std::string_view text, const HloSource& source) {
  std::vector<std::int64_t> tile;
  for (const std::string_view part : split_list(text)) {
    tile.push_back(part == "*" ? combined_dimension : parse_integer(part, source));
    const std::int64_t size = tile.back();
    if (size != combined_dimension && (size <= 0 || size > most_array_bytes)) {
      source.fail(part, "a tile's dimension out of range");
    }
  }
  return tile;
}

// What follows the colon of a layout: T(..)(..) tiles, E(n) element bits, S(n) memory space; other
// letters with brackets (dimension levels, tail padding, physical shapes) do not change the size.
void parse_layout_tail(std::string_view text, const HloSource& source, HloLayout& layout) {
  HloCursor cursor(text);
  char letter = '\0';
  while (!cursor.at_end()) {
    if (cursor.peek() != '(') {
      letter = cursor.peek();
      cursor.advance();
      continue;
    }
    const std::string_view argument = cursor.bracketed();
    if (letter == 'T') layout.tiles.push_back(parse_tile(argument, source));
    if (letter == 'E') {
      const std::int64_t bits = parse_integer(without_brackets(argument), source);
      if (bits < 0 || bits > most_element_bits) source.fail(argument, "element bits out of range");
      layout.element_bits = static_cast<int>(bits);
    }
    if (letter == 'S') {
      layout.memory_space = static_cast<int>(parse_integer(without_brackets(argument), source));
    }
  }
}

HloLayout parse_layout(std::string_view text, std::size_t rank, const HloSource& source) {
  HloLayout layout;
  const std::string_view inner = without_brackets(text);
  const std::size_t colon = inner.find(':');
  layout.minor_to_major = parse_integers(inner.substr(0, colon), source);
  std::vector<std::int64_t> sorted = layout.minor_to_major;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != rank || sorted[i] != static_cast<std::int64_t>(i)) {
      source.fail(text, fmt::format("layout {} does not order {} dimensions", text, rank));
    }
  }
  if (colon != std::string_view::npos) parse_layout_tail(inner.substr(colon + 1), source, layout);
  return layout;
}

double product_of(const std::vector<std::int64_t>& sizes) {
  double product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<double>(size);
  return product;
}

// In memory; more than most_array_bytes where it is more than that.
Bytes array_bytes(const HloShape& shape) {
  if (!shape.dtype || shape.element_count() == 0) return Bytes(0);
  std::vector<std::int64_t> physical;
  const auto& order = shape.layout.minor_to_major;
  for (std::size_t i = 0; i < shape.dims.size(); ++i) {
    const std::size_t dim =
        order.empty() ? i : static_cast<std::size_t>(order[shape.dims.size() - 1 - i]);
    physical.push_back(shape.dims[dim]);
  }
  for (const auto& tile : shape.layout.tiles) {
    apply_tile(tile, physical);
    if (product_of(physical) > static_cast<double>(most_array_bytes))
      return Bytes(most_array_bytes + 1);
  }
  const auto elements = static_cast<std::int64_t>(product_of(physical));
  if (shape.layout.element_bits > 0) {
    return Bytes(ceil_div(elements * shape.layout.element_bits, 8));
  }
  // Without E(4), elements of less than a byte take a whole one.
  return Bytes(elements * size_of(*shape.dtype).count());
}

HloShape parse_array(std::string_view text, const HloSource& source) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos) {
    source.fail(text, fmt::format("expected a shape, found \"{}\"", text.substr(0, 40)));
  }
  HloShape shape;
  shape.dtype = parse_element_type(text.substr(0, open), source);
  HloCursor cursor(text, open);
  std::int64_t elements = 1;
  for (std::string_view dim : split_list(cursor.bracketed())) {
    // A dynamic dimension, "<=8", is held at its bound.
    if (dim.substr(0, 2) == "<=") dim.remove_prefix(2);
    const std::int64_t size = parse_integer(dim, source);
    if (size < 0 || (size > 0 && elements > most_array_bytes / size)) {
      source.fail(text, "an array of more than 2^45 elements");
    }
    elements *= size;
    shape.dims.push_back(size);
  }
  if (cursor.peek() == '{')
    shape.layout = parse_layout(cursor.bracketed(), shape.dims.size(), source);
  return shape;
}

HloShape parse_nested(std::string_view text, const HloSource& source, int depth) {
  text = trim_blanks(text);
  if (text.empty() || text.front() != '(') return parse_array(text, source);
  if (depth > deepest_tuple) source.fail(text, "tuples nested too deep");
  HloShape shape;
  shape.is_tuple = true;
  for (const std::string_view part : split_list(text)) {
    shape.elements.push_back(parse_nested(part, source, depth + 1));
  }
  return shape;
}

void collect_arrays(const HloShape& shape, std::vector<const HloShape*>& out) {
  if (!shape.is_tuple) out.push_back(&shape);
  for (const HloShape& element : shape.elements) collect_arrays(element, out);
}

}  // namespace

std::int64_t HloShape::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  return count;
}

Bytes HloShape::logical_bytes() const {
  Bytes total;
  for (const HloShape* array : arrays_of(*this)) {
    if (array->dtype) total += storage_bytes(array->element_count(), *array->dtype);
  }
  return total;
}

Bytes HloShape::bytes() const {
  Bytes total;
  for (const HloShape* array : arrays_of(*this)) total += array_bytes(*array);
  return total;
}

HloShape parse_shape(std::string_view text, const HloSource& source) {
  HloShape shape = parse_nested(text, source, 0);
  Bytes sum;
  for (const HloShape* array : arrays_of(shape)) {
    sum += array_bytes(*array);
    if (sum > Bytes(most_array_bytes)) source.fail(text, "arrays of more than 32 TiB");
  }
  return shape;
}

std::vector<const HloShape*> arrays_of(const HloShape& shape) {
  std::vector<const HloShape*> arrays;
  collect_arrays(shape, arrays);
  return arrays;
}

std::int64_t parse_integer(std::string_view text, const HloSource& source) {
  const std::string_view digits = trim_blanks(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    source.fail(text, fmt::format("expected a number, found \"{}\"", digits.substr(0, 40)));
  }
  return number;
}

std::vector<std::int64_t> parse_integers(std::string_view list, const HloSource& source) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split_list(list))
    numbers.push_back(parse_integer(part, source));
  return numbers;
}

}  // namespace shardsim
