#include "train/exchange/onnx/file.h"

#include <bit>
#include <limits>
#include <optional>

#include "autograd/base/error.h"

namespace heed {

namespace {

constexpr std::int64_t ir_version = 8, operator_set = 17;
constexpr std::uint64_t largest_message = std::uint64_t{1} << 31;

// ---- numbers of fields and types (onnx/onnx.proto) -------------------------------------------------

namespace model_field {
constexpr std::uint32_t ir_version = 1, producer = 2, graph = 7, operator_set = 8;
}
namespace operator_set_field {
constexpr std::uint32_t domain = 1, version = 2;
}
namespace graph_field {
constexpr std::uint32_t node = 1, name = 2, tensor = 5, input = 11, output = 12;
}
namespace node_field {
constexpr std::uint32_t input = 1, output = 2, name = 3, op = 4, attribute = 5;
}
namespace attribute_field {
constexpr std::uint32_t name = 1, number = 2, integer = 3, graph = 6, integers = 8, type = 20;
}
namespace attribute_type {
constexpr std::int64_t number = 1, integer = 2, graph = 5, integers = 7;
}
namespace tensor_field {
constexpr std::uint32_t dimension = 1, type = 2, name = 8, bytes = 9;
}
namespace value_field {
constexpr std::uint32_t name = 1, type = 2, tensor_type = 1, element = 1, shape = 2, dimension = 1,
                        dimension_value = 1, dimension_name = 2;
}

constexpr std::pair<DType, std::int64_t> element_types[] = {
    {DType::f32, 1}, {DType::i8, 3}, {DType::i32, 6}, {DType::i64, 7}, {DType::boolean, 9}};

std::string value_info(const std::string& name, DType type,
                       std::span<const OnnxDimension> dimensions) {
  ProtobufMessage shape, tensor, wrapped, info;
  for (const OnnxDimension& dimension : dimensions) {
    ProtobufMessage one;
    if (const auto* const size = std::get_if<std::int64_t>(&dimension))
      one.integer(value_field::dimension_value, *size);
    else
      one.text(value_field::dimension_name, std::get<std::string>(dimension));
    shape.text(value_field::dimension, one.bytes);
  }
  tensor.integer(value_field::element, onnx_type(type));
  if (!dimensions.empty()) tensor.text(value_field::shape, shape.bytes);
  wrapped.text(value_field::tensor_type, tensor.bytes);
  return info.text(value_field::name, name).text(value_field::type, wrapped.bytes).bytes;
}

std::string attribute_message(const OnnxAttribute& attribute) {
  ProtobufMessage message;
  message.text(attribute_field::name, attribute.name);
  const auto set_type = [&](std::int64_t type) { message.integer(attribute_field::type, type); };
  if (const auto* const integer = std::get_if<std::int64_t>(&attribute.value)) {
    message.integer(attribute_field::integer, *integer);
    set_type(attribute_type::integer);
  } else if (const auto* const number = std::get_if<float>(&attribute.value)) {
    message.number(attribute_field::number, *number);
    set_type(attribute_type::number);
  } else if (const auto* const integers =
                 std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    for (const std::int64_t each : *integers) message.integer(attribute_field::integers, each);
    set_type(attribute_type::integers);
  } else {
    const OnnxGraph& graph = *std::get<const OnnxGraph*>(attribute.value);
    message.text(attribute_field::graph,
                 graph.bytes() + ProtobufMessage().text(graph_field::name, attribute.name).bytes);
    set_type(attribute_type::graph);
  }
  return message.bytes;
}

/// A tensor's message up to its bytes.
std::string tensor_header(const TensorView& view) {
  ProtobufMessage message;
  for (const std::int64_t size : view.shape) message.integer(tensor_field::dimension, size);
  message.integer(tensor_field::type, onnx_type(view.dtype)).text(tensor_field::name, view.name);
  return message.header(tensor_field::bytes, view.bytes.size()).bytes;
}

}  // namespace

std::int64_t onnx_type(DType type) {
  for (const auto& [own, number] : element_types)
    if (own == type) return number;
  throw Error(Exit::failed, "[onnx] tensors of type {} are not written", name_of(type));
}

// ---- writing -----------------------------------------------------------------------------------

void ProtobufMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(value));
}

