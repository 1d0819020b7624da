#include "train/config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>

#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"

namespace heed {
namespace {

constexpr std::size_t max_missing = 100;  ///< maximum number of missing colons reported

// A ValueError is thrown for errors that must end the parse: the rest of the text would be misread
// or take too long.

// ---- what yaml-cpp accepts or misreports -----------------------------------------------------

/// Converts columns in bytes, as yaml-cpp counts them, to columns in characters.
class Columns {
 public:
  explicit Columns(std::string_view text) {
    characters_.reserve(text.size() + 1);
    for (const char c : text) {
      const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      characters_.push_back(characters_.back() + begins);
    }
  }

  /// The column in characters, counted from 1, of the byte at `offset`, which is byte `column`
  /// (from 0) of its line.
  int at(std::size_t offset, int column) const {
    const auto bytes = static_cast<std::size_t>(std::max(column, 0));
    const std::size_t end = std::min(offset, characters_.size() - 1);
    return characters_[end] - characters_[end - std::min(bytes, end)] + 1;
  }

 private:
  std::vector<std::int32_t> characters_{0};  ///< number of characters that begin before each byte
};

/// Throws the first byte that no config may contain: invalid UTF-8, or a control character other
/// than a tab or a line ending. yaml-cpp accepts most of them.
void refuse_flaw(std::string_view text, int source) {
  const auto is_flaw = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F;
  };
  std::size_t control = 0;
  while (control < text.size() &&
         (!is_flaw(text[control]) || text.substr(control).starts_with("\r\n")))
    ++control;
  const std::size_t broken = invalid_utf8(text), at = std::min(control, broken);
  if (at == text.size()) return;
  const std::string_view before = text.substr(0, at);
  const auto column = static_cast<int>(at - (before.rfind('\n') + 1));  // npos + 1 is 0
  throw ValueError{{source, static_cast<int>(std::ranges::count(before, '\n')) + 1,
                    Columns(before).at(at, column)},
                   at == broken ? "invalid UTF-8"
                                : fmt::format("control character 0x{:02x}",
                                              static_cast<unsigned char>(text[at]))};
}

/// The offset after an anchor (`&name` and white space) at `at`; npos if the text ends there, and
/// `at` if there is no anchor. Needed because yaml-cpp's mark of a node is that of its anchor.
std::size_t skip_anchor(std::string_view text, std::size_t at) {
  constexpr std::string_view blank = " \t\r\n";
  if (!text.substr(std::min(at, text.size())).starts_with('&')) return at;
  const std::size_t name_end = std::min(text.find_first_of(blank, at), text.size());
  return text.find_first_not_of(blank, name_end);
}

/// The offset after the quoted scalar that begins at `at`; npos if its closing quote is missing,
/// which yaml-cpp accepts, and `at` if there is no quote.
std::size_t skip_quoted(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(std::min(at, text.size()));
  if (!rest.starts_with('"') && !rest.starts_with('\'')) return at;
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || !text.substr(i + 1).starts_with('\'')) return i + 1;
      ++i;  // '' is an apostrophe
    }
  }
  return std::string_view::npos;
}

/// True if the white space at the start of the line (counted from 1) contains a tab: yaml-cpp then
/// reports a misleading error.
bool tab_indents(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    text.remove_prefix(text.find('\n') + 1);  // npos + 1 is 0: the text has no such line
  }
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

// ---- the tree -------------------------------------------------------------------------------

/// The size of a node and of all nodes below it, including keys, with aliases expanded.
struct Extent {
  std::size_t nodes = 1;
  std::size_t bytes = 0;
  int depth = 1;
};

Extent extent_of(const YamlNode& node) {
  Extent sum{1, node.text.size(), 1};
  const auto add = [&sum](const YamlNode& child) {
    const Extent part = extent_of(child);
    sum.nodes += part.nodes;
    sum.bytes += part.bytes;
    sum.depth = std::max(sum.depth, part.depth + 1);
  };
  for (const YamlNode& item : node.items) add(item);
  for (const YamlEntry& entry : node.entries) {
    sum.nodes += 1;
    sum.bytes += entry.key.size();
    add(entry.value);
  }
  return sum;
}

