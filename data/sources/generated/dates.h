#pragma once
/// Dates in the usual forms of several languages.
///
/// No form is ambiguous. Where conventions differ, the separator determines the order:
///   27.3.2021, 27-03-2021   day first (German, Dutch)
///   3/27/2021               month first (American)
///   2021-03-27, 2021/3/27   year first, if the first number has four digits
/// Two-digit years are used only for 1969 to 2068, the range of POSIX (strptime, %y).
#include <chrono>
#include <string>

#include "autograd/base/random.h"

namespace heed {

inline constexpr std::chrono::sys_days first_date{std::chrono::year{1900} / 1 / 1};
inline constexpr std::chrono::sys_days last_date{std::chrono::year{2099} / 12 / 31};

/// "2021-03-27"
std::string iso_date(std::chrono::sys_days day);

/// A date in a random form: numeric, in several orders; English, with or without weekdays,
/// ordinals, abbreviations or capitals; Chinese, with Arabic or Chinese digits; German, French,
/// Spanish, Italian or Dutch; or with the month in Roman numerals. `day` is from first_date to
/// last_date.
std::string write_date(std::chrono::sys_days day, Random& random);

/// A date in the form with the given number, from 0 to date_forms() − 1.
std::string write_date(std::chrono::sys_days day, int form, Random& random);
int date_forms();

}  // namespace heed
