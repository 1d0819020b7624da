#pragma once
/// The numbers of an attention head as text and as a page.
#include <string>

#include "train/report/attention/page.h"
#include "train/report/attention/trace.h"

HEED_BEGIN

/// Aligned matrices, each below its formula and shape. Of matrices that are wider than 100 columns of
/// text or longer than 24 rows, the first and the last rows and columns are shown; of weights with
/// more than 512 values only the shape.
std::string trace_text(const AttentionTrace& trace, const PageHead& head);

/// The same as a page, its cells shaded by their magnitude.
std::string trace_page(const AttentionTrace& trace, const PageHead& head);

HEED_END
