"""Faults in autograd/gradcheck."""
from . import fault

fault("gradcheck: a variable used twice is reported twice", "autograd/gradcheck/audit.cpp",
      "!known_.insert(input.get()).second) continue;",
      "known_.contains(input.get())) continue;",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck: an op is not checked with a single variable", "autograd/gradcheck/audit.cpp",
      "for (const bool alone : {false, true}) {",
      "for (const bool alone : {false}) {",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: larger extents are not tried", "autograd/gradcheck/variants.cpp",
      "{std::int64_t{1}, std::int64_t{0}, extent + 1}",
      "{std::int64_t{1}, std::int64_t{0}}",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: a backward that throws for tensors is a fault of a function of matrices",
      "autograd/gradcheck/variants.cpp",
      "return none || other.further_axis",
      "return none",
      "autograd_f64:gradcheck_suite")

fault("gradcheck: f does not run between forward and backward", "autograd/gradcheck/kept_values.cpp",
      "    elsewhere();\n",
      "    if (false) elsewhere();\n",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: an op that uses a value twice is blamed", "autograd/gradcheck/each_op.cpp",
      "if (nodes[i].get() != nodes[j].get() || x.data() != other.data()) return {};",
      "if (nodes[i].get() != nodes[j].get()) continue;",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck: a straight-through gradient hides tensors that do not pass it", "autograd/gradcheck/audit.cpp",
      "if (found == behind_.end() && !node.straight_through()) return;",
      "if (found == behind_.end() && !node.straight_through() && behind_.empty()) return;",
      "autograd_f64:gradcheck_suite")

fault("gradcheck no longer tries a further first axis on all inputs at once, only on the first input", "autograd/gradcheck/variants.cpp",
      "for (const std::size_t count : std::set<std::size_t>{1, inputs.size()}) {",
      "for (const std::size_t count : std::set<std::size_t>{1}) {",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck examines one random direction however many are requested", "autograd/gradcheck/gradcheck.cpp",
      "    Random random({options.seed, Stream::check, 2 + static_cast<std::uint64_t>(k), number});",
      "    Random random({options.seed, Stream::check, 2, number});",
      "autograd_f64:gradcheck_suite")

fault("gradcheck tries a further first axis on all inputs together only, no longer on the first input alone", "autograd/gradcheck/variants.cpp",
      "std::set<std::size_t>{1, inputs.size()}",
      "std::set<std::size_t>{inputs.size()}",
      "autograd_f64:gradcheck_wrong_suite")

fault("a tensor is rejected only if all its entries are at kinks, not if all the entries that were checked are: with max_entries or directions it passes although nothing was compared", "autograd/gradcheck/gradcheck.cpp",
      "  if (c.kinks == c.checked) {",
      "  if (c.kinks == c.entries) {",
      "autograd_f64:gradcheck_suite")

fault("with max_entries, gradcheck checks the same entries for every seed", "autograd/gradcheck/gradcheck.cpp",
      "choose(x.size(), count, options.seed, number)",
      "choose(x.size(), count, 1, number)",
      "autograd_f64:gradcheck_suite")

fault("with max_entries, an entry that is drawn twice is not replaced by another, so fewer entries are checked", "autograd/gradcheck/gradcheck.cpp",
      "if (!chosen.insert(pick).second) chosen.insert(i);",
      "chosen.insert(pick);",
      "autograd_f64:gradcheck_suite")

fault("at a kink gradcheck accepts values from the left slope up to the right slope only, so a right gradient at a kink where the slope falls is reported as wrong", "autograd/gradcheck/gradcheck.cpp",
      """    const auto [low, high] = std::minmax(slope.left, slope.right);
""",
      """    const double low = slope.left, high = slope.right;
""",
      "autograd_f64:gradcheck_suite")

fault("gradcheck ignores the option step", "autograd/gradcheck/gradcheck.cpp",
      "return options.step > 0 ? options.step :",
      "return options.step < 0 ? options.step :",
      "autograd_f64:gradcheck_suite")

fault("gradcheck reports the smallest errors of a wrong gradient instead of the largest", "autograd/gradcheck/gradcheck.cpp",
      "return a.error > b.error;",
      "return a.error < b.error;",
      "autograd_f64:gradcheck_suite")

