#pragma once
/// A page that runs a model: its HTML, style and script, and the form of the files in it. The first three contain no text
/// of a model: the script shows such text, from the files, as text.
#include <optional>
#include <string>
#include <string_view>

namespace heed {

/// All that precedes the files: page_mark, then page_start.
extern const std::string_view page_mark, page_start;
/// The script, which reads the files, and the end of the page.
extern const std::string_view page_end;

/// A file in a page: an element that no browser executes, with the base64 of the packed bytes (gzip). `name`
/// contains no markup.
std::string page_element(const std::string& name, std::string_view bytes);
/// The bytes of a file in a page; nullopt if the page lacks it or the element is no base64. Throws Error(bad_input)
/// if the packed bytes are damaged.
std::optional<std::string> page_file(std::string_view page, const std::string& name);

}  // namespace heed
