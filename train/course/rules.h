#pragma once
/// What an exercise may use. Names the mistake of a student who calls the function that the chapter
/// asks for; it does not stop one who hides the call.
#include <string>
#include <vector>

namespace heed::course {

/// ":LINE …", what the exercise uses without permission, or "". An exercise may include what the
/// solution includes and the headers of the C++ standard library, and must not contain a name of
/// `avoid` outside of comments and strings.
std::string broken_rule(const std::string& exercise, const std::string& solution,
                        const std::vector<std::string>& avoid);

}  // namespace heed::course
