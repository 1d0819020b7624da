#pragma once
/// The kinds of sources (data.input). NAME_input() states the properties of a kind, on which configs,
/// tasks and drawings depend: those of text are in input_info.cpp, the others beside their Inputs.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/option_error.h"
#include "data/batches/inputs.h"
#include "data/options.h"

namespace heed {

/// The lines of a split or of a command that name inputs.
struct InputLines {
  std::span<const std::string> lines;
  bool class_row = false;  ///< each input begins with a row of zeros
  std::string what;        ///< name of the lines in messages
  std::int64_t threads = 1;
};

struct InputInfo {
  std::string_view name;
  std::string_view help;                      ///< the content of a source
  std::array<std::string_view, 4> keys = {};  ///< sections of `data` that it reads
  std::string_view noun = {};                 ///< "an image", for inputs of a fixed number of rows
  bool convolved = false;                     ///< supports a convolutional front end
  std::int64_t (*width)(const DataOptions&) = nullptr;  ///< number of values in a row
  /// Number of rows of each input, if all have the same, and the key that determines it.
  std::int64_t (*rows)(const DataOptions&) = nullptr;
  std::string_view rows_key = {};
  /// Height and width of the grid of patches, if its rows are one.
  std::array<std::int64_t, 2> (*grid)(const DataOptions&) = nullptr;
  OptionErrors (*check)(const DataOptions&) = nullptr;
  /// The contents of a source and of a row, in the drawing of a model.
  std::array<std::string, 2> (*captions)(const DataOptions&) = nullptr;
  /// The name of a row; null: its number. `columns`: width of the grid that the encoder reads.
  std::string (*row_name)(const DataOptions&, std::int64_t row, std::int64_t columns) = nullptr;
  /// Reads inputs; null: the source consists of token ids.
  std::shared_ptr<const Inputs> (*read)(const DataOptions&, const InputLines&) = nullptr;
};

#define HEED_DECLARE(name) InputInfo name##_input();
HEED_INPUTS(HEED_DECLARE)
#undef HEED_DECLARE

const std::vector<InputInfo>& input_table();
inline const InputInfo& info_of(InputKind kind) {
  return input_table()[static_cast<std::size_t>(kind)];
}

/// The number of values in a source row; 0 for text.
std::int64_t row_width(const DataOptions& o);
/// The number of rows of each input, such as the patches of an image; 0 if it varies.
std::int64_t fixed_rows(const DataOptions& o);

}  // namespace heed
