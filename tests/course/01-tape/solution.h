#pragma once
/// A tape for +, × and exp. Each operation appends an entry: its value, the entries that it read, and
/// its derivative with respect to each of them. `gradients` walks the tape once, from the newest entry
/// to the oldest, and applies the chain rule
///   dy/dx += dy/dz · ∂z/∂x     for each entry z and each entry x that z read.
/// The sum is necessary because an entry may be read more than once.
#include <cmath>
#include <cstddef>
#include <vector>

#include "autograd/base/shape.h"

namespace chapter1 {

/// One entry. A variable reads nothing; exp reads one entry; + and × read two.
struct Entry {
  double value = 0;
  std::vector<std::size_t> inputs = {};  ///< positions on the tape, each before this entry
  std::vector<double> derivatives = {};  ///< ∂value/∂input, one for each input
};

struct Tape {
  std::vector<Entry> entries;

  /// Each function returns the position of the entry that it appends.
  std::size_t append(Entry entry) {
    entries.push_back(entry);
    return entries.size() - 1;
  }
  std::size_t variable(double value) { return append({value}); }

  double value(std::size_t x) const { return entries[x].value; }

  /// a + b
  std::size_t add(std::size_t a, std::size_t b) {
    // --- begin exercise add: append an entry with a + b, its inputs and its derivatives
    return append({value(a) + value(b), {a, b}, {1, 1}});
    // --- end exercise
  }

  /// a · b
  std::size_t multiply(std::size_t a, std::size_t b) {
    // --- begin exercise multiply: append an entry with a · b, its inputs and its derivatives
    return append({value(a) * value(b), {a, b}, {value(b), value(a)}});
    // --- end exercise
  }

  /// e^a
  std::size_t exp(std::size_t a) {
    // --- begin exercise exp: append an entry with e^a (std::exp), its input and its derivative
    const double y = std::exp(value(a));
    return append({y, {a}, {y}});
    // --- end exercise
  }

  /// dy/dx for every entry x of the tape, in the tape's order; 0 for entries that y does not depend
  /// on, also for those after y.
  std::vector<double> gradients(std::size_t y) const {
    // --- begin exercise gradients: begin with dy/dy = 1 and walk from y to the beginning of the tape
    std::vector<double> dy(entries.size(), 0.0);
    dy[y] = 1;
    for (std::size_t z = y + 1; z-- > 0;) {
      const Entry& entry = entries[z];
      for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
        dy[entry.inputs[i]] += dy[z] * entry.derivatives[i];
      }
    }
    return dy;
    // --- end exercise
  }
};

}  // namespace chapter1
