#include "train/run/safetensors_header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/base/message_text.h"

namespace heed {
namespace {

/// Takes the header's words one by one (nlohmann's SAX interface) and stops at the first that does
/// not belong where it stands, so that no memory goes into what is not a header.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  SafetensorsHeader take() { return std::move(header_); }

  // ---- what nlohmann::json calls; each returns true to go on ----
  bool start_object(std::size_t) {
    switch (place_) {
      case Place::before:
        return go(Place::top);
      case Place::top_value:
        if (is_metadata_) return go(Place::metadata);
        entry_ = Entry{};
        return go(Place::tensor);
      default:
        return refuse("an object");
    }
  }
  bool end_object() {
    switch (place_) {
      case Place::tensor:
        return finish_tensor(), go(Place::top);
      case Place::metadata:
        return go(Place::top);
      default:
        return go(Place::after);
    }
  }
  bool key(std::string& key) {
    switch (place_) {
      case Place::top:
        if (names_.size() >= safetensors_most_names) fail(too_many());
        if (!names_.insert(key).second)
          fail(fmt::format("\"{}\" stands there twice", shown(key, 200)));
        name_ = key;
        is_metadata_ = key == "__metadata__";
        return go(Place::top_value);
      case Place::metadata:
        if (header_.metadata.size() >= safetensors_most_names) fail(too_many());
        if (header_.metadata.contains(key))
          fail(fmt::format("__metadata__: \"{}\" stands there twice", shown(key, 200)));
        metadata_key_ = key;
        return go(Place::metadata_value);
      default:
        return tensor_key(key);
    }
  }
  bool string(std::string& text) {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(metadata_key_, std::move(text));
      return go(Place::metadata);
    }
    if (place_ != Place::dtype) return refuse("a text");
    entry_.dtype = dtype_from_name(text);
    if (!entry_.dtype) fail(fmt::format("{}: unknown dtype \"{}\"", quoted_name(), shown(text)));
    return go(Place::tensor);
  }
  bool start_array(std::size_t) {
    if (place_ == Place::shape) return go(Place::in_shape);
    if (place_ == Place::offsets) return go(Place::in_offsets);
    return refuse("a list");
  }
  bool end_array() { return go(Place::tensor); }
  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::in_shape) {
      if (entry_.shape->size() == safetensors_highest_rank)
        fail(fmt::format("{}: more than {} dimensions", quoted_name(), safetensors_highest_rank));
      if (number > INT64_MAX)
        fail(fmt::format("{}: dimension {} is too large", quoted_name(), number));
      entry_.shape->push_back(static_cast<std::int64_t>(number));
      return true;
    }
    if (place_ != Place::in_offsets) return refuse("a number");
    if (entry_.offsets->size() == 2)
      fail(fmt::format("{}: data_offsets must be two numbers", quoted_name()));
    entry_.offsets->push_back(number);
    return true;
  }
  bool number_integer(std::int64_t number) {
    return fail(fmt::format("{}: {}{} is negative", quoted_name(), number == 0 ? "-" : "", number));
  }
  bool number_float(double, const std::string& text) {
    return fail(fmt::format("{}: {} is not a whole number that fits 64 bits", quoted_name(), text));
  }
  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("true or false"); }
  bool binary(nlohmann::json::binary_t&) { return refuse("binary data"); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception&) {
    return fail(fmt::format("byte {} of it is not valid JSON", byte));
  }

 private:
  enum class Place {
    before,
    top,
    top_value,
    metadata,
    metadata_value,
    tensor,
    dtype,
    shape,
    in_shape,
    offsets,
    in_offsets,
    after
  };
  struct Entry {
    std::optional<DType> dtype;
    std::optional<std::vector<std::int64_t>> shape;
    std::optional<std::vector<std::uint64_t>> offsets;
  };

  bool go(Place next) {
    place_ = next;
    return true;
  }
  [[noreturn]] bool fail(const std::string& what) const {
    throw Error(Exit::bad_input, fmt::format("{}: header: {}", file_, what));
  }
  [[noreturn]] bool refuse(std::string_view what) const {
    fail(fmt::format("{}: {} does not belong there", quoted_name(), what));
  }
  static std::string too_many() {
    return fmt::format("more than {} names", safetensors_most_names);
  }
  std::string quoted_name() const { return fmt::format("\"{}\"", shown(name_, 200)); }

  bool tensor_key(const std::string& key) {
    const auto once = [&](auto& part, Place next) {
      if (part) fail(fmt::format("{}: {} stands there twice", quoted_name(), key));
      part.emplace();
      return go(next);
    };
    if (key == "dtype") return once(entry_.dtype, Place::dtype);
    if (key == "shape") return once(entry_.shape, Place::shape);
    if (key == "data_offsets") return once(entry_.offsets, Place::offsets);
    fail(fmt::format("{}: unknown key \"{}\"", quoted_name(), shown(key)));
  }

  void finish_tensor() {
    if (!entry_.dtype || !entry_.shape || !entry_.offsets)
      fail(fmt::format("{}: dtype, shape or data_offsets is missing", quoted_name()));
    if (entry_.offsets->size() != 2)
      fail(fmt::format("{}: data_offsets must be two numbers", quoted_name()));
    const std::uint64_t begin = (*entry_.offsets)[0], end = (*entry_.offsets)[1];
    if (begin > end)
      fail(fmt::format("{}: begins at byte {} and ends at {}", quoted_name(), begin, end));
    std::int64_t elements = 1, bytes = 0;
    bool overflow = false;
    for (const std::int64_t extent : *entry_.shape)
      overflow |= __builtin_mul_overflow(elements, extent, &elements);
    overflow |= __builtin_mul_overflow(elements, dtype_size(*entry_.dtype), &bytes);
    if (overflow)
      fail(fmt::format("{}: shape [{}] has more elements than fit 64 bits", quoted_name(),
                       fmt::join(*entry_.shape, ", ")));
    if (static_cast<std::uint64_t>(bytes) != end - begin)
      fail(fmt::format("{}: {} [{}] takes {} bytes, but data_offsets give {}", quoted_name(),
                       dtype_name(*entry_.dtype), fmt::join(*entry_.shape, ", "), bytes,
                       end - begin));
    header_.entries.push_back({name_, *entry_.dtype, std::move(*entry_.shape), begin, end});
  }

  const std::string& file_;
  SafetensorsHeader header_;
  Place place_ = Place::before;
  std::set<std::string> names_;
  std::string name_, metadata_key_;
  bool is_metadata_ = false;
  Entry entry_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& name) {
  HeaderReader reader(name);
  // nlohmann::json takes a NUL for the end and would not look at what follows.
  if (const auto nul = json.find('\0'); nul != std::string_view::npos)
    throw Error(Exit::bad_input,
                fmt::format("{}: header: byte {} of it is not valid JSON", name, nul + 1));
  nlohmann::json::sax_parse(json, &reader);
  return reader.take();
}

}  // namespace heed
