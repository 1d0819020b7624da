#pragma once
/// A loop over source lines that adds the line to error messages.

#include <span>
#include <string>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"

namespace heed {

/// Calls work(i) for each line, on `threads` threads. The message of an error begins with `what`,
/// the number of the line and, if the message does not contain it, the line itself.
template <class Work>
void for_each_line(std::span<const std::string> lines, const std::string& what,
                   std::int64_t threads, const Work& work) {
  constexpr std::size_t lines_per_thread = 64;
  in_parts(lines.size(), lines_per_thread, static_cast<int>(threads),
           [&](std::size_t, std::size_t from, std::size_t to) {
             for (std::size_t i = from; i < to; ++i) {
               try {
                 work(i);
               } catch (const Error& e) {
                 const std::string message = e.what();
                 const bool names_it = message.find(shown_path(lines[i])) != std::string::npos ||
                                       message.find(shown(lines[i])) != std::string::npos;
                 throw Error(e.code, "{}: line {}: {}{}", what, i + 1,
                             names_it ? "" : shown_path(lines[i]) + ": ", message);
               }
             }
           });
}

}  // namespace heed
