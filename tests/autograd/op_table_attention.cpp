// Attention, composed and fused, and the losses.
#include "tests/autograd/attention_cases.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace op_table_attention {

using Inputs = std::vector<Tensor>;
using Ids = std::vector<std::int32_t>;

OpRow attention_row() {
  OpRow row{"attention", {}};
  struct Case {
    const char* name;
    Shape q, k, v;
    Array mask;
  };
  for (const Case& c :
       {Case{"one sequence", {3, 4}, {5, 4}, {5, 4}, {}},
        Case{"one key", {3, 4}, {1, 4}, {1, 2}, {}}, Case{"no key", {3, 4}, {0, 4}, {0, 2}, {}},
        Case{"no query", {0, 4}, {3, 4}, {3, 2}, {}},
        Case{"a batch", {2, 3, 4}, {2, 5, 4}, {2, 5, 3}, {}},
        Case{"heads, shared keys", {2, 2, 3, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {}},
        Case{"causal", {2, 3, 2}, {2, 3, 2}, {2, 3, 2}, causal_mask(3)},
        Case{"no visible key",
             {2, 2},
             {3, 2},
             {3, 2},
             Array::full({2, 3}, -std::numeric_limits<real>::infinity())}}) {
    for (const bool weights : {false, true}) {
      row.cases.push_back({fmt::format("{}{}", c.name, weights ? ", weights" : ""),
                           {uniform(c.q), uniform(c.k), uniform(c.v)},
                           [mask = c.mask, weights](const Inputs& x) {
                             const AttentionResult result = attention(x[0], x[1], x[2], mask);
                             return weights ? result.weights : result.output;
                           }});
    }
  }
  row.cases.push_back({"q = k = v", {uniform({3, 4})}, [](const Inputs& x) {
                         return attention(x[0], x[0], x[0]).output;
                       }});
  return row;
}

struct Lengths {
  const char* name;
  Ids queries, keys;  // offsets
};
const std::vector<Lengths> lengths = {{"one sequence", {0, 3}, {0, 3}},
                                      {"one token", {0, 1}, {0, 1}},
                                      {"several", {0, 3, 4, 9}, {0, 3, 4, 9}},
                                      {"one empty", {0, 2, 2, 5}, {0, 2, 2, 5}},
                                      {"no token", {0, 0}, {0, 0}},
                                      {"no sequence", {0}, {0}},
                                      {"37 tokens", {0, 37}, {0, 37}}};
const std::vector<Lengths> crossed = {{"fewer keys", {0, 4, 6}, {0, 1, 3}},
                                      {"more keys", {0, 1, 3}, {0, 4, 6}},
                                      {"a sequence without queries", {0, 0, 3}, {0, 2, 5}},
                                      {"a sequence without keys", {0, 2, 3}, {0, 0, 4}},
                                      {"35 keys", {0, 2}, {0, 35}}};

/// Adds cases with grouped heads: every pattern without terms and with all terms, and every term
/// alone.
void add_kinds(OpRow& self, OpRow& cross) {
  const HeadLayout layout{4, 2, 2};
  const Ids offsets{0, 4, 9};
  const std::vector<TermCase> all = term_cases(layout);
  const auto add = [&](const std::string& name, const PatternPtr& pattern,
                       const std::vector<TermCase>& terms) {
    for (const real p : {real(0), real(0.3)}) {
      AttentionOptions options{
          .heads = layout.heads,
          .key_heads = layout.key_heads,
          .pattern = pattern,
          .dropout = p,
          .key = {.seed = 9, .stream = Stream::dropout, .index = 2, .part = 0}};
      const std::int64_t n = offsets.back(), d = layout.heads * layout.size,
                         key_d = layout.key_heads * layout.size;
      std::vector<Tensor> qkv{uniform({n, d + 2 * key_d})},
          apart{uniform({n, d}), uniform({n, 2 * key_d})};
      for (const TermCase& term : terms) {
        for (std::vector<Tensor>* inputs : {&qkv, &apart})
          inputs->push_back(term.parameter.rank() == 0 ? Tensor() : uniform(term.parameter));
      }
      const auto with_terms = [terms, options](const Inputs& x, std::size_t own) {
        AttentionOptions chosen = options;
        for (std::size_t i = 0; i < terms.size(); ++i)
          chosen.terms.push_back(terms[i].make(x[own + i]));
        return chosen;
      };
      const std::string title = name + (p > 0 ? ", dropout" : "");
      self.cases.push_back({title, qkv, [=](const Inputs& x) {
                              return self_attention(x[0], offsets, with_terms(x, 1));
                            }});
      cross.cases.push_back({title, apart, [=](const Inputs& x) {
                               return cross_attention(x[0], x[1], offsets, offsets,
                                                      with_terms(x, 2));
                             }});
    }
  };
  for (const PatternCase& pattern : pattern_cases()) {
    add(pattern.name + ", grouped heads", pattern.pattern, {});
    add(pattern.name + ", all terms", pattern.pattern, all);
  }
  for (const TermCase& term : all) add(term.name, full_pattern(), {term});
}

OpRow rotary_row() {
  OpRow row{"rotary", {}};
  for (const RotaryPairs pairs : {RotaryPairs::halves, RotaryPairs::adjacent}) {
    for (const std::int64_t columns : {0, 4, 12}) {
      const RotaryOptions options{.size = 4, .columns = columns, .pairs = pairs, .base = 100};
      row.cases.push_back({fmt::format("{}, {} of 12 columns", name_of(pairs), columns),
                           {uniform({5, 12})},
                           [options](const Inputs& x) {
                             return rotary(x[0], Ids{0, 1, 2, 0, 300}, options);
                           }});
    }
    const RotaryOptions options{.size = 2, .columns = 2, .pairs = pairs};
    row.cases.push_back({fmt::format("{}, no row", name_of(pairs)),
                         {uniform({0, 2})},
                         [options](const Inputs& x) { return rotary(x[0], Ids{}, options); }});
  }
  return row;
}

OpRow linear_row() {
  OpRow row{"linear_attention", {}};
  for (const bool causal : {false, true}) {
    for (const HeadLayout layout : {HeadLayout{1, 1, 3}, HeadLayout{4, 2, 2}}) {
      for (const Ids& offsets : {Ids{0, 4}, Ids{0, 3, 3, 4}, Ids{0}, Ids{0, 70}}) {
        if (offsets.back() > 4 && layout.heads > 1) continue;
        const std::int64_t columns = (layout.heads + 2 * layout.key_heads) * layout.size;
        row.cases.push_back({fmt::format("heads: {}, [{}]{}", layout.heads, fmt::join(offsets, " "),
                                         causal ? ", causal" : ""),
                             {uniform({offsets.back(), columns})},
                             [=](const Inputs& x) {
                               return linear_attention(
                                   x[0], offsets, causal,
                                   {.heads = layout.heads, .key_heads = layout.key_heads});
                             }});
      }
    }
  }
  return row;
}

std::vector<OpRow> fused_rows() {
  OpRow self{"self_attention", {}}, cross{"cross_attention", {}};
  for (const std::int64_t heads : {1, 2}) {
    const std::int64_t d = 4;
    for (const real p : {real(0), real(0.3)}) {
      for (const bool causal : {false, true}) {
        const AttentionOptions options{
            .heads = heads,
            .pattern = causal ? causal_pattern() : full_pattern(),
            .dropout = p,
            .key = {.seed = 9, .stream = Stream::dropout, .index = 2, .part = 0}};
        const std::string settings =
            fmt::format("heads: {}{}{}", heads, causal ? ", causal" : "", p > 0 ? ", dropout" : "");
        for (const Lengths& l : lengths) {
          self.cases.push_back(
              {fmt::format("{}, {}", l.name, settings),
               {uniform({l.queries.back(), 3 * d})},
               [l, options](const Inputs& x) { return self_attention(x[0], l.queries, options); }});
        }
        for (const auto* group : {&lengths, &crossed}) {
          for (const Lengths& l : *group) {
            if (causal && group == &crossed) continue;
            cross.cases.push_back(
                {fmt::format("{}, {}{}", l.name, settings, group == &crossed ? ", crossed" : ""),
                 {uniform({l.queries.back(), d}), uniform({l.keys.back(), 2 * d})},
                 [l, options](const Inputs& x) {
                   return cross_attention(x[0], x[1], l.queries, l.keys, options);
                 }});
          }
        }
      }
    }
  }
  add_kinds(self, cross);
  return {self, cross};
}

}  // namespace op_table_attention

