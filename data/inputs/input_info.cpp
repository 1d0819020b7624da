#include "data/inputs/input_info.h"

namespace heed {

InputInfo text_input() { return {.name = "text", .help = "lines"}; }

const std::vector<InputInfo>& input_table() {
#define HEED_ROW(name) name##_input(),
  static const std::vector<InputInfo> table{HEED_INPUTS(HEED_ROW)};
#undef HEED_ROW
  return table;
}

const std::vector<std::string_view>& names_of(InputKind) {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const InputInfo& input : input_table()) all.push_back(input.name);
    return all;
  }();
  return names;
}

std::int64_t row_width(const DataOptions& o) {
  const auto width = info_of(o.input).width;
  return width != nullptr ? width(o) : 0;
}

std::int64_t fixed_rows(const DataOptions& o) {
  const auto rows = info_of(o.input).rows;
  return rows != nullptr ? rows(o) : 0;
}

}  // namespace heed