ProtobufMessage& ProtobufMessage::integer(std::uint32_t field, std::int64_t value) {
  varint(std::uint64_t{field} << 3);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::number(std::uint32_t field, float value) {
  varint(std::uint64_t{field} << 3 | 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  return *this;
}

ProtobufMessage& ProtobufMessage::header(std::uint32_t field, std::uint64_t size) {
  varint(std::uint64_t{field} << 3 | 2);
  varint(size);
  return *this;
}

ProtobufMessage& ProtobufMessage::text(std::uint32_t field, std::string_view value) {
  header(field, value.size());
  bytes += value;
  return *this;
}

void OnnxGraph::node(std::string_view op, std::span<const std::string> inputs,
                     std::span<const std::string> outputs,
                     std::span<const OnnxAttribute> attributes) {
  ProtobufMessage node;
  for (const std::string& each : inputs) node.text(node_field::input, each);
  for (const std::string& each : outputs) node.text(node_field::output, each);
  node.text(node_field::name, outputs[0]).text(node_field::op, op);
  for (const OnnxAttribute& each : attributes)
    node.text(node_field::attribute, attribute_message(each));
  message_.text(graph_field::node, node.bytes);
}

void OnnxGraph::input(const std::string& name, DType type, std::span<const OnnxDimension> shape) {
  message_.text(graph_field::input, value_info(name, type, shape));
}

void OnnxGraph::output(const std::string& name, DType type, std::span<const OnnxDimension> shape) {
  message_.text(graph_field::output, value_info(name, type, shape));
}

void OnnxGraph::write(const std::string& name,
                      const std::function<void(std::span<const std::byte>)>& sink) const {
  std::vector<std::string> headers;  // of each tensor, with the header of its field in the graph
  ProtobufMessage graph = message_;
  graph.text(graph_field::name, "heed");
  std::uint64_t size = graph.bytes.size();
  for (const TensorView& view : tensors_) {
    const std::string header = tensor_header(view);
    ProtobufMessage field;
    field.header(graph_field::tensor, header.size() + view.bytes.size());
    headers.push_back(field.bytes + header);
    size += headers.back().size() + view.bytes.size();
  }
  if (size > largest_message - 4096)
    throw Error(
        Exit::usage,
        "{} would have {:.1f} GB, but a file of ONNX has a maximum of 2 GiB: export a smaller "
        "model",
        name, static_cast<double>(size) / 1e9);
  ProtobufMessage set, model;
  set.text(operator_set_field::domain, "").integer(operator_set_field::version, operator_set);
  model.integer(model_field::ir_version, ir_version).text(model_field::producer, "heed");
  model.text(model_field::operator_set, set.bytes).header(model_field::graph, size);
  const auto write_text = [&](std::string_view text) { sink(std::as_bytes(std::span(text))); };
  write_text(model.bytes);
  write_text(graph.bytes);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    write_text(headers[i]);
    sink(tensors_[i].bytes);
  }
}

// ---- reading -----------------------------------------------------------------------------------

namespace {

/// The fields of a message, one after the other.
class Fields {
 public:
  Fields(std::string_view message, const std::string& file) : rest_(message), file_(file) {}

  std::uint32_t number = 0;
  std::uint64_t integer = 0;  ///< value of an integer field
  std::string_view text;      ///< bytes of a field with a length

  /// Reads the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    if (key >> 3 == 0 || key >> 3 > std::numeric_limits<std::uint32_t>::max()) refuse("a field");
    number = static_cast<std::uint32_t>(key >> 3);
    wire_ = key & 7;
    if (wire_ == 0) {
      integer = varint();
    } else if (wire_ == 2) {
      text = take(varint());
    } else if (wire_ == 5) {
      take(4);
    } else if (wire_ == 1) {
      take(8);
    } else {
      refuse("the type of a field");
    }
    return true;
  }
  std::string_view message() const {
    if (wire_ != 2) refuse("the type of a field");
    return text;
  }
  std::int64_t value() const {
    if (wire_ != 0) refuse("the type of a field");
    return static_cast<std::int64_t>(integer);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(Exit::bad_input, "{}: damaged, or no ONNX file: {} is invalid", file_, what);
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) refuse("the end");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse("an integer");
  }

  std::string_view rest_;
  const std::string& file_;
  std::uint64_t wire_ = 0;
};

TensorView tensor_of(std::string_view message, const std::string& file) {
  TensorView view;
  std::int64_t type = 0;
  Fields fields(message, file);
  while (fields.next()) {
    if (fields.number == tensor_field::dimension)
      view.shape.push_back(fields.value());
    else if (fields.number == tensor_field::type)
      type = fields.value();
    else if (fields.number == tensor_field::name)
      view.name = fields.message();
    else if (fields.number == tensor_field::bytes)
      view.bytes = as_bytes(fields.message());
  }
  std::optional<DType> known;
  for (const auto& [own, number] : element_types)
    if (number == type) known = own;
  if (!known) fields.refuse("the type of tensor " + view.name);
  view.dtype = *known;
  std::uint64_t size = size_of(view.dtype);
  for (const std::int64_t each : view.shape) {
    if (each < 0 || (each > 0 && size > largest_message / static_cast<std::uint64_t>(each)))
      fields.refuse("the shape of tensor " + view.name);
    size *= static_cast<std::uint64_t>(each);
  }
  if (size != view.bytes.size()) fields.refuse("the number of bytes of tensor " + view.name);
  return view;
}

}  // namespace

OnnxFile OnnxFile::parse(std::string bytes, const std::string& name) {
  OnnxFile file;
  file.bytes_ = std::make_unique<const std::string>(std::move(bytes));
  std::string_view graph;
  bool known_operators = false;
  Fields model(*file.bytes_, name);
  while (model.next()) {
    if (model.number == model_field::graph) graph = model.message();
    if (model.number != model_field::operator_set) continue;
    Fields set(model.message(), name);
    while (set.next())
      known_operators |= set.number == operator_set_field::version && set.value() == operator_set;
  }
  if (graph.empty()) model.refuse("the graph");
  if (!known_operators) model.refuse("the operator set");
  Fields fields(graph, name);
  while (fields.next())
    if (fields.number == graph_field::tensor)
      file.tensors_.push_back(tensor_of(fields.message(), name));
  return file;
}

OnnxFile OnnxFile::read(const std::filesystem::path& path) {
  return parse(read_bytes(path, largest_message), path.string());
}

}  // namespace heed
