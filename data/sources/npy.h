#pragma once
/// Arrays in NumPy's file format (numpy/lib/format.py, versions 1 and 2).
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Reads a matrix of float32 or float64 in row-major order ('<f4' or '<f8', fortran_order False).
/// Throws Error(bad_input), naming the file, if it is missing or truncated or has another type or
/// number of dimensions.
Matrix read_npy(const std::string& path);

struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// Reads an array of uint8 with any number of dimensions, in row-major order. Throws as read_npy
/// does.
ByteArray read_npy_bytes(const std::string& path);

}  // namespace heed
