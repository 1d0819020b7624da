/// A page that runs a model: one HTML file with the graphs of ONNX, the small files beside them, and the programs that
/// run them (ONNX Runtime Web, tokenizers.js). Each file is a script element that no browser executes: base64 of gzip.
#include <fmt/format.h>

#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/io/sha256.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/decode/search.h"
#include "train/exchange/export.h"
#include "train/exchange/huggingface/folder.h"
#include "train/exchange/onnx/config.h"
#include "train/exchange/onnx/model.h"
#include "train/exchange/page/template.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

/// A file of a package of npm, in the only version that this page has been tested with.
struct RuntimeFile {
  const char *package, *version, *file, *sha256;
  bool of_texts;  ///< pages of images do not need it
};
constexpr RuntimeFile runtime_files[] = {
    {"onnxruntime-web", "1.30.0", "ort.wasm.bundle.min.mjs",
     "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90", false},
    {"onnxruntime-web", "1.30.0", "ort-wasm-simd-threaded.wasm",
     "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2", false},
    {"@huggingface/tokenizers", "0.2.0", "tokenizers.min.mjs",
     "258e46332101335ce8d95aed7745b19ac3b46d37f3e159a89cf894c2ea9b1d3a", true}};

constexpr std::size_t smallest_piece = 4096;
constexpr std::uint64_t largest_model = 256U << 20;  // browsers limit a text to 512 MB

/// The kind of page: pairs, continuation or image. Throws Error(usage) if no page shows the task.
const char* kind_of(const Config& config) {
  const TaskKind task = config.task;
  const InputKind input = config.data.input;
  if (task == TaskKind::lm) return "continuation";
  if ((task == TaskKind::seq2seq || task == TaskKind::text2text) && input == InputKind::text)
    return "pairs";
  if (task == TaskKind::classify && input == InputKind::image) return "image";
  throw Error(
      Exit::usage,
      "page: task {} with data.input: {} has no page, which translates text (seq2seq, text2text), "
      "continues it (lm) or classifies images (classify with data.input: image); export to onnx",
      name_of(task), name_of(input));
}

/// A file of the runtime from the folder in which npm has installed its packages.
std::string runtime_file(const fs::path& folder, const RuntimeFile& wanted) {
  const fs::path path = folder / "node_modules" / wanted.package / "dist" / wanted.file;
  const std::string install = fmt::format("install it: npm install --prefix {} {}@{}",
                                          folder.string(), wanted.package, wanted.version);
  if (!path_exists(path))
    throw Error(Exit::bad_input, "--runtime: {}: no such file; {}", path.string(), install);
  std::string bytes = read_bytes(path, 64U << 20);
  if (const std::string sum = sha256_hex(bytes); sum != wanted.sha256)
    throw Error(
        Exit::bad_input,
        "--runtime: {}: not the file of {} {}, the version that pages contain (SHA-256 {}, expected {}); {}",
        path.string(), wanted.package, wanted.version, sum, wanted.sha256, install);
  return bytes;
}

/// What the script reads of the run. Its other files are those of the export to onnx.
nlohmann::ordered_json settings_of(const ExportedModel& exported, const char* kind) {
  const Config& config = exported.config;
  std::int64_t numbers = 0;
  for (const NamedTensor& each : exported.state) numbers += each.tensor.value().size();
  const ModelSizes sizes = model_sizes(config);
  const bool text = std::string_view(kind) == "continuation";
  return {
      {"name", config.name},
      {"kind", kind},
      {"about",
       fmt::format(
           "A Transformer with {:.3g} million parameters ({}), trained with heed. Task: {}; weights: {}.",
           static_cast<double>(numbers) / 1e6, exported.precision, name_of(config.task),
           exported.weights)},
      {"max_length", output_limit(config.decode, text ? 0 : sizes.positions)},
      {"context", text ? sizes.context : 0},  // 0: no limit
      {"first_label", exported.tokenizers.target->first_ordinary()}};
}

/// Calls visit(name, bytes) for each file of the page. A graph is a list of pieces, NAME.json; large tensors
/// are pieces, so that an embedding that encoder and decoder share is stored once. Throws Error(usage) if
/// the model does not fit.
void for_each_page_file(const ExportedModel& exported,
                        const std::function<void(const std::string&, std::string_view)>& visit) {
  const Config& config = exported.config;
  const char* const kind = kind_of(config);
  require_onnx(config);
  for (const RuntimeFile& each : runtime_files)
    if (!each.of_texts || config.data.input == InputKind::text)
      visit(each.file, runtime_file(exported.runtime, each));
  visit("page.json", settings_of(exported, kind).dump());
  for (const auto& [name, text] :
       small_files(exported, onnx_config(config, sizes_of(exported.tokenizers),
                                         exported.tokenizers.target->special_ids())))
    visit(name, text);
  std::uint64_t size = 0;
  std::set<std::string> pieces;
  for_each_onnx_file(
      config, exported.state, exported.precision == "int8",
      [&](const std::string& name, const OnnxGraph& graph) {
        auto list = nlohmann::ordered_json::array();
        std::string small;
        const auto add = [&](std::string_view piece) {
          list.push_back(sha256_hex(piece).substr(0, 16));
          if (pieces.insert(list.back()).second) visit(list.back(), piece);
        };
        graph.write(name, [&](std::span<const std::byte> part) {
          if ((size += part.size()) > largest_model)
            throw Error(Exit::usage, "page: the model has more than {} MiB in {}: export to onnx{}",
                        largest_model >> 20, exported.precision,
                        exported.precision == "int8" ? "" : ", or use --int8");
          const std::string_view text(reinterpret_cast<const char*>(part.data()), part.size());
          if (text.size() < smallest_piece) {
            small += text;
            return;
          }
          add(std::exchange(small, {}));
          add(text);
        });
        add(small);
        visit(name + ".json", list.dump());
      });
}

void write_page(const ExportedModel& exported, const fs::path& target) {
  write_file_durably(target, [&](FileWriter& file) {
    file.write(page_mark);
    file.write(page_start);
    for_each_page_file(exported, [&](const std::string& name, std::string_view bytes) {
      file.write(page_element(name, bytes));
    });
    file.write(page_end);
  });
}

std::vector<std::string> check_page(const ExportedModel& exported, const fs::path& target) {
  const std::string page = read_bytes(target);
  std::vector<std::string> wrong;
  for_each_page_file(exported, [&](const std::string& name, std::string_view bytes) {
    if (page_file(page, name) != bytes) wrong.push_back(name);
  });
  return wrong;
}

bool is_page_of_heed(const fs::path& target) {
  std::string start(page_mark.size(), '\0');
  FileReader file(target);
  start.resize(file.read_some(start));
  return start == page_mark;
}

}  // namespace

ExportFormat page_format() {
  return {
      .name = "page",
      .help =
          "an HTML page that translates, continues or classifies in a browser, without a network; needs --runtime",
      .extension = ".html",
      .alone = true,
      .precisions = {"int8", "float32"},
      .write = write_page,
      .check = check_page,
      .is_export = is_page_of_heed,
      .client = "xdg-open {}",
      .runtime = "onnxruntime-web@1.30.0 @huggingface/tokenizers@0.2.0"};
}

HEED_END
