#include "data/tokenizers/piece_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "autograd/base/error.h"

namespace heed {
namespace {

/// One field of a protocol-buffer message. `bytes` is empty for a number.
struct Field {
  std::uint64_t number = 0;  ///< number of the field in its message
  unsigned wire = 0;  ///< type: 0 a number, 1 eight bytes, 2 a length and bytes, 5 four bytes
  std::string_view bytes = {};
  std::uint64_t value = 0;  ///< of a number
};

constexpr std::uint64_t use_field = 200;  // PieceUse
constexpr unsigned kNumber = 0, kEight = 1, kBytes = 2, kFour = 5;

std::optional<std::uint64_t> take_number(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Removes the first field of a message and returns it; returns nullopt if it cannot be read.
std::optional<Field> take_field(std::string_view& from) {
  const auto tag = take_number(from);
  if (!tag) return std::nullopt;
  Field field{*tag >> 3, static_cast<unsigned>(*tag & 7)};
  std::optional<std::uint64_t> size = 0;
  if (field.wire == kNumber) {
    const auto value = take_number(from);
    if (!value) return std::nullopt;
    field.value = *value;
  } else if (field.wire == kBytes) {
    size = take_number(from);
  } else if (field.wire == kEight || field.wire == kFour) {
    size = field.wire == kEight ? 8 : 4;
  } else {
    return std::nullopt;  // a group, which is obsolete, or an unknown type
  }
  if (!size || *size > from.size()) return std::nullopt;
  field.bytes = from.substr(0, *size);
  from.remove_prefix(field.bytes.size());
  return field;
}

/// Whether a character map is intact. A map contains the size of the trie (four bytes,
/// little-endian), the trie, and the texts it points to, each terminated by a NUL. The trie is a
/// double array as built by darts-clone (Yata 2008): a node of four bytes contains either a value
/// (its highest bit is set) or a label and the offset to its children, which are all in one block
/// of 256. If bit 8 of a node is set, its first child is read as a value regardless of the child's
/// highest bit. Every offset must be within the array and every value within the texts.
bool whole_character_map(std::string_view map) {
  std::uint32_t size = 0;
  if (map.size() <= sizeof size) return map.empty();
  std::memcpy(&size, map.data(), sizeof size);
  map.remove_prefix(sizeof size);
  constexpr std::uint32_t block = 256, node_bytes = 4;
  if (size == 0 || size >= map.size() || size % (block * node_bytes) != 0) return false;
  const std::string_view texts = map.substr(size);
  if (texts.back() != '\0') return false;
  const std::uint32_t nodes = size / node_bytes;
  const auto node_at = [&](std::uint32_t i) {
    std::uint32_t node = 0;
    std::memcpy(&node, map.data() + std::size_t{i} * node_bytes, node_bytes);
    return node;
  };
  const auto value_fits = [&](std::uint32_t node) { return (node & 0x7FFFFFFFu) < texts.size(); };
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t node = node_at(i);
    if (node >> 31 != 0) {
      if (!value_fits(node)) return false;
      continue;
    }
    const std::uint32_t children = i ^ (node >> 10) << ((node & (1u << 9)) >> 6);
    if ((children | (block - 1)) >= nodes) return false;
    if ((node & (1u << 8)) != 0 && !value_fits(node_at(children))) return false;
  }
  return true;
}

/// Whether a message can be read and all its fields with the given number contain bytes for which
/// `holds` returns true.
template <class Holds>
bool whole_message(std::string_view message, std::uint64_t number, Holds holds) {
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field) return false;
    if (field->number == number && (field->wire != kBytes || !holds(field->bytes))) return false;
  }
  return true;
}

/// Whether a normaliser can be read and its character map, field 2, is intact.
bool whole_normaliser(std::string_view message) {
  return whole_message(message, 2, whole_character_map);
}

/// Whether a piece can be read and its text, field 1, contains no NUL. The library builds its index
/// from C strings: it ignores the text after a NUL, and terminates the process at a text that
/// begins with NUL.
bool whole_piece(std::string_view message) {
  return whole_message(
      message, 1, [](std::string_view text) { return text.find('\0') == std::string_view::npos; });
}

}  // namespace

std::string flaw_in_piece_model(std::string_view proto) {
  // A truncated file may be parsed without error, because every prefix that consists of complete
  // fields is a message.
  bool found[6] = {};
  while (!proto.empty()) {
    const auto field = take_field(proto);
    if (!field || field->wire != kBytes) return "not a sentencepiece model, or truncated";
    if (field->number < 6) found[field->number] = true;
    if (field->number == 1 && !whole_piece(field->bytes))
      return "not a sentencepiece model (one of its pieces is broken)";
    if (field->number == use_field && !whole_message(field->bytes, 0, [](auto) { return true; }))
      return "not a sentencepiece model (field 200 is broken)";
    const bool normaliser = field->number == 3 || field->number == 5;  // 5: denormaliser
    if (normaliser && !whole_normaliser(field->bytes))
      return "not a sentencepiece model (its character map is broken)";
  }
  const bool all = found[1] && found[2] && found[3];
  return all ? "" : "not a sentencepiece model, or truncated";
}

