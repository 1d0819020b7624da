#pragma once
/// The files of the commands that show something: pages, and drawings as SVG, PNG or PDF.
#include <string>

namespace heed {

/// Whether the ending of the name is that of a drawing: .svg, .png or .pdf.
bool names_drawing(const std::string& path);

/// RUN/reports/NAME, the default place of a page about a run. Creates the folder.
std::string report_file(const std::string& run, const std::string& name);

/// Writes a page (HTML) or a drawing (SVG), and prints where. If the name ends in .png or .pdf, the
/// program rsvg-convert of librsvg converts the drawing, in its light colours. Replaces only files
/// that heed has written, which it recognises by their style or, in PNG and PDF, by a mark. Throws Error(usage)
/// for any other existing file, for a file of a run, for an image format that heed cannot write, and if rsvg-convert is
/// missing; Error(io) if writing or converting fails.
void write_view(const std::string& path, const std::string& content);

}  // namespace heed
