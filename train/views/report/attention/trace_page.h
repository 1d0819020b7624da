#pragma once
/// The trace of an attention head as text and as a page.
#include <string>

#include "train/views/report/attention/page.h"
#include "train/views/report/attention/trace.h"

HEED_BEGIN

/// The trace as text: aligned matrices, each below its formula and shape. Shows only the first and
/// last columns of matrices that are wider than 100 characters, only the first and last rows of
/// matrices with more than 24, and only the shape of weights with more than 512 values.
std::string trace_text(const AttentionTrace& trace, const PageHead& head);

/// The trace as a page, with cells shaded by magnitude. Shows at most 24 rows and 20 columns of a
/// matrix, and only the shape of weights with more than 512 values.
std::string trace_page(const AttentionTrace& trace, const PageHead& head);

HEED_END
