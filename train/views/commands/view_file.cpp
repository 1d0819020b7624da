#include "train/views/commands/view_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/temporary_folder.h"
#include "train/commands/output.h"
#include "train/fetch/subprocess.h"
#include "train/terminal/run_log.h"
#include "train/views/draw/svg.h"

namespace heed {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view mark = "made by heed";
/// A PNG chunk with the mark: its length, type, content and checksum.
constexpr std::string_view png_mark =
    "\x00\x00\x00\x15"
    "tEXtSoftware\0made by heed"
    "\xe9\x93\x4c\xf5"sv;

/// Whether heed has made the file: it has the style of heed's pages and drawings or ends with the
/// mark.
bool made_by_heed(const std::filesystem::path& path) {
  constexpr std::size_t head = 4096, tail = 64;
  constexpr std::string_view style = ":root{color-scheme:light dark;--ink:";
  const std::string bytes = read_bytes(path);
  if (std::string_view(bytes).substr(0, head).find(style) != std::string_view::npos) return true;
  return bytes.find(mark, bytes.size() - std::min(bytes.size(), tail)) != std::string::npos;
}

/// Adds the mark where the format allows text: in a comment, or in a PNG chunk before the last one.
std::string with_mark(std::string bytes, const std::string& path) {
  if (path.ends_with(".pdf")) return fmt::format("{}\n%{}\n", bytes, mark);
  if (!path.ends_with(".png")) return bytes;  // the style of a page or an SVG file is its mark
  return bytes.insert(bytes.rfind("IEND") - 4, png_mark);  // before the last chunk and its length
}

/// The drawing as PNG, with two dots per pixel, or PDF.
std::string converted(const std::string& svg, const std::string& path) {
  const TemporaryFolder folder;
  const std::string from = folder.path() / "drawing.svg", to = folder.path() / "converted";
  write_file_durably(from, [&](FileWriter& file) { file.write(in_light_colours(svg)); });
  const std::string zoom = path.ends_with(".png") ? "--zoom=2" : "--zoom=1";
  std::optional<ProgramResult> done;
  try {
    done = run_program(
        {"rsvg-convert", "--format=" + path.substr(path.size() - 3), zoom, "--output=" + to, from},
        STDERR_FILENO);
  } catch (const Error&) {
    throw Error(Exit::usage,
                "--output {}: this format needs the program rsvg-convert (Debian: apt-get install "
                "librsvg2-bin); without it, heed writes .svg files",
                path);
  }
  if (done->status != 0) throw Error(Exit::failed, "{}: rsvg-convert: {}", path, done->last_line());
  return read_bytes(to);
}

}  // namespace

bool names_drawing(const std::string& path) {
  return path.ends_with(".svg") || path.ends_with(".png") || path.ends_with(".pdf");
}

std::string report_file(const std::string& run, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(run) / "reports";
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) throw_io("create the folder", folder, error.value());
  return folder / name;
}

void write_view(const std::string& path, const std::string& content) {
  const bool converts = names_drawing(path) && !path.ends_with(".svg");
  const std::string bytes = with_mark(converts ? converted(content, path) : content, path);
  write_output(
      path, [&](const Sink& sink) { sink(bytes); }, made_by_heed);
  if (!is_standard_output(path)) print_message("heed: output written to " + path);
}

}  // namespace heed
