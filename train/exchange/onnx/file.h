#pragma once
/// Files in the format ONNX (onnx.ai, onnx/onnx.proto): protobuf messages, written and read without a
/// library.
///
/// A message is a sequence of fields. A field begins with a number, 8 · (number of the field) + wire type:
/// 0: an integer (varint: seven bits in each byte, the lowest first; the high bit of a byte says that another
/// follows); 2: a length, then as many bytes, such as a text or a message; 5: four bytes.
/// Source: protobuf.dev/programming-guides/encoding.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/io/formats/safetensors.h"

namespace heed {

/// A message in protobuf's wire format.
struct ProtobufMessage {
  std::string bytes;

  ProtobufMessage& integer(std::uint32_t field, std::int64_t value);
  ProtobufMessage& number(std::uint32_t field, float value);
  ProtobufMessage& text(std::uint32_t field, std::string_view value);  ///< a text or a message
  /// Only the header of a field whose `size` bytes follow.
  ProtobufMessage& header(std::uint32_t field, std::uint64_t size);

 private:
  void varint(std::uint64_t value);
};

/// The number of an element type in onnx.proto. Throws Error(failed) for a type that is not used.
std::int64_t onnx_type(DType type);

/// A dimension: a number, or the name of a size that differs from call to call.
using OnnxDimension = std::variant<std::int64_t, std::string>;

struct OnnxAttribute;

/// A graph that is being written: nodes, tensors (views, which must exist until it is written), inputs
/// and outputs.
class OnnxGraph {
 public:
  /// An operator whose results have the names `outputs`. An empty name among the inputs stands for
  /// an optional input that is left out.
  void node(std::string_view op, std::span<const std::string> inputs,
            std::span<const std::string> outputs, std::span<const OnnxAttribute> attributes = {});
  /// An empty shape is left unspecified.
  void input(const std::string& name, DType type, std::span<const OnnxDimension> shape);
  void output(const std::string& name, DType type, std::span<const OnnxDimension> shape);
  void tensor(TensorView view) { tensors_.push_back(std::move(view)); }

  /// The message without tensors, as part of another graph.
  const std::string& bytes() const { return message_.bytes; }
  const std::vector<TensorView>& tensors() const { return tensors_; }

  /// Passes the bytes of a file to `sink`, tensor by tensor. Throws Error(usage) if they are more than
  /// protobuf's limit of 2 GiB; `name` is the file's, for the message.
  void write(const std::string& name,
             const std::function<void(std::span<const std::byte>)>& sink) const;

 private:
  ProtobufMessage message_;
  std::vector<TensorView> tensors_;
};

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>, const OnnxGraph*> value;
};

/// The tensors of an ONNX file, read into memory.
class OnnxFile {
 public:
  /// Throws Error(bad_input), with the file and the place in the message, if the bytes are no message, if
  /// the model has no graph or another operator set than 17, or if the type, the shape and the number
  /// of bytes of a tensor disagree.
  static OnnxFile read(const std::filesystem::path& path);
  static OnnxFile parse(std::string bytes, const std::string& name);

  const std::vector<TensorView>& tensors() const& { return tensors_; }
  const std::vector<TensorView>& tensors() && = delete;

 private:
  OnnxFile() = default;

  std::unique_ptr<const std::string> bytes_;  // the views point into it
  std::vector<TensorView> tensors_;
};

}  // namespace heed
