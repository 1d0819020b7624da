// Ops along concatenated sequences: recurrences and windows.
#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace op_table_sequences {

using Inputs = std::vector<Tensor>;
using Ids = std::vector<std::int32_t>;

struct Lengths {
  const char* name;
  Ids offsets;
};
const std::vector<Lengths> lengths = {{"one sequence", {0, 4}},
                                      {"one row", {0, 1}},
                                      {"several", {0, 2, 7, 8, 11}},
                                      {"equal lengths", {0, 3, 6}},
                                      {"some empty", {0, 0, 3, 3, 5, 5}},
                                      {"no row", {0, 0}},
                                      {"no sequence", {0}}};

OpRow recurrent_row(const char* name, std::int64_t gates,
                    Tensor (*op)(const Tensor&, const Tensor&, const Tensor&,
                                 std::span<const std::int32_t>, bool)) {
  OpRow row{name, {}};
  for (const Lengths& l : lengths) {
    for (const std::int64_t d : {0, 1, 3}) {
      for (const bool reverse : {false, true}) {
        for (const bool bias : {false, true}) {
          row.cases.push_back({fmt::format("{}, d {}{}{}", l.name, d, reverse ? ", reverse" : "",
                                           bias ? ", bias" : ""),
                               {uniform({l.offsets.back(), gates * d}), uniform({gates * d, d}),
                                bias ? uniform({gates * d}) : Tensor()},
                               [=, offsets = l.offsets](const Inputs& x) {
                                 return op(x[0], x[1], x[2], offsets, reverse);
                               }});
        }
      }
    }
  }
  // x, the weight and the bias are computed from one tensor.
  row.cases.push_back(
      {"x is weight and bias", {uniform({gates, 1})}, [=](const Inputs& x) {
         const Tensor in = reshape(x[0], {1, gates});
         return op(concat({in, in}, 0), x[0], reshape(x[0], {gates}), Ids{0, 2}, false);
       }});
  return row;
}

OpRow unfold_row() {
  OpRow row{"unfold", {}};
  struct Window {
    std::int64_t width, before;
  };
  for (const Lengths& l : lengths) {
    for (const std::int64_t d : {0, 1, 3}) {
      for (const Window& w : {Window{1, 0}, {3, 2}, {3, 1}, {4, 0}, {15, 7}}) {
        row.cases.push_back(
            {fmt::format("{}, d {}, width {}, {} before", l.name, d, w.width, w.before),
             {uniform({l.offsets.back(), d})},
             [=, offsets = l.offsets](const Inputs& x) {
               return unfold(x[0], offsets, {.width = w.width, .before = w.before});
             }});
      }
    }
  }
  for (const Ids& offsets : {Ids{0, 12}, {0, 0, 4, 24}}) {  // lines of 4 rows
    for (const UnfoldWindow& w : {UnfoldWindow{3, 1, 2, 3, 1, 4},
                                  {2, 0, 1, 2, 1, 4},
                                  {3, 2, 3, 5, 2, 4},
                                  {9, 4, 5, 1, 0, 4},
                                  {3, 1, 2, 1, 0, 0},
                                  {1, 0, 7, 1, 0, 0}}) {
      row.cases.push_back(
          {fmt::format(
               "offsets {}, lines of {} rows, window {} x {}, {} above and {} before, stride {}",
               fmt::join(offsets, ", "), w.line, w.height, w.width, w.above, w.before, w.stride),
           {uniform({offsets.back(), 2})},
           [=](const Inputs& x) { return unfold(x[0], offsets, w); }});
    }
  }
  return row;
}

}  // namespace op_table_sequences

std::vector<OpRow> sequence_rows() {
  using namespace op_table_sequences;
  return {recurrent_row("lstm", 4, lstm), recurrent_row("gru", 3, gru), unfold_row()};
}

HEED_END