/// Builds the tree from yaml-cpp's events. Enforces the limits at each event, so the tree never
/// exceeds them.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, int source, Problems& problems, std::string_view key)
      : text_(text), source_(source), problems_(problems), key_(key), columns_(text) {}

  YamlNode root;

  Place place_of(const YAML::Mark& mark) const {
    const auto at = static_cast<std::size_t>(std::max(mark.pos, 0));
    return {source_, mark.line + 1, columns_.at(at, mark.column)};
  }

  /// Must be called only after a complete parse: after a syntax error, these messages would
  /// mislead.
  void report_missing_colons() const {
    for (const auto& [place, key] : no_colon_) {
      problems_.add(place, key, "expected a colon after the key");
    }
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // A second document is refused before its content is read: on some documents, such as ",",
    // yaml-cpp loops forever.
    if (++documents_ == 2) {
      throw ValueError{place_of(mark),
                       "text after the end of the document (a config is one document)"};
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.place = place_of(mark);
    count(node.place, {});
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw ValueError{place_of(mark), "an alias inside its own anchor"};
    }
    scalar_end_ = text_.find_first_of(" \t\r\n", begin_of(mark));
    count(place_of(mark), found->second.extent);
    YamlNode node = found->second.node;
    node.place = place_of(mark);  // errors name the place of the alias
    finish(std::move(node), YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.place = place_of(mark);
    node.quoted = tag == "!";
    node.text = value;
    check_tag(mark, tag, node.quoted);
    const std::size_t begin = begin_of(mark);
    scalar_end_ = node.quoted ? skip_quoted(text_, begin) : begin + value.size();
    if (scalar_end_ == std::string_view::npos) {
      throw ValueError{node.place, "a quote that is never closed"};
    }
    count(node.place, {1, value.size(), 1});
    finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    bool keep = true;  ///< false: the key is not text, is a duplicate or lacks a colon
    std::string key;
    Place key_place;
    std::size_t key_end = 0;  ///< offset of the end of the key in the text
    std::unordered_map<std::string, Place> seen;
  };
  struct Anchored {
    YamlNode node;
    Extent extent;
  };

  void count(Place place, Extent extent) {
    nodes_ += extent.nodes;
    bytes_ += extent.bytes;
    if (nodes_ > yaml_max_nodes) {
      throw ValueError{place,
                       fmt::format("more than {} values after expanding aliases", yaml_max_nodes)};
    }
    if (bytes_ > yaml_max_bytes)
      throw ValueError{place,
                       fmt::format("aliases expand to more than {} KiB", yaml_max_bytes / 1024)};
    if (static_cast<int>(frames_.size()) + extent.depth - 1 > yaml_max_depth) {
      throw ValueError{place, fmt::format("nested deeper than {} levels", yaml_max_depth)};
    }
  }

  /// The offset of a node in the text, after its anchor.
  std::size_t begin_of(const YAML::Mark& mark) const {
    const auto at = static_cast<std::size_t>(std::max(mark.pos, 0));
    return std::min(skip_anchor(text_, at), text_.size());
  }

  /// Reports explicit tags. For a node without a tag, yaml-cpp passes "?" or, if the node is
  /// quoted, "!"; the text at the mark begins with "!" only if this tag is explicit.
  void check_tag(const YAML::Mark& mark, const std::string& tag, bool quoted) {
    bool written = tag != "?";
    if (quoted) written = text_.substr(begin_of(mark)).starts_with('!');
    if (written) problems_.add(place_of(mark), path(), "tags (such as !!str) are not allowed");
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    Frame frame;
    frame.node.kind = kind;
    frame.node.place = place_of(mark);
    frame.anchor = anchor;
    check_tag(mark, tag, false);
    frames_.push_back(std::move(frame));
    count(frames_.back().node.place, {});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    finish(std::move(frame.node), frame.anchor);
  }

  /// Keeps a complete node if it has an anchor, and moves it into its parent.
  void finish(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) keep(node, anchor);
    if (frames_.empty()) {
      root = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::list) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      set_key(frame, std::move(node));
    } else {
      if (node.kind == YamlNode::Kind::null) {
        // A null value, which may be empty in the text, is reported at its key.
        node.place = frame.key_place;
        if (!colon_follows(frame.key_end)) {
          if (no_colon_.size() < max_missing) no_colon_.emplace_back(frame.key_place, path());
          frame.keep = false;
        }
      }
      if (frame.keep) {
        frame.node.entries.push_back({std::move(frame.key), frame.key_place, std::move(node)});
      }
      frame.has_key = false;
    }
  }

  /// Copies a node for its aliases. The content of nested anchors is copied once for each level.
  void keep(const YamlNode& node, YAML::anchor_t anchor) {
    const Extent extent = extent_of(node);
    kept_ += extent.nodes;
    if (kept_ > yaml_max_nodes) {
      throw ValueError{node.place,
                       fmt::format("anchors contain more than {} values", yaml_max_nodes)};
    }
    anchors_[anchor] = {node, extent};
  }

  void set_key(Frame& frame, YamlNode node) {
    frame.keep = node.kind == YamlNode::Kind::scalar;
    if (!frame.keep) {
      problems_.add(node.place, path(), "a key must be text");
      frame.key = "?";
      frame.has_key = true;
      return;
    }
    frame.key = node.text;
    frame.key_place = node.place;
    frame.key_end = scalar_end_;
    frame.has_key = true;
    const auto [first, fresh] = frame.seen.try_emplace(node.text, node.place);
    if (!fresh) {
      problems_.add(node.place, path(),
                    source_ > 0 ? "duplicate key"
                                : "duplicate key (first at " + problems_.show(first->second) + ")");
      frame.keep = false;
    }
  }

  /// Whether a colon follows the key. yaml-cpp reads "train" alone on its line as "train:".
  bool colon_follows(std::size_t key_end) const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", key_end);
    return next != std::string_view::npos && text_[next] == ':';
  }

  /// The keys that lead to the current node, joined by dots.
  std::string path() const {
    std::string joined(key_);
    for (const Frame& frame : frames_) {
      if (!frame.has_key) continue;
      if (!joined.empty()) joined += '.';
      joined += frame.key;
    }
    return joined;
  }

  std::string_view text_;
  int source_;
  Problems& problems_;
  std::string_view key_;
  Columns columns_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t scalar_end_ = 0;  ///< offset of the end of the last scalar
  std::size_t nodes_ = 0;
  std::size_t kept_ = 0;  ///< number of nodes copied for anchors
  std::size_t bytes_ = 0;
  int documents_ = 0;
  std::vector<std::pair<Place, std::string>> no_colon_;
};

}  // namespace

