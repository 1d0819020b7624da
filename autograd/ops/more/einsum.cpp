#include "autograd/ops/more/einsum.h"

#include <algorithm>
#include <string>
#include <vector>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/reduce.h"
#include "autograd/ops/more/shape.h"
#include "autograd/ops/shared/check.h"
#include "autograd/tape/many.h"

HEED_BEGIN

namespace {

/// A tensor and the letter of each of its axes.
struct Lettered {
  Tensor x;
  std::string letters;

  std::int64_t extent(char letter) const {
    return x.shape()[static_cast<int>(letters.find(letter))];
  }
};

bool contains(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

/// The letters of a for which `keep` returns true.
template <class Keep>
std::string select(std::string_view a, Keep keep) {
  std::string kept;
  std::ranges::copy_if(a, std::back_inserter(kept), keep);
  return kept;
}

/// Sums over the letters absent from `needed`.
Lettered summed(Lettered one, std::string_view needed) {
  for (int axis = static_cast<int>(one.letters.size()) - 1; axis >= 0; --axis) {
    if (contains(needed, one.letters[axis])) continue;
    one.x = sum(one.x, axis);
    one.letters.erase(axis, 1);
  }
  return one;
}

/// Permutes the axes into the order of `letters`.
Tensor ordered(const Lettered& one, std::string_view letters) {
  if (one.letters == letters) return one.x;
  std::vector<int> axes;
  for (const char letter : letters) axes.push_back(static_cast<int>(one.letters.find(letter)));
  return permute(one.x, axes);
}

/// The product of two operands, summed over all letters but the `needed` ones: those of the result
/// and of the later operands. Letters that are not needed and occur in only one operand are summed
/// over first. The others are of four kinds: in both and needed (a batch of matrices), in both and
/// not needed (the inner axis of a matrix product), only in a (its rows), only in b (its columns).
Lettered product(Lettered a, Lettered b, std::string_view needed) {
  a = summed(std::move(a), std::string(needed) + b.letters);
  b = summed(std::move(b), std::string(needed) + a.letters);
  const auto in_b = [&](char c) { return contains(b.letters, c); };
  const auto is_needed = [&](char c) { return contains(needed, c); };
  const std::string batch = select(a.letters, [&](char c) { return in_b(c) && is_needed(c); }),
                    inner = select(a.letters, [&](char c) { return in_b(c) && !is_needed(c); }),
                    rows = select(a.letters, [&](char c) { return !in_b(c); }),
                    columns = select(b.letters, [&](char c) { return !contains(a.letters, c); });
  const auto size = [](const Lettered& of, const std::string& letters) {
    std::int64_t n = 1;
    for (const char letter : letters) n *= of.extent(letter);
    return n;
  };
  const std::int64_t batches = size(a, batch), k = size(a, inner), m = size(a, rows),
                     n = size(b, columns);
  const Tensor y = matmul(reshape(ordered(a, batch + rows + inner), {batches, m, k}),
                          reshape(ordered(b, batch + inner + columns), {batches, k, n}));
  Shape shape;
  for (const char letter : batch + rows) shape.push_back(a.extent(letter));
  for (const char letter : columns) shape.push_back(b.extent(letter));
  return {reshape(y, shape), batch + rows + columns};
}

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

Equation parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    fail("[einsum] expected an equation like \"bik,bkj->bij\", got \"{}\": {}", text, why);
  };
  Equation equation;
  std::string* part = &equation.operands.emplace_back();
  bool arrow = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && !arrow) {
      part = &equation.operands.emplace_back();
    } else if (c == '-' && !arrow && i + 1 < text.size() && text[i + 1] == '>') {
      part = &equation.result;
      arrow = true;
      ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (contains(*part, c)) wrong(fmt::format("duplicate letter {}", c));
      part->push_back(c);
    } else {
      wrong(fmt::format("unexpected character {}", c));
    }
  }
  if (!arrow) wrong("missing ->");
  for (const char letter : equation.result) {
    if (std::ranges::none_of(equation.operands,
                             [&](const std::string& one) { return contains(one, letter); }))
      wrong(fmt::format("letter {} of the result is in no operand", letter));
  }
  return equation;
}

/// Throws if a letter has different extents in two operands.
void require_extents(std::string_view equation, const std::vector<Lettered>& all) {
  for (const Lettered& a : all) {
    for (const Lettered& b : all) {
      for (const char letter : a.letters) {
        if (contains(b.letters, letter) && a.extent(letter) != b.extent(letter))
          fail("[einsum] \"{}\": letter {} has extent {} in {} and {} in {}", equation, letter,
               a.extent(letter), a.x.shape(), b.extent(letter), b.x.shape());
      }
    }
  }
}

}  // namespace

Tensor einsum(std::string_view text, std::span<const Tensor> operands) {
  const Equation equation = parse(text);
  if (equation.operands.size() != operands.size())
    fail("[einsum] expected as many operands as in \"{}\" ({}), got {}", text,
         equation.operands.size(), operands.size());
  std::vector<Lettered> all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    require_defined("einsum", operands[i].value());
    all.push_back({operands[i], equation.operands[i]});
    if (operands[i].shape().rank() != static_cast<int>(all[i].letters.size()))
      fail("[einsum] \"{}\": operand {} has the letters \"{}\", but its shape is {}", text, i,
           all[i].letters, operands[i].shape());
  }
  require_extents(text, all);
  Lettered y = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::string needed = equation.result;  // plus the letters of the remaining operands
    for (std::size_t k = i + 1; k < all.size(); ++k) needed += all[k].letters;
    y = product(std::move(y), all[i], needed);
  }
  return ordered(summed(std::move(y), equation.result), equation.result);
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span(operands.begin(), operands.size()));
}

HEED_END
