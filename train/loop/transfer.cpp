#include "train/loop/transfer.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/run/run_record.h"

HEED_BEGIN

namespace {

/// "encoder.layers.0.norm1.weight" → "encoder.layers.0.*"
std::string group_of(const std::string& name) {
  const std::size_t layers = name.find(".layers.");
  if (layers == std::string::npos) return name;
  return name.substr(0, name.find('.', layers + 8)) + ".*";
}

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> groups;
  for (const std::string& name : names) {
    std::string group = group_of(name);
    if (groups.empty() || groups.back() != group) groups.push_back(std::move(group));
  }
  return fmt::format("{}", fmt::join(groups, ", "));
}

/// Whether the tensor belongs to the output projection and has a different number of labels in the
/// file.
bool has_other_labels(const SafetensorsFile& file, const NamedTensor& t) {
  const TensorView* const view = file.find(t.name);
  if (view == nullptr || !t.name.starts_with("output.")) return false;
  const Shape& shape = t.tensor.shape();
  return view->shape.size() == static_cast<std::size_t>(shape.rank()) && view->shape[0] != shape[0];
}

}  // namespace

std::vector<std::string> TransferReport::text() const {
  std::vector<std::string> lines;
  for (const auto& [what, names] :
       {std::pair("transferred", &transferred), std::pair("initialised", &initialised),
        std::pair("unused", &unused)}) {
    if (!names->empty())
      lines.push_back(fmt::format("model.init_from: {}: {}", what, listed(*names)));
  }
  return lines;
}

TransferReport transfer_weights(const std::string& run, Model& model) {
  const RunFolder other{run};
  const std::filesystem::path folder = find_weights(other, ""), path = folder / "model.safetensors";
  TransferReport result;
  result.weights = check_file(folder, "model.safetensors");
  check_files(other);  // throws if a tokenizer has changed
  require_same_tokenizers(other, result.weights);
  const SafetensorsFile file = SafetensorsFile::read(path);
  Parameters fit;
  for (NamedTensor& t : model.state()) {
    const bool other_labels = has_other_labels(file, t);
    (other_labels || file.find(t.name) == nullptr ? result.initialised : result.transferred)
        .push_back(t.name);
    if (!other_labels) fit.push_back(std::move(t));
  }
  for (const TensorView& view : file.tensors()) {
    if (std::ranges::find(result.transferred, view.name) == result.transferred.end() &&
        !is_scale(file, view.name))
      result.unused.push_back(view.name);
  }
  try {
    load_weights(file, fit, path.string(), {.strict = false});
  } catch (const Error& e) {
    if (e.code != Exit::bad_input) throw;
    throw Error(e.code, "model.init_from: the weights do not fit this config's model: {}",
                e.what());
  }
  return result;
}

Parameters not_frozen(const Model& model, std::span<const std::string> patterns) {
  Parameters trainable = model.parameters();
  for (const std::string& pattern : patterns) {
    const auto matches = [&](const NamedTensor& t) {
      return fnmatch(pattern.c_str(), t.name.c_str(), 0) == 0;
    };
    if (std::ranges::none_of(model.parameters(), matches)) {
      throw Error(Exit::usage,
                  "model.freeze: no parameter matches \"{}\"; heed show lists the names, "
                  "such as {}",
                  pattern, model.parameters().back().name);
    }
    std::erase_if(trainable, matches);
  }
  if (trainable.empty()) throw Error(Exit::usage, "model.freeze: no parameter is left to train");
  return trainable;
}

HEED_END
