#include "data/sources/generated/dates.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace heed {
namespace {

/// The names of months (from January) or weekdays (from Monday) for one field of a Form.
template <std::size_t count>
struct Names {
  char field;
  std::array<std::string_view, count> names;
};

constexpr auto months = std::to_array<Names<12>>({
    {'M',
     {"January", "February", "March", "April", "May", "June", "July", "August", "September",
      "October", "November", "December"}},
    {'N', {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}},
    {'G',
     {"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober",
      "November", "Dezember"}},
    {'F',
     {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre",
      "octobre", "novembre", "décembre"}},
    {'S',
     {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
      "octubre", "noviembre", "diciembre"}},
    {'I',
     {"gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre",
      "ottobre", "novembre", "dicembre"}},
    {'U',
     {"januari", "februari", "maart", "april", "mei", "juni", "juli", "augustus", "september",
      "oktober", "november", "december"}},
    {'R', {"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}},
});
constexpr auto weekdays = std::to_array<Names<7>>({
    {'A', {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}},
    {'B', {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}},
    {'H', {"Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"}},
    {'K', {"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"}},
    {'T', {"lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"}},
    {'J', {"lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"}},
    {'V', {"maandag", "dinsdag", "woensdag", "donderdag", "vrijdag", "zaterdag", "zondag"}},
    {'h', {"一", "二", "三", "四", "五", "六", "日"}},
});

constexpr std::array<std::string_view, 10> chinese_digits = {"〇", "一", "二", "三", "四",
                                                             "五", "六", "七", "八", "九"};
constexpr std::array<std::string_view, 31> ordinal_words = {
    "first",        "second",         "third",         "fourth",        "fifth",
    "sixth",        "seventh",        "eighth",        "ninth",         "tenth",
    "eleventh",     "twelfth",        "thirteenth",    "fourteenth",    "fifteenth",
    "sixteenth",    "seventeenth",    "eighteenth",    "nineteenth",    "twentieth",
    "twenty-first", "twenty-second",  "twenty-third",  "twenty-fourth", "twenty-fifth",
    "twenty-sixth", "twenty-seventh", "twenty-eighth", "twenty-ninth",  "thirtieth",
    "thirty-first"};

/// The components of a date.
struct Day {
  int year, month, day, weekday;  // month and day begin at 1; weekday: Monday = 0

  explicit Day(std::chrono::sys_days days) {
    const std::chrono::year_month_day date{days};
    year = static_cast<int>(date.year());
    month = static_cast<int>(static_cast<unsigned>(date.month()));
    day = static_cast<int>(static_cast<unsigned>(date.day()));
    weekday = static_cast<int>(std::chrono::weekday{days}.iso_encoding()) - 1;
  }
  bool short_year() const { return 1969 <= year && year <= 2068; }
};

std::string ordinal(int day) {
  const bool teen = 11 <= day && day <= 13;
  const int last = teen ? 0 : day % 10;
  return fmt::format("{}{}", day, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

/// A number from 1 to 99 in Chinese: 三, 十, 十二, 二十, 二十七.
std::string chinese_number(int n) {
  std::string out;
  if (n >= 20) out += chinese_digits[n / 10];
  if (n >= 10) out += "十";
  if (n % 10 != 0) out += chinese_digits[n % 10];
  return out;
}

/// A year in Chinese, digit by digit: 二〇二一; `zero` is 〇 or 零.
std::string chinese_year(int year, std::string_view zero) {
  std::string out;
  for (const char digit : std::to_string(year)) {
    out += digit == '0' ? zero : chinese_digits[digit - '0'];
  }
  return out;
}

/// The text in upper or lower case, each with probability 1/8, or else unchanged. Converts only
/// ASCII letters.
std::string any_case(std::string text, Random& random) {
  const auto draw = random.below(8);
  for (char& c : text) {
    if (draw == 0 && 'a' <= c && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (draw == 1 && 'A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// The pattern of a date. fill() replaces its fields, which are in braces.
struct Form {
  std::string_view pattern;
  bool any_case = false;
  bool short_year = false;  // the pattern has a two-digit year
};

// The fields, with examples:
// y 2021  Y 21  m 3  n 03  d 7  e 07  o 7th  w seventh        M March  N Mar  A Saturday  B Sat
// R III   C 二〇二一  Z 二零二一  c 三  g 二十七  h 六         German: G März, H Samstag
// French: F mars, K samedi (x: 1er or 7)   Spanish: S marzo, T sábado   Italian: I marzo, J sabato
// Dutch: U maart, V zaterdag
constexpr auto forms = std::to_array<Form>({
    {"{y}-{n}-{e}"},
    {"{y}{n}{e}"},
    {"{y}/{n}/{e}"},
    {"{y}/{m}/{d}"},
    {"{y}.{n}.{e}"},
    {"{n}/{e}/{y}"},
    {"{m}/{d}/{y}"},
    {"{n}/{e}/{Y}", false, true},
    {"{d}.{m}.{y}"},
    {"{e}.{n}.{y}"},
    {"{d}.{m}.{Y}", false, true},
    {"{e}-{n}-{y}"},
    {"{d}.{R}.{y}"},
    {"{d} {R} {y}"},
    {"{d} {M} {y}", true},
    {"{d} {N} {y}", true},
    {"{e}-{N}-{y}", true},
    {"{e}{N}{y}", true},
    {"{e}-{N}-{Y}", true, true},
    {"{d} {M} '{Y}", true, true},
    {"{o} {M} {y}", true},
    {"{o} of {M} {y}", true},
    {"the {o} of {M} {y}", true},
    {"the {o} of {M}, {y}", true},
    {"the {w} of {M} {y}", true},
    {"{M} {w}, {y}", true},
    {"{M} {d}, {y}", true},
    {"{M} {d} {y}", true},
    {"{N} {d}, {y}", true},
    {"{N}. {d}, {y}", true},
    {"{M} {o}, {y}", true},
    {"{N} {d} '{Y}", true, true},
    {"{M} the {o}, {y}", true},
    {"{A}, {d} {M} {y}", true},
    {"{A}, {M} {d}, {y}", true},
    {"{A}, {M} {o}, {y}", true},
    {"{A} the {o} of {M}, {y}", true},
    {"{A}, {d} {N} {y}", true},
    {"{B}, {e} {N} {y}", true},
    {"{B} {N} {e} {y}", true},
    {"{B} {d} {M} {y}", true},
    {"{y} {M} {d}", true},
    {"{y}, {M} {d}", true},
    {"{y} {N} {e}", true},
    {"{y}年{m}月{d}日"},
    {"{y}年{n}月{e}日"},
    {"{y}年{m}月{d}号"},
    {"公元{y}年{m}月{d}日"},
    {"{y}年{m}月{d}日 星期{h}"},
    {"{y}年{m}月{d}日（周{h}）"},
    {"{C}年{c}月{g}日"},
    {"{Z}年{c}月{g}日"},
    {"{C}年{c}月{g}号"},
    {"{C}年{c}月{g}日星期{h}"},
    {"{c}月{g}日，{C}年"},
    {"{m}月{d}日，{y}年"},
    {"{d}. {G} {y}"},
    {"{H}, {d}. {G} {y}"},
    {"{H}, den {d}. {G} {y}"},
    {"{x} {F} {y}"},
    {"le {x} {F} {y}"},
    {"{K} {x} {F} {y}"},
    {"{d} de {S} de {y}"},
    {"{T}, {d} de {S} de {y}"},
    {"{d} {I} {y}"},
    {"{J} {d} {I} {y}"},
    {"{d} {U} {y}"},
    {"{V} {d} {U} {y}"},
});

/// The text of a field of a date.
std::string field(char name, const Day& day) {
  for (const auto& in : months) {
    if (in.field == name) return std::string(in.names[day.month - 1]);
  }
  for (const auto& in : weekdays) {
    if (in.field == name) return std::string(in.names[day.weekday]);
  }
  switch (name) {
    case 'Y':
      return fmt::format("{:02}", day.year % 100);
    case 'm':
      return std::to_string(day.month);
    case 'n':
      return fmt::format("{:02}", day.month);
    case 'd':
      return std::to_string(day.day);
    case 'e':
      return fmt::format("{:02}", day.day);
    case 'o':
      return ordinal(day.day);
    case 'w':
      return std::string(ordinal_words[day.day - 1]);
    case 'x':
      return day.day == 1 ? "1er" : std::to_string(day.day);
    case 'C':
      return chinese_year(day.year, "〇");
    case 'Z':
      return chinese_year(day.year, "零");
    case 'c':
      return chinese_number(day.month);
    case 'g':
      return chinese_number(day.day);
    default:  // y
      return std::to_string(day.year);
  }
}

std::string fill(const Form& form, const Day& day) {
  std::string out;
  const std::string_view pattern = form.pattern;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '{') {
      out += field(pattern[at + 1], day);
      at += 2;
    } else {
      out += pattern[at];
    }
  }
  return out;
}

}  // namespace

std::string iso_date(std::chrono::sys_days day) { return fill(forms[0], Day(day)); }

std::string write_date(std::chrono::sys_days days, int index, Random& random) {
  const Form& form = forms.at(index);
  std::string text = fill(form, Day(days));
  return form.any_case ? any_case(std::move(text), random) : text;
}

std::string write_date(std::chrono::sys_days days, Random& random) {
  const bool short_year = Day(days).short_year();
  for (;;) {
    const auto index = random.below(static_cast<std::uint32_t>(forms.size()));
    if (short_year || !forms[index].short_year) {
      return write_date(days, static_cast<int>(index), random);
    }
  }
}

int date_forms() { return static_cast<int>(forms.size()); }

}  // namespace heed
