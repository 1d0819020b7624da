#include "train/exchange/ctranslate2/ctranslate2_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/exchange/byte_cursor.h"

namespace heed {

namespace {

constexpr std::uint32_t ct2_version = 6;
/// The types in the order of their numbers.
constexpr std::array ct2_types{DType::f32, DType::i8, DType::i16, DType::i32, DType::f16};

/// A name, with its length and a NUL at the end.
void append_ct2_name(std::string& out, std::string_view name) {
  append_number(out, static_cast<std::uint16_t>(name.size() + 1));
  out += name;
  out += '\0';
}

std::string read_ct2_name(ByteCursor& from, std::string_view what) {
  const std::string_view text = from.take(from.number<std::uint16_t>(what), what);
  if (text.size() < 2 || text.find('\0') != text.size() - 1)
    from.fail(fmt::format("{} is empty or does not end with a single NUL", what));
  return std::string(text.substr(0, text.size() - 1));
}

TensorView read_ct2_tensor(ByteCursor& from) {
  TensorView view;
  view.name = read_ct2_name(from, "the name of a tensor");
  const std::string name = shown(view.name, 200);
  const auto rank = from.number<std::uint8_t>(name);
  std::uint64_t size = 1;
  bool overflow = false;
  for (int axis = 0; axis < rank; ++axis) {
    view.shape.push_back(from.number<std::uint32_t>(name));
    overflow |= __builtin_mul_overflow(size, static_cast<std::uint64_t>(view.shape.back()), &size);
  }
  const auto type = from.number<std::uint8_t>(name);
  if (type >= ct2_types.size())
    from.fail(fmt::format("{} has the type {}, which heed does not read", name, type));
  view.dtype = ct2_types[type];
  overflow |= __builtin_mul_overflow(size, size_of(view.dtype), &size);
  const auto bytes = from.number<std::uint32_t>(name);
  if (overflow || size != bytes)
    from.fail(fmt::format("{} of shape [{}] and type {} has {} bytes", name,
                          fmt::join(view.shape, ", "), name_of(view.dtype), bytes));
  view.bytes = as_bytes(from.take(bytes, name));
  return view;
}

}  // namespace

void write_ctranslate2(FileWriter& file, std::string_view specification, std::uint32_t revision,
                       std::span<const TensorView> tensors, const TensorAliases& aliases) {
  std::string head;
  append_number(head, ct2_version);
  append_ct2_name(head, specification);
  append_number(head, revision);
  append_number(head, static_cast<std::uint32_t>(tensors.size()));
  for (const TensorView& tensor : tensors) {
    if (tensor.bytes.size() > std::numeric_limits<std::uint32_t>::max())
      throw Error(Exit::usage,
                  "ctranslate2: {} has {} bytes, but the format allows less than 4 GiB",
                  tensor.name, tensor.bytes.size());
    const auto type = std::ranges::find(ct2_types, tensor.dtype);
    if (type == ct2_types.end())
      throw Error(Exit::failed, "ctranslate2: {} is {}", tensor.name, tensor.description());
    append_ct2_name(head, tensor.name);
    append_number(head, static_cast<std::uint8_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape)
      append_number(head, static_cast<std::uint32_t>(extent));
    append_number(head, static_cast<std::uint8_t>(type - ct2_types.begin()));
    append_number(head, static_cast<std::uint32_t>(tensor.bytes.size()));
    file.write(head);
    file.write(tensor.bytes);
    head.clear();
  }
  append_number(head, static_cast<std::uint32_t>(aliases.size()));
  for (const auto& [name, of] : aliases) {
    append_ct2_name(head, name);
    append_ct2_name(head, of);
  }
  file.write(head);
}

CTranslate2File CTranslate2File::parse(std::string bytes, const std::string& name) {
  CTranslate2File file;
  file.bytes = std::make_unique<const std::string>(std::move(bytes));
  ByteCursor from(*file.bytes, name);
  if (const auto version = from.number<std::uint32_t>("the version"); version != ct2_version)
    from.fail(fmt::format("version {} of CTranslate2's format; heed reads version {}", version,
                          ct2_version));
  file.specification = read_ct2_name(from, "the name of the specification");
  file.revision = from.number<std::uint32_t>("the revision");
  std::set<std::string> names;
  const auto require_new = [&](const std::string& each) {
    if (!names.insert(each).second) from.fail(shown(each, 200) + " occurs twice");
  };
  for (auto left = from.number<std::uint32_t>("the number of tensors"); left > 0; --left) {
    file.tensors.push_back(read_ct2_tensor(from));
    require_new(file.tensors.back().name);
  }
  for (auto left = from.number<std::uint32_t>("the number of aliases"); left > 0; --left) {
    std::string alias = read_ct2_name(from, "an alias"), of = read_ct2_name(from, "an alias");
    if (!names.contains(of))
      from.fail(
          fmt::format("{} is an alias of {}, which is missing", shown(alias, 200), shown(of, 200)));
    require_new(alias);
    file.aliases.emplace_back(std::move(alias), std::move(of));
  }
  if (from.left() > 0) from.fail(fmt::format("data after the last alias ({} B)", from.left()));
  return file;
}

CTranslate2File CTranslate2File::read(const std::filesystem::path& path) {
  return parse(read_bytes(path, std::uint64_t{1} << 40), path.string());
}

}  // namespace heed