fault("gradcheck does not state the number of kinks if it lists only some", "autograd/gradcheck/report.cpp",
      "if (c.kinks > static_cast<std::int64_t>(c.kinked.size()))",
      "if (c.kinks < static_cast<std::int64_t>(c.kinked.size()))",
      "autograd_f64:gradcheck_suite")

fault("gradcheck ignores allow_unlisted and fails if f depends on a variable that is not checked", "autograd/gradcheck/gradcheck.cpp",
      "} else if (!objective.unlisted.empty() && !options.allow_unlisted) {",
      "} else if (!objective.unlisted.empty()) {",
      "autograd_f64:gradcheck_suite")

fault("the report of gradcheck exchanges the absolute and the relative tolerance", "autograd/gradcheck/report.cpp",
      "abs, rel, seed);",
      "rel, abs, seed);",
      "autograd_f64:gradcheck_suite")

fault("gradcheck names the factor of a gradient that is -2 times the right one as 2", "autograd/gradcheck/diagnosis.cpp",
      "std::string(r < 0 ? \"-\" : \"\") + guess.name",
      "guess.name",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise a dropout that scales twice", "autograd/gradcheck/diagnosis.cpp",
      "{1 / (1 - p), fmt::format(",
      "{1 / (1 + p), fmt::format(",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise the number of values of a matrix as a factor", "autograd/gradcheck/diagnosis.cpp",
      "if (shape.rank() > 1) add(shape.size(), fmt",
      "if (shape.rank() > 2) add(shape.size(), fmt",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise a factor that a gradient has too many", "autograd/gradcheck/diagnosis.cpp",
      "explained(e.analytic, times(e.numeric, *values))",
      "explained(e.analytic, times(e.analytic, *values))",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise a backward that forgets dy", "autograd/gradcheck/diagnosis.cpp",
      "{\"the cotangent dy\", e.shape, e.cotangent, {}}",
      "{\"the cotangent dy\", e.shape, e.y, {}}",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise a gradient that lacks the term dy y / x of the product rule", "autograd/gradcheck/diagnosis.cpp",
      "same(minus(e.numeric, outer), e.analytic)",
      "same(minus(outer, e.numeric), e.analytic)",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck recognises a missing sum over a broadcast along the first axis only", "autograd/gradcheck/diagnosis.cpp",
      "for (int k = 0; k < out.rank(); ++k) {",
      "for (int k = 0; k < std::min(out.rank(), 1); ++k) {",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not recognise the missing term of a norm over the first axis", "autograd/gradcheck/diagnosis.cpp",
      """for (int k = e.shape.rank() - 1; k >= 0; --k) {
    const Axis axis(e.shape, k);
    for (const Term& term : terms) {""",
      """for (int k = e.shape.rank() - 1; k > 0; --k) {
    const Axis axis(e.shape, k);
    for (const Term& term : terms) {""",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck lists every index of wrong entries, however many there are", "autograd/gradcheck/diagnosis.cpp",
      """    if (count > 6) where.resize(6);
""",
      "",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck says that a backward overwrites a gradient if it adds a wrong value to it", "autograd/gradcheck/audit.cpp",
      """!close(entry(after), entry(first), scale))
      return false;""",
      """!close(entry(after), entry(first), scale))
      return true;""",
      "autograd_f64:gradcheck_wrong_suite")

fault("the audit does not try the last two inputs of an op as the same tensor", "autograd/gradcheck/audit.cpp",
      "for (std::size_t j = i + 1; j < dx.size(); ++j) {",
      "for (std::size_t j = i + 1; j + 1 < dx.size(); ++j) {",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck tries no input as a constant", "autograd/gradcheck/variants.cpp",
      "some[i] = Tensor(x[i].value());",
      "some[i] = x[i];",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck does not try the last two inputs as the same tensor", "autograd/gradcheck/variants.cpp",
      "for (std::size_t j = i + 1; j < inputs.size(); ++j) {",
      "for (std::size_t j = i + 1; j + 1 < inputs.size(); ++j) {",
      "autograd_f64:gradcheck_wrong_suite")
