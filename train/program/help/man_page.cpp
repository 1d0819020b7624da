#include "train/program/help/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "autograd/io/utf8.h"
#include "train/run/version.h"

namespace heed {

namespace {

/// Escapes text so that roff prints its characters literally.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (const std::size_t length = utf8_length(text, at); length > 1) {
      const char32_t code = utf8_decode(text, at, length);
      out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(code));
      at += length;
      continue;
    }
    ++at;
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      default:
        out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

/// Formats lines as paragraphs, and lines that begin with two spaces as indented examples.
std::string details(const std::string& text) {
  std::string out;
  bool in_example = false;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const bool example = line.starts_with("  ");
    if (in_example && !example) out += ".RE\n.fi\n";
    const bool paragraph = begin == 0 || example != in_example || line.starts_with("Example");
    if (paragraph) out += ".PP\n";
    if (example && !in_example) out += ".nf\n.RS\n";
    in_example = example;
    out += plain(example ? line.substr(2) : line) + "\n";
  }
  return out + (in_example ? ".RE\n.fi\n" : "");
}

std::string synopsis(const CommandEntry& command) {
  std::string line = bold("heed " + command.name) + " [" + italic("options") + "]";
  for (const Argument& a : command.positionals) {
    const std::string name = italic(a.value) + (a.repeats ? " ..." : "");
    line += a.required ? " " + name : " [" + name + "]";
  }
  return line;
}

/// Formats arguments. With `commands`, they are those of a command, and --help is omitted, because
/// all commands have it.
std::string argument_list(const std::vector<Argument>& all, bool commands) {
  std::string out;
  for (const Argument& a : all) {
    if (commands && std::ranges::find(a.names, "--help") != a.names.end()) continue;
    std::vector<std::string> names;
    for (const std::string& name : a.names) names.push_back(bold(name));
    out += fmt::format(".TP\n{}", fmt::join(names, ", "));
    if (!a.is_flag()) out += (names.empty() ? "" : " ") + italic(a.value);
    out += "\n" + plain(a.help) + (a.required && !a.names.empty() ? " (required)" : "") + "\n";
  }
  return out;
}

std::string commands(const CommandTree& tree) {
  std::string out = ".SH COMMANDS\n";
  for (const CommandEntry& command : tree.commands) {
    out += ".SS " + plain(command.name) + "\n" + synopsis(command) + "\n.PP\n" +
           plain(command.help) + ".\n";
    out += argument_list(command.positionals, true) + argument_list(command.options, true) +
           details(command.details);
  }
  return out;
}

std::string key_section() {
  std::string out =
      ".SH CONFIG\n"
      "A config is a YAML file; the command line overrides its keys by\n" +
      italic("key=value") +
      ", with a dot between a section and its key. These are all the keys, with their values and "
      "defaults.\n";
  std::string open;
  for (const Field& field : fields()) {
    const std::string section =
        field.key.substr(0, std::min(field.key.find('.'), field.key.size()));
    if (const Section* const about = find_section(section); about && section != open)
      out += ".SS " + plain(section) + "\n" + plain(about->help) + "\n";
    open = section;
    out += ".TP\n" + bold(field.key) + "\n" + plain(field.help) + "\n(" +
           plain(values_text(field)) + ")\n";
  }
  return out;
}

constexpr std::string_view files = R"(.SH FILES
.TP
\fIruns/NAME/config.yaml\fR
the config of a run, every key with its value
.TP
\fIruns/NAME/run.json\fR
how the run was started: version, compiler, processor, BLAS, seed, command, checksums of the data
.TP
\fIruns/NAME/metrics.jsonl\fR
the metrics of training, validation and test, one JSON object per line
.TP
\fIruns/NAME/train.log\fR
the messages of the run
.TP
\fIruns/NAME/checkpoints/\fR, \fIbest\fR, \fIlast\fR, \fIaverage/\fR
the weights and the state of training, as safetensors files
.TP
\fIruns/NAME/tensorboard/\fR
event files for TensorBoard, if train.tensorboard is set
)";

}  // namespace

std::string man_page(const CommandTree& tree) {
  std::string out = fmt::format(
      ".\\\" Printed by: heed man\n.TH HEED 1 \"\" \"heed {}\" \"User Commands\"\n", version);
  out += ".nh\n.ad l\n.SH NAME\nheed \\- trains Transformers from a YAML file, on the CPU\n";
  out += ".SH SYNOPSIS\n" + bold("heed") + " " + italic("COMMAND") + " [" + italic("argument") +
         " ...]\n";
  out += ".SH DESCRIPTION\n" + plain(tree.help) + "\n" + details(tree.details);
  out += ".SH OPTIONS\n" + argument_list(tree.options, false);
  return out + commands(tree) + key_section() + std::string(files);
}

}  // namespace heed