std::vector<OpRow> attention_rows() {
  using namespace op_table_attention;
  std::vector<OpRow> rows{attention_row(), rotary_row(), linear_row()};
  for (OpRow& row : fused_rows()) rows.push_back(std::move(row));
  return rows;
}

std::vector<OpRow> loss_rows() {
  using namespace op_table_attention;
  OpRow plain{"cross_entropy", {}}, projected{"projected_cross_entropy", {}};
  for (const real smoothing : {real(0), real(0.1), real(1)}) {
    for (const auto& [targets, classes] : {std::pair<Ids, std::int64_t>{{2, 0, 6, 2, 1}, 7},
                                           {{0}, 1},
                                           {{1}, 2},
                                           {{}, 3},
                                           {{36, 0}, 37}}) {
      const auto rows = static_cast<std::int64_t>(targets.size());
      const std::string name =
          fmt::format("[{}] of {}, smoothing {}", fmt::join(targets, " "), classes, smoothing);
      plain.cases.push_back({name,
                             {uniform({rows, classes}, -2, 2)},
                             [targets = targets, smoothing](const Inputs& x) {
                               return cross_entropy(x[0], targets, smoothing, 3.5);
                             }});
      for (const bool with_bias : {true, false}) {
        projected.cases.push_back(
            {name + (with_bias ? ", bias" : ""),
             {uniform({rows, 4}), uniform({classes, 4}), with_bias ? uniform({classes}) : Tensor()},
             [targets = targets, smoothing](const Inputs& x) {
               return projected_cross_entropy(x[0], x[1], x[2], targets, smoothing, 3.5);
             }});
      }
    }
  }
  // Some or all rows are ignored.
  for (const Ids& targets : {Ids{ignored_target, 3, ignored_target, 0}, Ids(4, ignored_target)}) {
    const std::string name = fmt::format("[{}] of 5", fmt::join(targets, " "));
    plain.cases.push_back({name, {uniform({4, 5})}, [targets](const Inputs& x) {
                             return cross_entropy(x[0], targets, real(0.1), 2);
                           }});
    projected.cases.push_back(
        {name, {uniform({4, 2}), uniform({5, 2}), uniform({5})}, [targets](const Inputs& x) {
           return projected_cross_entropy(x[0], x[1], x[2], targets, real(0.1), 2);
         }});
  }
  // The cotangent of the loss is −2.
  projected.cases.push_back(
      {"scaled afterwards", {uniform({3, 2}), uniform({5, 2}), uniform({5})}, [](const Inputs& x) {
         return scale(projected_cross_entropy(x[0], x[1], x[2], Ids{0, 4, 2}, real(0.1), 3), -2);
       }});
  OpRow rdrop{"rdrop_cross_entropy", {}};
  for (const real alpha : {real(0), real(5)}) {
    for (const Ids& targets : {Ids{0, 4, 2}, Ids{ignored_target, 3}, Ids{}}) {
      rdrop.cases.push_back({fmt::format("[{}], alpha {}", fmt::join(targets, " "), alpha),
                             {uniform({2 * static_cast<std::int64_t>(targets.size()), 4}, -2, 2),
                              uniform({5, 4}, -2, 2), uniform({5})},
                             [targets, alpha](const Inputs& x) {
                               return rdrop_cross_entropy(x[0], x[1], x[2], targets, real(0.1),
                                                          alpha, 3);
                             }});
    }
  }
  plain.cases.push_back({"scaled afterwards", {uniform({3, 5})}, [](const Inputs& x) {
                           return scale(cross_entropy(x[0], Ids{0, 4, 2}, real(0.1), 3), -2);
                         }});
  OpRow distilled{"distilled_cross_entropy", {}};
  for (const auto& [share, temperature] : {std::pair<real, real>(0, 1), {0.3, 2}, {1, 0.5}}) {
    for (const Ids& targets : {Ids{0, 4, 2}, Ids{ignored_target, 3}, Ids{}}) {
      const TeacherLogits teacher{random_array({std::ssize(targets), 3}, 5),
                                  random_array({5, 3}, 6), random_array({5}, 7), share,
                                  temperature};
      distilled.cases.push_back(
          {fmt::format("[{}], share {}, temperature {}", fmt::join(targets, " "), share,
                       temperature),
           {uniform({std::ssize(targets), 4}, -2, 2), uniform({5, 4}, -2, 2), uniform({5})},
           [targets, teacher](const Inputs& x) {
             return distilled_cross_entropy(x[0], x[1], x[2], targets, real(0.1), teacher, 3);
           }});
    }
  }
  return {plain, projected, rdrop, distilled};
}

HEED_END
