#pragma once
/// Reads the files of tests/golden: PyTorch's values in float64. tests/golden/README.md describes
/// the names.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autograd/io/formats/safetensors.h"
#include "tests/nn/support.h"

HEED_BEGIN

/// One case of a golden file.
class GoldenCase {
 public:
  GoldenCase(const SafetensorsFile& file, std::string name)
      : file_(&file),
        name_(std::move(name)),
        attributes_(nlohmann::json::parse(file.metadata().at(name_))) {}

  const std::string& name() const { return name_; }
  const nlohmann::json& attributes() const { return attributes_; }
  bool has(const std::string& tensor) const { return file_->find(name_ + "/" + tensor) != nullptr; }
  Array array(const std::string& tensor) const {
    const TensorView& view = at(tensor, DType::f64);
    return Array(Shape(view.shape), view.values<double>());
  }
  std::vector<std::int32_t> ids(const std::string& tensor) const {
    const auto values = at(tensor, DType::i32).values<std::int32_t>();
    return {values.begin(), values.end()};
  }
  /// The names of the case's tensors that begin with `prefix`, with the prefix removed.
  std::vector<std::string> names(const std::string& prefix) const {
    const std::string begin = name_ + "/" + prefix;
    std::vector<std::string> all;
    for (const TensorView& t : file_->tensors()) {
      if (t.name.starts_with(begin)) all.push_back(t.name.substr(begin.size()));
    }
    return all;
  }
  /// Copies the tensor "prefix<name>" into each parameter. Every tensor with the prefix must have a
  /// parameter, and vice versa.
  void load(const std::string& prefix, const Parameters& parameters) const {
    BOOST_TEST(names(prefix).size() == parameters.size());
    for (const NamedTensor& p : parameters) {
      Tensor handle = p.tensor;
      const Array values = array(prefix + p.name);
      BOOST_REQUIRE_MESSAGE(values.shape() == handle.shape(),
                            name_ << ": wrong shape of " << p.name);
      std::copy_n(values.data(), values.size(), handle.mutable_value().data());
    }
  }

 private:
  const TensorView& at(const std::string& tensor, DType dtype) const {
    const TensorView* const view = file_->find(name_ + "/" + tensor);
    BOOST_REQUIRE_MESSAGE(view != nullptr, name_ << " has no tensor " << tensor);
    BOOST_REQUIRE_MESSAGE(view->dtype == dtype,
                          name_ << "/" << tensor << " has the wrong type: " << view->description());
    return *view;
  }

  const SafetensorsFile* file_;
  std::string name_;
  nlohmann::json attributes_;
};

inline SafetensorsFile golden_file(const std::string& name) {
  return SafetensorsFile::read(std::string(HEED_SOURCE_DIR) + "/tests/golden/" + name);
}

HEED_END
