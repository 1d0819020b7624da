#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_fields.h"
#include "autograd/io/message_text.h"
#include "train/exchange/export.h"
#include "train/exchange/import_parts.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

constexpr const char* one_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

/// Marian's table of positions (Vaswani et al. 2017, but sines before cosines): [rows, d].
std::vector<float> sinusoids_in_halves(std::int64_t rows, std::int64_t d) {
  std::vector<float> table;
  const std::int64_t sines = (d + 1) / 2;
  for (std::int64_t p = 0; p < rows; ++p) {
    for (std::int64_t c = 0; c < d; ++c) {
      const std::int64_t i = c < sines ? c : c - sines;
      const double angle = static_cast<double>(p) /
                           std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(d));
      table.push_back(static_cast<float>(c < sines ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

/// Files of 2018 and 2019 name the gain and bias of a layer norm gamma and beta.
std::string current_name(std::string name) {
  for (const auto& [old, now] :
       {std::pair("LayerNorm.gamma", "LayerNorm.weight"), {"LayerNorm.beta", "LayerNorm.bias"}})
    if (name.ends_with(old)) name.replace(name.size() - std::strlen(old), std::string::npos, now);
  return name;
}

/// Copies tensors into a model, and notes what is left.
class WeightImport {
 public:
  WeightImport(const ModelClass& about, const nlohmann::json& foreign,
               std::span<const MappedTensor> parts, const Parameters& state)
      : about_(about), foreign_(foreign), parts_(parts), state_(state) {
    std::set<std::tuple<std::string, std::int64_t, std::int64_t>> rows;
    for (const MappedTensor& part : parts) {
      parts_by_name_[part.foreign] = &part;
      if (part.own.empty() || part.factor != 1 ||
          !rows.emplace(part.own, part.first, part.rows).second)
        compared_.insert(part.foreign);
    }
  }

  /// Copies the tensors of a file that are unscaled parts; the others wait for compare().
  void copy(const SafetensorsFile& file, const std::string& where) {
    for (const TensorView& tensor : file.tensors()) {
      const MappedTensor* const part = part_of(tensor.name);
      if (part == nullptr) {
        require_known(tensor, where);
        continue;
      }
      if (!seen_.insert(part->foreign).second)
        throw Error(Exit::bad_input, "{}: {} occurs twice in the folder", where,
                    shown(tensor.name, 200));
      if (compared_.contains(part->foreign))
        compares_ = true;
      else
        set_part(*part, state_, tensor, where);
    }
  }

  /// Sets parts to zero that the files lack. Throws Error(bad_input) if the class requires one.
  void fill(const std::string& where) {
    for (const MappedTensor& part : parts_) {
      const bool needed = !compared_.contains(part.foreign) || part.foreign == about_.at_position_0;
      if (seen_.contains(part.foreign) || !needed) continue;  // the class computes it
      if (about_.sinusoids && part.foreign.ends_with(".embed_positions.weight")) {
        const Shape& shape =
            std::ranges::find(state_, part.own, &NamedTensor::name)->tensor.shape();
        const std::vector<float> table = sinusoids_in_halves(shape[0], shape[1]);
        set_part(part, state_,
                 {part.foreign, DType::f32, {shape[0], shape[1]}, std::as_bytes(std::span(table))},
                 where);
        continue;
      }
      if (about_.is_zero == nullptr || !about_.is_zero(foreign_, part.foreign))
        throw Error(Exit::bad_input, "{}: the tensor {} is missing", where, part.foreign);
      zero_part(part, state_);
    }
  }

  bool compares() const { return compares_; }
  /// Compares the tensors of a file that repeat others or are constants.
  void compare(const SafetensorsFile& file, const std::string& where) const {
    for (const TensorView& tensor : file.tensors()) {
      const MappedTensor* part = part_of(tensor.name);
      if (part != nullptr && !compared_.contains(part->foreign)) continue;
      std::string equal;
      if (part == nullptr) {
        equal = extra_of(tensor.name)->equal;
        if (equal.empty()) continue;
        part = parts_by_name_.at(equal);
      }
      if (equals_part(*part, state_, tensor)) continue;
      if (part->foreign == about_.at_position_0) {
        move_difference(*part, tensor, where);
        continue;
      }
      throw Error(Exit::bad_input,
                  "{}: {} differs from {}, to which it is equal in the models that heed has", where,
                  shown(tensor.name, 200),
                  !equal.empty()      ? equal
                  : part->own.empty() ? "the constant of its class"
                  : part->factor != 1 ? "the scaled output matrix"
                                      : part->own);
    }
  }

 private:
  /// Adds what the tensor exceeds its part to the first row of the table of positions.
  void move_difference(const MappedTensor& part, const TensorView& tensor,
                       const std::string& where) const {
    const auto values = [&](const std::string& name) {
      Tensor found = std::ranges::find(state_, name, &NamedTensor::name)->tensor;
      return found.mutable_value().data();
    };
    const real* const bias = values(part.own);
    const std::vector<real> ours(bias, bias + part.shape.back());
    set_part(part, state_, tensor, where);  // for a moment
    real* const positions = values("positions.weight");
    for (std::size_t i = 0; i < ours.size(); ++i) positions[i] += bias[i] - ours[i];
    std::ranges::copy(ours, values(part.own));
  }

  /// The part with this name, or with the name that the prefix completes.
  const MappedTensor* part_of(const std::string& name) const {
    for (const std::string& full : {name, about_.prefix + name}) {
      const auto found = parts_by_name_.find(current_name(full));
      if (found != parts_by_name_.end()) return found->second;
    }
    return nullptr;
  }

  const ExtraTensor* extra_of(const std::string& name) const {
    for (const ExtraTensor& extra : about_.extra) {
      for (const std::string& full : {name, about_.prefix + name})
        if (fnmatch(extra.pattern, full.c_str(), 0) == 0) return &extra;
    }
    return nullptr;
  }

  void require_known(const TensorView& tensor, const std::string& where) {
    const ExtraTensor* const extra = extra_of(tensor.name);
    if (extra == nullptr)
      throw Error(Exit::bad_input, "{}: heed's {} with this config has no tensor {} ({})", where,
                  about_.name, shown(tensor.name, 200), tensor.description());
    compares_ |= *extra->equal != '\0';
  }

  const ModelClass& about_;
  const nlohmann::json& foreign_;
  std::span<const MappedTensor> parts_;
  const Parameters& state_;
  std::map<std::string, const MappedTensor*> parts_by_name_;
  std::set<std::string> compared_;  ///< parts that follow from others
  std::set<std::string> seen_;
  bool compares_ = false;
};

}  // namespace

std::vector<std::string> weight_files(const fs::path& folder) {
  if (path_exists(folder / one_file)) return {one_file};
  if (path_exists(folder / index_file)) {
    constexpr std::uint64_t limit = std::uint64_t{16} << 20;
    const nlohmann::json index = read_json(folder, index_file, limit);
    JsonFields fields(index, (folder / index_file).string());
    fields.at("metadata");  // the total size
    const nlohmann::json& map = fields.at("weight_map");
    fields.done();
    if (!map.is_object() || map.empty())
      fields.refuse("\"weight_map\" must be an object with the file of each tensor");
    std::set<std::string> files;
    for (const auto& [tensor, file] : map.items()) {
      if (!file.is_string()) fields.refuse("\"weight_map\": a file is not a string");
      files.insert(file.get<std::string>());
    }
    for (const std::string& file : files) plain_file(folder, file);
    return {files.begin(), files.end()};
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".bin" && extension != ".pt" && extension != ".pth") continue;
    throw Error(Exit::bad_input,
                "{} is a pickled file, which can run code when it is read: convert it, in a folder "
                "that you trust, with python3 -c \"import sys, transformers as t; a = sys.argv; "
                "m = t.AutoModel.from_pretrained(a[1]); getattr(t, m.config.architectures[0])"
                ".from_pretrained(a[1]).save_pretrained(a[2])\" {} NEW-FOLDER",
                entry.path().string(), shell_word(folder.string()));
  }
  throw Error(Exit::bad_input, "{}: there are no weights: expected {} or {}", folder.string(),
              one_file, index_file);
}

void import_weights(const fs::path& folder, const ModelClass& about, const nlohmann::json& foreign,
                    std::span<const MappedTensor> parts, const Parameters& state) {
  const std::vector<std::string> names = weight_files(folder);
  WeightImport weights(about, foreign, parts, state);
  for (const std::string& name : names) {
    const fs::path path = plain_file(folder, name);
    const SafetensorsFile file = SafetensorsFile::read(path);
    weights.copy(file, path.string());
    if (names.size() > 1) continue;
    weights.fill(folder.string());
    if (weights.compares()) weights.compare(file, path.string());
    return;
  }
  weights.fill(folder.string());
  for (const std::string& name : names) {
    if (!weights.compares()) return;
    const fs::path path = plain_file(folder, name);
    weights.compare(SafetensorsFile::read(path), path.string());
  }
}

HEED_END