const YamlEntry* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &YamlEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

YamlNode::Found YamlNode::place_of(std::string_view path) const {
  const YamlNode* node = this;
  Place place_found;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const YamlEntry* entry = node->find(path.substr(begin, end - begin));
    if (entry == nullptr) return {place_found, begin, false};
    node = &entry->value;
    place_found = node->kind == Kind::scalar ? node->place : entry->place;
    begin = end + 1;
  }
  return {place_found, std::string_view::npos, true};
}

std::optional<YamlNode> parse_yaml(std::string_view text, int source, Problems& problems,
                                   std::string_view key) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.size() > yaml_max_bytes) {
    problems.add({source, 1, 1}, "", fmt::format("larger than {} KiB", yaml_max_bytes / 1024));
    return std::nullopt;
  }
  Builder builder(text, source, problems, key);
  try {
    refuse_flaw(text, source);
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    builder.report_missing_colons();
  } catch (const ValueError& flaw) {
    problems.add(flaw.place, "", flaw.message);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const Place place = builder.place_of(error.mark);
    const bool tab = tab_indents(text, place.line);
    problems.add(place, "",
                 "not valid YAML: " + shown(error.msg, 200) +
                     (tab ? " (indent with spaces, not tabs)" : ""));
    return std::nullopt;
  }
  return std::move(builder.root);
}

std::string yaml_text(std::string_view text) {
  constexpr std::string_view safe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  // Some parsers read the words and numbers of YAML 1.1 as other types.
  const std::string word = lowercase(text);
  const auto words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  const bool plain = !text.empty() && text.find_first_not_of(safe) == std::string_view::npos &&
                     std::string_view("-.0123456789").find(text[0]) == std::string_view::npos &&
                     std::ranges::find(words, word) == words.end();
  if (plain) return std::string(text);
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return '"' + for_terminal(quoted) + '"';  // its \\xNN and \\uNNNN are escapes of YAML, too
}

}  // namespace heed
