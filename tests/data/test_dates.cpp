// The generator of dates, checked by an independent date parser.
#include "data/sources/generated/dates.h"

#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(dates)

namespace {

struct Read {
  int year = 0, month = 0, day = 0;
  int weekday = -1;  // Monday = 0; -1: the text contains no weekday
};

/// Weekday by Sakamoto's method (comp.lang.c, 1992), Monday = 0.
int weekday(int y, int m, int d) {
  static constexpr int t[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  if (m < 3) --y;
  return ((y + y / 4 - y / 100 + y / 400 + t[m - 1] + d) % 7 + 6) % 7;
}

int century(int yy) { return yy >= 69 ? 1900 + yy : 2000 + yy; }

bool replace(std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

/// The value of a number in Chinese, such as 二〇二一, 十, 十二, 二十 or 二十七, or in ASCII digits.
int chinese(std::string text) {
  const std::vector<std::string> digits = {"〇", "一", "二", "三", "四",
                                           "五", "六", "七", "八", "九"};
  while (replace(text, "零", "0")) {
  }
  for (std::size_t d = 0; d < digits.size(); ++d) {
    while (replace(text, digits[d], std::to_string(d))) {
    }
  }
  const auto ten = text.find("十");
  if (ten == std::string::npos) return std::stoi(text);
  const std::string tens = text.substr(0, ten), ones = text.substr(ten + 3);
  return (tens.empty() ? 1 : std::stoi(tens)) * 10 + (ones.empty() ? 0 : std::stoi(ones));
}

Read read_chinese(std::string text) {
  Read date;
  replace(text, "公元", "");
  for (const char* mark : {" 星期", "星期", "（周"}) {
    const auto at = text.find(mark);
    if (at == std::string::npos) continue;
    std::string name = text.substr(at + std::string(mark).size(), 3);
    date.weekday = name == "日" ? 6 : chinese(name) - 1;
    text.resize(at);
    break;
  }
  replace(text, "，", "");
  replace(text, "号", "日");
  const auto y = text.find("年"), m = text.find("月"), d = text.find("日");
  BOOST_REQUIRE((y != std::string::npos && m < d && d != std::string::npos));
  if (y < m) {
    date.year = chinese(text.substr(0, y));
    date.month = chinese(text.substr(y + 3, m - y - 3));
  } else {
    date.month = chinese(text.substr(0, m));
    date.year = chinese(text.substr(d + 3, y - d - 3));
  }
  date.day = chinese(text.substr(m + 3, d - m - 3));
  return date;
}

const std::map<std::string, int>& month_words() {
  static const auto words = [] {
    std::map<std::string, int> w;
    for (const char* list :
         {"january february march april may june july august september october november december",
          "jan feb mar apr may jun jul aug sep oct nov dec",
          "januar februar märz april mai juni juli august september oktober november dezember",
          "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
          "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
          "diciembre",
          "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
          "dicembre",
          "januari februari maart april mei juni juli augustus september oktober november december",
          "i ii iii iv v vi vii viii ix x xi xii"}) {
      std::istringstream in(list);
      std::string word;
      for (int month = 1; in >> word; ++month) {
        BOOST_REQUIRE((!w.contains(word) || w[word] == month));  // no word is ambiguous
        w[word] = month;
      }
    }
    return w;
  }();
  return words;
}

const std::map<std::string, int>& weekday_words() {
  static const auto words = [] {
    std::map<std::string, int> w;
    for (const char* list :
         {"monday tuesday wednesday thursday friday saturday sunday", "mon tue wed thu fri sat sun",
          "montag dienstag mittwoch donnerstag freitag samstag sonntag",
          "lundi mardi mercredi jeudi vendredi samedi dimanche",
          "lunes martes miércoles jueves viernes sábado domingo",
          "lunedì martedì mercoledì giovedì venerdì sabato domenica",
          "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"}) {
      std::istringstream in(list);
      std::string word;
      for (int day = 0; in >> word; ++day) w[word] = day;
    }
    return w;
  }();
  return words;
}

int ordinal_word(const std::string& word) {
  static const std::vector<std::string> ones = {"first", "second",  "third",  "fourth", "fifth",
                                                "sixth", "seventh", "eighth", "ninth"};
  static const std::map<std::string, int> further = {
      {"tenth", 10},      {"eleventh", 11},   {"twelfth", 12},   {"thirteenth", 13},
      {"fourteenth", 14}, {"fifteenth", 15},  {"sixteenth", 16}, {"seventeenth", 17},
      {"eighteenth", 18}, {"nineteenth", 19}, {"twentieth", 20}, {"thirtieth", 30}};
  if (const auto found = further.find(word); found != further.end()) return found->second;
  for (std::size_t i = 0; i < ones.size(); ++i) {
    const int n = static_cast<int>(i) + 1;
    if (word == ones[i]) return n;
    if (word == "twenty-" + ones[i]) return 20 + n;
    if (word == "thirty-" + ones[i]) return 30 + n;
  }
  return 0;
}

/// Parses a date of digits and separators.
Read read_numbers(const std::string& text) {
  if (text.size() == 8 && text.find_first_not_of("0123456789") == std::string::npos) {
    return {.year = std::stoi(text.substr(0, 4)),
            .month = std::stoi(text.substr(4, 2)),
            .day = std::stoi(text.substr(6))};
  }
  const char separator = text[text.find_first_not_of("0123456789")];
  const auto parts = split_at(text, separator);
  BOOST_REQUIRE(parts.size() == 3u);
  const int a = std::stoi(parts[0]), b = std::stoi(parts[1]), c = std::stoi(parts[2]);
  if (parts[0].size() == 4) return {.year = a, .month = b, .day = c};
  const int year = parts[2].size() == 4 ? c : century(c);
  if (separator == '/') return {.year = year, .month = a, .day = b};
  return {.year = year, .month = b, .day = a};
}

/// The suffix of an English ordinal from 1 to 31.
std::string suffix_of(int day) {
  static const std::map<int, std::string> exceptions = {
      {1, "st"}, {2, "nd"}, {3, "rd"}, {21, "st"}, {22, "nd"}, {23, "rd"}, {31, "st"}};
  const auto found = exceptions.find(day);
  return found == exceptions.end() ? "th" : found->second;
}

Read read_date(const std::string& written) {
  if (written.find("年") != std::string::npos) return read_chinese(written);
  if (written.find_first_not_of("0123456789-/.") == std::string::npos) return read_numbers(written);
  // Splits the text into runs of digits and runs of letters; a hyphen belongs only to words such as
  // twenty-first.
  Read date;
  std::vector<std::string> tokens;
  std::string lower;
  for (const char c : written) lower += static_cast<char>(c & 0x80 ? c : std::tolower(c));
  for (std::size_t at = 0; at < lower.size();) {
    const auto run = [&](auto belongs) {
      std::size_t end = at;
      while (end < lower.size() && belongs(end)) ++end;
      tokens.push_back(lower.substr(at, end - at));
      at = end;
    };
    const auto digit = [&](std::size_t i) { return lower[i] >= '0' && lower[i] <= '9'; };
    const auto letter = [&](std::size_t i) {
      return (lower[i] & 0x80) || (lower[i] >= 'a' && lower[i] <= 'z');
    };
    const auto hyphen = [&](std::size_t i) {
      return lower[i] == '-' && letter(i - 1) && i + 1 < lower.size() && letter(i + 1);
    };
    if (digit(at)) {
      run(digit);
    } else if (letter(at)) {
      run([&](std::size_t i) { return letter(i) || hyphen(i); });
    } else {
      ++at;
    }
  }
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (token[0] >= '0' && token[0] <= '9') {
      numbers.push_back(token);
    } else if (const auto m = month_words().find(token); m != month_words().end()) {
      BOOST_TEST(date.month == 0, written);
      date.month = m->second;
    } else if (const auto w = weekday_words().find(token); w != weekday_words().end()) {
      date.weekday = w->second;
    } else if (const int n = ordinal_word(token)) {
      date.day = n;
    } else {
      static const std::set<std::string> fillers = {"the", "of",  "st", "nd", "rd",
                                                    "th",  "den", "le", "er", "de"};
      BOOST_TEST(fillers.contains(token), "unknown word " << token << " in " << written);
      if (token == "st" || token == "nd" || token == "rd" || token == "th")
        BOOST_TEST(token == suffix_of(std::stoi(tokens.at(i - 1))), written);
    }
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const int n = std::stoi(numbers[i]);
    if (numbers[i].size() == 4) {
      date.year = n;
    } else if (date.day == 0) {
      date.day = n;
    } else {
      date.year = century(n);
    }
  }
  return date;
}

void check(const std::string& written, std::chrono::sys_days day) {
  const std::chrono::year_month_day ymd{day};
  const int y = static_cast<int>(ymd.year()),
            m = static_cast<int>(static_cast<unsigned>(ymd.month())),
            d = static_cast<int>(static_cast<unsigned>(ymd.day()));
  const Read read = read_date(written);
  BOOST_TEST((read.year == y && read.month == m && read.day == d),
             written << " was read as " << read.year << "-" << read.month << "-" << read.day);
  if (read.weekday >= 0) BOOST_TEST(read.weekday == weekday(y, m, d), written);
}

}  // namespace

BOOST_AUTO_TEST_CASE(dates_in_every_form_are_parsed_correctly) {
  Random random({.seed = 1, .stream = Stream::check});
  BOOST_TEST(date_forms() >= 20);
  using namespace std::chrono;
  for (int form = 0; form < date_forms(); ++form) {
    // Every form is allowed from 1969 to 2068. Steps of 37 days reach all months and all days of a
    // month.
    for (sys_days day{year{1969} / 1 / 1}; day < sys_days{year{2069} / 1 / 1}; day += days(37)) {
      check(write_date(day, form, random), day);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_day_has_unambiguous_text) {
  Random random({.seed = 2, .stream = Stream::check});
  std::map<std::string, std::chrono::sys_days> meaning;
  for (int round = 0; round < 2; ++round) {
    for (auto day = first_date; day <= last_date; day += std::chrono::days(1)) {
      const auto written = write_date(day, random);
      check(written, day);
      const auto [entry, fresh] = meaning.emplace(written, day);
      if (!fresh && entry->second != day) BOOST_ERROR(written << " stands for two different days");
    }
  }
}

BOOST_AUTO_TEST_CASE(iso_date_has_form_yyyy_mm_dd) {
  using namespace std::chrono;
  BOOST_TEST(iso_date(sys_days{year{2021} / 3 / 3}) == "2021-03-03");
  BOOST_TEST(iso_date(first_date) == "1900-01-01");
  BOOST_TEST(iso_date(last_date) == "2099-12-31");
  BOOST_TEST(iso_date(sys_days{year{2000} / 2 / 29}) == "2000-02-29");
}

BOOST_AUTO_TEST_CASE(expected_date_forms_occur) {
  using namespace std::chrono;
  const sys_days day{year{2021} / 3 / 3};
  Random random({.seed = 3, .stream = Stream::check});
  std::set<std::string> seen;
  for (int i = 0; i < 20000; ++i) seen.insert(write_date(day, random));
  for (const char* form : {"2021-03-03",
                           "3 March 2021",
                           "March 3rd, 2021",
                           "03/03/21",
                           "Wednesday, 3 Mar 2021",
                           "the 3rd of March 2021",
                           "2021年3月3日",
                           "二〇二一年三月三日",
                           "三月三日，二〇二一年",
                           "3.3.2021",
                           "3. März 2021",
                           "3 mars 2021",
                           "WEDNESDAY, MARCH 3, 2021",
                           "3 march 2021",
                           "3 de marzo de 2021",
                           "3.III.2021",
                           "3 Mar 2021",
                           "the third of March 2021",
                           "2021年3月3日 星期三",
                           "20210303"}) {
    BOOST_TEST(seen.contains(form), form << " did not occur");
  }
}

BOOST_AUTO_TEST_SUITE_END()
