#pragma once
/// The tensors of another program's model as functions of heed's tensors. Writers and readers of a
/// format use the same list, so that what is written can be read back.
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/io/formats/safetensors.h"
#include "nn/parameters.h"

HEED_BEGIN

/// A tensor `foreign` of another program: rows of one of heed's tensors, or a constant.
struct MappedTensor {
  std::string foreign;
  std::string own = {};    ///< name of heed's tensor; empty: `constant`
  std::int64_t first = 0;  ///< first row (of a vector: first element)
  std::int64_t rows = 0;   ///< number of rows; 0: all
  /// The columns, in the order of a matrix [columns / channels, channels], are reordered to that of
  /// its transpose: pixels with channels become channels of pixels.
  std::int64_t channels = 1;
  /// Groups of `group` rows are reordered: each, seen as a matrix [split, group / split], is
  /// transposed. With the size of a head and split 2, row i and row i + size/2 of a head become
  /// neighbours, as rotary positions of adjacent pairs need them; split size/2 is the inverse.
  std::int64_t group = 0, split = 2;
  bool transposed = false;               ///< [rows, columns] becomes [columns, rows]
  double factor = 1;                     ///< multiplies every element
  std::vector<std::int64_t> shape = {};  ///< shape in the other program, if it differs
  std::optional<Array> constant = {};    ///< used without `own`
};

/// The tensors of a list of parts, computed from heed's. Unchanged tensors are not copied.
class ForeignTensors {
 public:
  /// Throws Error(failed) if a part names a tensor or rows that do not exist, and if no part uses
  /// one of `own`: a tensor would be lost.
  ForeignTensors(std::span<const MappedTensor> parts, std::span<const NamedTensor> own);
  ForeignTensors(const ForeignTensors&) = delete;
  ForeignTensors& operator=(const ForeignTensors&) = delete;

  /// In the order of the parts; valid while this object and the parameters exist.
  const std::vector<TensorView>& views() const { return views_; }

 private:
  void add(const MappedTensor& part, const Array& values);

  std::deque<Array> computed_;
  std::vector<TensorView> views_;
};

/// The inverse for one part: copies a tensor of another program, of any floating-point type, into the
/// part's rows of heed's tensor; its factor must be 1. `where`, the file, begins messages. Throws
/// Error(bad_input) if the shape or the type does not fit, or a value is not finite.
void set_part(const MappedTensor& part, std::span<const NamedTensor> own, const TensorView& foreign,
              const std::string& where);
/// Sets the part's rows to zero.
void zero_part(const MappedTensor& part, std::span<const NamedTensor> own);
/// Whether a tensor of another program has the values of the part.
bool equals_part(const MappedTensor& part, std::span<const NamedTensor> own,
                 const TensorView& foreign);
/// The names of the expected tensors that are missing or differ in any bit, then those of tensors that are
/// not expected.
std::vector<std::string> differing_tensors(std::span<const TensorView> expected,
                                           std::span<const TensorView> found);

HEED_END
