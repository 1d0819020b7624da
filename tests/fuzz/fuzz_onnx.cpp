/// A file of ONNX. Accepted tensors must lie within the file, and survive a round trip.
#include <algorithm>
#include <optional>

#include "tests/fuzz/target.h"
#include "train/exchange/onnx/file.h"

namespace heed::fuzz {

void target(std::string_view input) {
  std::optional<OnnxFile> file;
  try {
    file.emplace(OnnxFile::parse(std::string(input), "x.onnx"));
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, "x.onnx: ");
    throw;
  }
  OnnxGraph graph;
  std::size_t bytes = 0;
  for (const TensorView& tensor : file->tensors()) {
    bytes += tensor.bytes.size();
    graph.tensor(tensor);
  }
  require(bytes <= input.size(), "all bytes are in the file");
  must_work([&] {
    std::string written;
    graph.write("x.onnx", [&](std::span<const std::byte> part) {
      written.append(reinterpret_cast<const char*>(part.data()), part.size());
    });
    const OnnxFile again = OnnxFile::parse(written, "again.onnx");
    const auto same = [](const TensorView& a, const TensorView& b) {
      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
             std::ranges::equal(a.bytes, b.bytes);
    };
    require(std::ranges::equal(file->tensors(), again.tensors(), same), "tensors are read back");
  });
}

}  // namespace heed::fuzz
