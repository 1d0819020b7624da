/// A GGUF file. Accepted values and tensors must lie within the file and survive a round trip.
#include <optional>

#include "tests/fuzz/target.h"
#include "train/exchange/gguf/gguf_file.h"

namespace heed::fuzz {

void target(std::string_view input) {
  std::optional<GgufFile> file;
  try {
    file = GgufFile::parse(input, "x.gguf");
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, "x.gguf: ");
    throw;
  }
  std::string again = gguf_header(file->metadata, file->tensors);
  for (const GgufTensor& tensor : file->tensors) {
    require(tensor.bytes.size() == gguf_size(tensor.type, tensor.shape),
            "the bytes match the shape");
    again += tensor.bytes;
    again.resize((again.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment, '\0');
  }
  require(again.size() == input.size(), "the file has the size of the input");
  must_work([&] {
    const GgufFile read = GgufFile::parse(again, "again.gguf");
    require(gguf_header(read.metadata, read.tensors) == gguf_header(file->metadata, file->tensors),
            "the values are read back");
    for (std::size_t i = 0; i < read.tensors.size(); ++i)
      require(read.tensors[i].bytes == file->tensors[i].bytes, "the elements are read back");
  });
}

}  // namespace heed::fuzz
