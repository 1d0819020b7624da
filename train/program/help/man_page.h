#pragma once
/// The man page heed(1).
#include <CLI/CLI.hpp>
#include <string>

namespace heed {

/// The man page in roff, for the man macros (man(7), groff_man(7)): commands, options, and every
/// key of a config. The page is ASCII: all other characters are written as groff_char(7) escapes.
std::string man_page(const CLI::App& app);

}  // namespace heed