namespace {

/// Calls visit(field) for each field of an intact message.
template <class Visit>
void each_field(std::string_view message, Visit visit) {
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field) throw Error(Exit::bad_input, "not a sentencepiece model, or truncated");
    visit(*field);
  }
}

PieceModel::Piece read_piece(std::string_view message) {
  PieceModel::Piece piece;
  each_field(message, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2 && field.wire == kFour)
      std::memcpy(&piece.score, field.bytes.data(), sizeof piece.score);
    if (field.number == 3) piece.type = static_cast<PieceModel::Type>(field.value);
  });
  return piece;
}

}  // namespace

PieceModel read_piece_model(std::string_view proto) {
  constexpr std::uint64_t unigram = 1, bpe = 2;  // TrainerSpec::ModelType
  PieceModel model;
  std::uint64_t type = unigram;
  each_field(proto, [&](const Field& field) {
    if (field.number == 1) model.pieces.push_back(read_piece(field.bytes));
    if (field.number == 2) {
      each_field(field.bytes, [&](const Field& trainer) {
        if (trainer.number == 3) type = trainer.value;
        if (trainer.number == 24) model.whitespace_as_suffix = trainer.value != 0;
        if (trainer.number == 46) model.bos = trainer.bytes;
        if (trainer.number == 47) model.eos = trainer.bytes;
      });
    }
    if (field.number != 3) return;
    each_field(field.bytes, [&](const Field& normaliser) {
      if (normaliser.number == 2) model.character_map = normaliser.bytes;
      if (normaliser.number == 3) model.add_dummy_prefix = normaliser.value != 0;
      if (normaliser.number == 5) model.escape_whitespaces = normaliser.value != 0;
      if (normaliser.number == 4) model.remove_extra_whitespaces = normaliser.value != 0;
    });
  });
  if (type != unigram && type != bpe)
    throw Error(Exit::bad_input,
                "a sentencepiece model of words or characters; expected unigram or bpe");
  model.bpe = type == bpe;
  model.use = read_piece_use(proto).value_or(PieceUse());
  return model;
}

std::optional<PieceUse> read_piece_use(std::string_view proto) {
  std::optional<PieceUse> use;
  each_field(proto, [&](const Field& field) {
    if (field.number != use_field) return;
    use.emplace();
    each_field(field.bytes, [&](const Field& of) {
      if (of.number == 1) use->starts_text = of.value != 0;
      if (of.number == 2) use->ids = of.value;
    });
  });
  return use;
}

namespace {

void put_number(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

void put_number(std::string& to, std::uint64_t field, std::uint64_t value) {
  put_number(to, field << 3 | kNumber);
  put_number(to, value);
}

void put_bytes(std::string& to, std::uint64_t field, std::string_view bytes) {
  put_number(to, field << 3 | kBytes);
  put_number(to, bytes.size());
  to += bytes;
}

}  // namespace

std::string write_piece_model(const PieceModel& model) {
  std::string proto, trainer, normaliser, use;
  for (const PieceModel::Piece& piece : model.pieces) {
    std::string message;
    put_bytes(message, 1, piece.text);
    put_number(message, 2 << 3 | kFour);
    message.append(reinterpret_cast<const char*>(&piece.score), sizeof piece.score);
    put_number(message, 3, static_cast<std::uint64_t>(piece.type));
    put_bytes(proto, 1, message);
  }
  put_number(trainer, 3, model.bpe ? 2 : 1);
  put_number(trainer, 24, model.whitespace_as_suffix ? 1 : 0);
  const bool bytes = std::ranges::find(model.pieces, PieceModel::Type::byte,
                                       &PieceModel::Piece::type) != model.pieces.end();
  put_number(trainer, 35, bytes ? 1 : 0);  // byte_fallback
  put_bytes(trainer, 46, model.bos);
  put_bytes(trainer, 47, model.eos);
  put_bytes(proto, 2, trainer);
  put_bytes(normaliser, 1, model.character_map.empty() ? "identity" : "imported");
  put_bytes(normaliser, 2, model.character_map);
  put_number(normaliser, 3, model.add_dummy_prefix ? 1 : 0);
  put_number(normaliser, 4, model.remove_extra_whitespaces ? 1 : 0);
  put_number(normaliser, 5, model.escape_whitespaces ? 1 : 0);
  put_bytes(proto, 3, normaliser);
  put_number(use, 1, model.use.starts_text ? 1 : 0);
  put_number(use, 2, model.use.ids);
  put_bytes(proto, use_field, use);
  return proto;
}

}  // namespace heed
