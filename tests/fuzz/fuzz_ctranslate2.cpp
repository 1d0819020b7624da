/// A model.bin of CTranslate2. An accepted file must survive a round trip byte for byte.
#include <optional>

#include "tests/fuzz/target.h"
#include "train/exchange/ctranslate2/ctranslate2_file.h"

namespace heed::fuzz {

void target(std::string_view input) {
  std::optional<CTranslate2File> file;
  try {
    file.emplace(CTranslate2File::parse(std::string(input), "model.bin"));
  } catch (const Error& error) {
    require_refusal(error, Exit::bad_input, "model.bin: ");
    throw;
  }
  for (const TensorView& tensor : file->tensors)
    require(
        tensor.bytes.size() == static_cast<std::uint64_t>(tensor.size()) * size_of(tensor.dtype),
        "the bytes match the shape");
  must_work([&] {
    const std::filesystem::path path = scratch() / "model.bin";
    write_file_durably(path, [&](FileWriter& writer) {
      write_ctranslate2(writer, file->specification, file->revision, file->tensors, file->aliases);
    });
    require(get(path) == input, "the bytes are written again");
  });
}

}  // namespace heed::fuzz
