/// The field table, the schema and the messages after plugins have registered names, and the errors
/// of the loader. (tests/install/plugins tests libraries that load.)
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "nn/layers/activations.h"
#include "nn/layers/mixer.h"
#include "nn/options.h"
#include "nn/plugin_entry.h"
#include "train/config/fields.h"
#include "train/config/plugins.h"
#include "train/tasks/task.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(plugins)

namespace {

const std::string copy = "data: {synthetic: {name: copy}}\n";

std::string refusal(const std::string& text, Exit status,
                    const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "exp.yaml", overrides);
  } catch (const Error& error) {
    BOOST_TEST((error.code == status), error.what());
    return error.what();
  }
  return "accepted";
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

/// A temporary file with these bytes. The destructor removes it.
class File {
 public:
  explicit File(const std::string& bytes) {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("heed-plugin-" + std::to_string(::getpid()) + "-" + std::to_string(++number) + ".so");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(registered_names_become_choices) {
  const Field* const before = find_field("model.mixer");
  BOOST_TEST(before->open);
  BOOST_TEST(!find_field("model.norm")->open);
  BOOST_TEST(refusal(copy + "model: {mixer: open.gate}\n", Exit::usage) ==
             "exp.yaml:2:16: model.mixer: expected one of attention, lstm, gru, conv, got "
             "\"open.gate\" (a name with a dot is registered by a plugin: is its library "
             "listed in plugins?)");
  add_mixer("open.gate", [](const ModelOptions&, AttentionScope, Init&) { return nullptr; });
  add_activation("open.same", [](const Tensor& x) { return x; });
  add_task("open.lines",
           {.name = "open.lines",
            .help = "lines to lines",
            .architecture = Architecture::encoder_decoder,
            .metrics = {Metric::loss}},
           [](const Config&) { return std::unique_ptr<Task>(); });
  BOOST_TEST(!has(before->choices, "open.gate"));  // a row found earlier is not updated
  BOOST_TEST(has(find_field("model.mixer")->choices, "open.gate"));
  BOOST_TEST(has(find_field("model.activation")->choices, "open.same"));
  BOOST_TEST(has(find_field("task")->choices, "open.lines"));

  const Config config = parse_config(
      copy + "task: open.lines\nmodel: {mixer: open.gate, activation: open.same}\n", "exp.yaml");
  BOOST_TEST(name_of(config.task) == "open.lines");
  BOOST_TEST(name_of(config.model->mixer) == "open.gate");
  BOOST_TEST(name_of(config.model->activation) == "open.same");
  BOOST_TEST((info_of(config.task).metrics == std::vector{Metric::loss}));
  const Config again = parse_config(write_yaml(config), "exp.yaml");
  BOOST_TEST(differences(config, again).empty());
  BOOST_TEST(config_json(config).at("model").at("mixer") == "open.gate");
}

BOOST_AUTO_TEST_CASE(checks_between_keys_apply_to_registered_names) {
  const std::string gate = copy + "model: {mixer: open.gate, ";
  BOOST_TEST(refusal(gate + "positions: alibi}\n", Exit::usage) ==
             "exp.yaml:2:38: model.positions: alibi is only for mixer: attention");
  BOOST_TEST(refusal(gate + "attention: {pattern: window}}\n", Exit::usage)
                 .find("model.attention.pattern: only for model.mixer: attention") !=
             std::string::npos);
  BOOST_TEST(refusal(gate + "positions: learned}\n", Exit::usage) == "accepted");
  BOOST_TEST(refusal(copy + "task: open.lines\ntrain: {best: bleu}\n", Exit::usage)
                 .find("bleu is only for task: seq2seq") != std::string::npos);
  BOOST_TEST(refusal(copy + "task: open.lines\ndecode: {beam: 3}\n", Exit::usage)
                 .find("only for task: seq2seq, lm") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(schema_accepts_registered_names) {
  const nlohmann::json model =
      nlohmann::json::parse(json_schema()).at("properties").at("model").at("properties");
  for (const char* key : {"mixer", "activation"}) {
    const nlohmann::json& either = model.at(key).at("anyOf");
    BOOST_TEST(either.at(0).at("enum").size() >= 1u);
    BOOST_TEST(either.at(1).at("pattern") ==
               "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)+$");
  }
  BOOST_TEST(model.at("norm").contains("enum"));
}

BOOST_AUTO_TEST_CASE(files_other_than_plugins_are_refused) {
  const auto at = [](const std::string& name) { return "plugins: [" + name + "]\n" + copy; };
  const auto refused = [&](const File& file) {
    const std::string place = "exp.yaml:1:10: plugin " + file.name() + ": ";
    const std::string message = refusal(at(file.name()), Exit::bad_input);
    BOOST_TEST(message.starts_with(place), message);
    return message.substr(std::min(place.size(), message.size()));
  };
  BOOST_TEST(refusal(at("/nowhere/mine.so"), Exit::bad_input)
                 .starts_with("exp.yaml:1:10: plugin /nowhere/mine.so: "));
  BOOST_TEST(refused(File("text")) == "not a shared library");
  BOOST_TEST(refused(File("")) == "not a shared library");
  const std::string elf =
      "\x7f"
      "ELF and more ";
  BOOST_TEST(refused(File(elf)).starts_with("it registers nothing"));
  const std::string ours = HEED_PLUGIN_MARK "heed " HEED_VERSION " (headers ";
  BOOST_TEST(
      refused(File(elf + HEED_PLUGIN_MARK "heed 9.8 (headers x), y, float\n"))
          .starts_with(
              "it was built for heed 9.8 (headers x), y, float, but this is heed " HEED_VERSION
              " (headers "));
  BOOST_TEST(refused(File(elf + ours)).starts_with("it was built for heed " HEED_VERSION));
  BOOST_TEST(refusal(copy, Exit::bad_input, {"plugins=/nowhere/mine.so"})
                 .starts_with("command line: plugins=/nowhere/mine.so: plugin /nowhere/mine.so: "));
}

BOOST_AUTO_TEST_CASE(invalid_config_loads_no_library) {
  BOOST_TEST(refusal("plugins: [/nowhere/mine.so]\nplugins: [x]\n", Exit::usage).find("/nowhere") ==
             std::string::npos);
  BOOST_TEST(refusal("plugins: {a: b}\n" + copy, Exit::usage).find("plugins: expected a library") !=
             std::string::npos);
  // The list on the command line replaces that of the file.
  BOOST_TEST(refusal("plugins: [/nowhere/mine.so]\n" + copy, Exit::usage, {"plugins=[]"}) ==
             "accepted");
  const Config left =
      parse_config("plugins: [/nowhere/mine.so]\n" + copy, "exp.yaml", {}, false, PluginUse::leave);
  BOOST_TEST((left.plugins == std::vector<std::string>{"/nowhere/mine.so"}));
}

BOOST_AUTO_TEST_SUITE_END()
