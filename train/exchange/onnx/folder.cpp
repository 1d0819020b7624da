#include <fmt/format.h>

#include "autograd/base/error.h"
#include "train/exchange/export.h"
#include "train/exchange/huggingface/folder.h"
#include "train/exchange/model_card.h"
#include "train/exchange/onnx/config.h"
#include "train/exchange/onnx/model.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

/// Calls f(path, graph) for each file of ONNX; clients look for them in the subfolder onnx.
template <class F>
void for_each_path(const ExportedModel& exported, const fs::path& folder, F f) {
  for (const bool int8 : {false, true}) {
    if (int8 && exported.precision != "int8") continue;
    for_each_onnx_file(exported.config, exported.state, int8,
                       [&](const std::string& name, const OnnxGraph& graph) {
                         f(folder / "onnx" / (name + (int8 ? "_quantized.onnx" : ".onnx")), graph);
                       });
  }
}

void write_onnx_folder(const ExportedModel& exported, const fs::path& folder) {
  require_onnx(exported.config);
  if (exported.config.model->segments > 1 &&
      exported.tokenizers.source->special_ids().eos != Tokenizer::eos)
    throw Error(Exit::usage,
                "onnx: segments are found by </s>, which has another id in an imported vocabulary");
  write_small_files(exported,
                    onnx_config(exported.config, sizes_of(exported.tokenizers),
                                exported.tokenizers.target->special_ids()),
                    folder);
  create_folders(folder / "onnx");
  for_each_path(exported, folder, [](const fs::path& path, const OnnxGraph& graph) {
    write_file_durably(path, [&](FileWriter& file) {
      graph.write(path.filename().string(),
                  [&](std::span<const std::byte> bytes) { file.write(bytes); });
    });
  });
}

std::vector<std::string> check_onnx_folder(const ExportedModel& exported, const fs::path& folder) {
  std::vector<std::string> wrong;
  for_each_path(exported, folder, [&](const fs::path& path, const OnnxGraph& graph) {
    const OnnxFile file = OnnxFile::read(path);
    for (const std::string& name : differing_tensors(graph.tensors(), file.tensors()))
      wrong.push_back(path.filename().string() + ": " + name);
  });
  return wrong;
}

}  // namespace

ExportFormat onnx_format() {
  return {
      "onnx",
      "onnx/*.onnx for ONNX Runtime and transformers.js, and the small files that these read; "
      "int8: also *_quantized.onnx",
      "",
      false,
      {"float32", "int8"},
      write_onnx_folder,
      check_onnx_folder,
      has_model_card,
      "python3 -c \"import glob, sys, onnxruntime as o; [print(f, [i.name for i in "
      "o.InferenceSession(f).get_inputs()]) for f in glob.glob(sys.argv[1] + '/onnx/*.onnx')]\" "
      "{}"};
}

HEED_END
