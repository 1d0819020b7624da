#include "train/program/help/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "autograd/io/utf8.h"
#include "train/config/fields.h"
#include "train/program/commands.h"
#include "train/program/help/option_parts.h"
#include "train/run/version.h"

namespace heed {

namespace {

/// The characters that roff does not print literally, and their escapes.
constexpr std::array<std::pair<char, std::string_view>, 7> escapes{{{'\\', "\\e"},
                                                                    {'-', "\\-"},
                                                                    {'\'', "\\(aq"},
                                                                    {'`', "\\(ga"},
                                                                    {'^', "\\(ha"},
                                                                    {'~', "\\(ti"},
                                                                    {'"', "\\(dq"}}};

/// Escapes text so that roff prints its characters literally.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = std::max<std::size_t>(utf8_length(text, at), 1);
    const auto* const escape =
        std::ranges::find(escapes, text[at], &std::pair<char, std::string_view>::first);
    if (length > 1)
      out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(utf8_decode(text, at, length)));
    else
      out += escape == escapes.end() ? text.substr(at, 1) : escape->second;
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

std::vector<const CLI::Option*> options_of(const CLI::App& command, bool positional) {
  return command.get_options(
      [=](const CLI::Option* option) { return option->get_positional() == positional; });
}

std::string synopsis(const CLI::App& command) {
  std::string line = bold("heed " + command.get_name()) + " [" + italic("options") + "]";
  for (const CLI::Option* option : options_of(command, true)) {
    const std::string name = italic(value_name(*option)) + (repeats(*option) ? " ..." : "");
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line;
}

std::string option_list(const std::vector<const CLI::Option*>& options) {
  std::string out;
  for (const CLI::Option* option : options) {
    std::vector<std::string> names;
    for (const std::string& name : names_of(*option)) names.push_back(bold(name));
    out += fmt::format(".TP\n{}", fmt::join(names, ", "));
    if (const std::string value = value_name(*option); !value.empty())
      out += (names.empty() ? "" : " ") + italic(value);
    out += "\n" + plain(option->get_description()) +
           (option->get_required() && !names.empty() ? " (required)" : "") + "\n";
  }
  return out;
}

std::string commands(const CLI::App& app) {
  std::string out = ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    std::vector<const CLI::Option*> options = options_of(*command, false);
    std::erase(options, command->get_help_ptr());  // all commands have --help
    out += ".SS " + plain(command->get_name()) + "\n" + synopsis(*command) + "\n.PP\n" +
           plain(command->get_description()) + ".\n" + option_list(options_of(*command, true)) +
           option_list(options) + details(command->get_footer());
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

std::string man_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".\\\" Printed by: heed man\n.TH HEED 1 \"\" \"heed {}\" \"User Commands\"\n", version);
  out += ".nh\n.ad l\n.SH NAME\nheed \\- trains Transformers from a YAML file, on the CPU\n";
  out += ".SH SYNOPSIS\n" + bold("heed") + " " + italic("COMMAND") + " [" + italic("argument") +
         " ...]\n";
  out += ".SH DESCRIPTION\n" + plain(app.get_description()) + "\n" + details(app.get_footer());
  out += ".SH OPTIONS\n" + option_list(options_of(app, false));
  return out + commands(app) + key_section() + std::string(files);
}

}  // namespace heed
