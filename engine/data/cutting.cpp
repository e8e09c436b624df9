#include "engine/data/cutting.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

#include "engine/base/text.h"

namespace stacklab {
namespace {

struct Reference {
  std::string_view book;  // may begin with a digit: "1Sm"
  std::int64_t chapter = 0, verse = 0;
};

bool read_number(std::string_view digits, std::int64_t& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() && value > 0;
}

bool read_reference(std::string_view text, Reference& reference) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  std::size_t chapter = colon;
  while (chapter > 0 && text[chapter - 1] >= '0' && text[chapter - 1] <= '9') --chapter;
  reference.book = text.substr(0, chapter);
  return !reference.book.empty() && read_number(text.substr(chapter, colon - chapter), reference.chapter) &&
         read_number(text.substr(colon + 1), reference.verse);
}

// Takes the next line, without its newline, off the text.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

bool is_blank(std::string_view line) { return trim(line).empty(); }

std::string without_overstrikes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\b') {
      out.push_back(text[i]);
    } else if (!out.empty() && out.back() != '\n') {
      // A whole character goes, however many bytes it has.
      while (out.size() > 1 && (out.back() & 0xc0) == 0x80) out.pop_back();
      out.pop_back();
    }
  }
  return out;
}

// Bytes of the blank at the start of text, 0 for none: printed books have blanks that do not break.
std::size_t blank(std::string_view text) { return text.starts_with(' ') ? 1 : text.starts_with("\xc2\xa0") ? 2 : 0; }

bool digit(char c) { return c >= '0' && c <= '9'; }

// "3.1.4. " or "A.1. " at the start; "1. " alone is an item of a list.
bool is_numbered(std::string_view line) {
  std::size_t at = 0, parts = 0;
  for (;;) {
    const std::size_t begin = at;
    if (parts == 0 && at < line.size() && line[at] >= 'A' && line[at] <= 'Z') ++at;
    if (at == begin) {
      while (at < line.size() && digit(line[at])) ++at;
    }
    if (at == begin || at >= line.size() || line[at] != '.') return false;
    ++at, ++parts;
    if (const std::size_t gap = blank(line.substr(at))) return parts >= 2 && at + gap < line.size();
  }
}

bool begins_section(std::string_view line) {
  constexpr std::string_view entry = "   :";
  if (line.starts_with(entry)) {
    const std::size_t end = line.find(':', entry.size() + 1);
    return end != std::string_view::npos && line[entry.size()] != ' ';
  }
  for (const std::string_view word : {"Chapter", "Appendix"}) {
    if (!line.starts_with(word)) continue;
    const std::size_t gap = blank(line.substr(word.size())), dot = line.find('.');
    if (gap && dot < word.size() + gap + 3 && blank(line.substr(dot + 1))) return true;
  }
  return is_numbered(line);
}

}  // namespace

Result<Extracted> chapters_from_verses(std::string_view text) {
  Extracted out;
  std::string chapter;
  std::string_view book;
  std::int64_t chapter_number = 0, verse_number = 0;
  std::set<std::string_view> books;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++out.lines;
    const auto bad = [&](const char* why) {
      return failed(
          "line " + std::to_string(out.lines) + " of the verses, \"" + std::string(line.substr(0, 40)) + "\": " + why,
          "the package holds something else than this program knows");
    };
    const std::size_t space = line.find(' ');
    Reference reference;
    if (space == std::string_view::npos || !read_reference(line.substr(0, space), reference)) {
      return bad("does not begin with a reference such as Ge1:1");
    }
    const std::string_view verse = line.substr(space + 1);
    if (trim(verse).empty()) return bad("has no text");
    for (const char c : verse) {
      if (static_cast<unsigned char>(c) < 0x20) return bad("has a control character");
    }
    if (reference.book == book && reference.chapter == chapter_number) {
      if (reference.verse != verse_number + 1) return bad("is not the next verse");
    } else {
      const bool same_book = reference.book == book;
      if (reference.chapter != (same_book ? chapter_number + 1 : 1) || reference.verse != 1 ||
          (!same_book && !books.insert(reference.book).second)) {
        return bad("is not the beginning of the next chapter or book");
      }
      if (!chapter.empty()) out.documents.add(chapter);
      chapter.clear();
      book = reference.book;
      chapter_number = reference.chapter;
    }
    verse_number = reference.verse;
    chapter.append(verse).push_back('\n');
  }
  if (!chapter.empty()) out.documents.add(chapter);
  return out;
}

void add_whole(std::string_view text, Extracted& out) {
  while (!text.empty()) {
    const std::size_t line = text.find('\n');
    if (!is_blank(text.substr(0, line))) break;
    text = line == std::string_view::npos ? std::string_view() : text.substr(line + 1);
  }
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return;
  out.documents.bytes.append(text.substr(0, last + 1));
  out.documents.add("\n");
}

void add_fortunes(std::string_view text, Extracted& out) {
  std::string entry;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (trim(line) == "%") {
      add_whole(without_overstrikes(entry), out);
      entry.clear();
    } else {
      entry.append(line).push_back('\n');
    }
  }
  add_whole(without_overstrikes(entry), out);
}

void add_dictionary(std::string_view text, Extracted& out) {
  const char* const begin = text.data();
  std::size_t entry = std::string_view::npos;
  const std::string_view all = text;
  bool after_blank = true;
  while (!text.empty()) {
    const std::size_t at = static_cast<std::size_t>(text.data() - begin);
    const std::string_view line = next_line(text);
    if (after_blank && !line.empty() && line[0] != ' ' && line.find(" \\") != std::string_view::npos) {
      if (entry != std::string_view::npos) add_whole(all.substr(entry, at - entry), out);
      entry = at;
    }
    after_blank = is_blank(line);
  }
  if (entry != std::string_view::npos) add_whole(all.substr(entry), out);
}

Status add_glosses(std::string_view text, Extracted& out) {
  constexpr std::size_t together = 64;  // some 5 KB
  std::string document;
  std::string_view subject;
  std::size_t glosses = 0;
  std::int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    ++number;
    if (line.starts_with("  ") && line.size() > 2 && (digit(line[2]) || line[2] == ' ')) continue;
    const std::size_t bar = line.find(" | ");
    const bool numbered = line.size() > 12 && line[8] == ' ' && line[11] == ' ' &&
                          std::all_of(line.begin(), line.begin() + 8, digit) && digit(line[9]) && digit(line[10]);
    if (!numbered || bar == std::string_view::npos || is_blank(line.substr(bar + 3))) {
      return failed("line " + std::to_string(number) + " of the glosses, \"" + printable(line, 40) + "\": has no gloss",
                    "the package holds something else than this program knows");
    }
    if (glosses == together || subject != line.substr(9, 2)) {
      add_whole(document, out);
      document.clear();
      glosses = 0;
    }
    subject = line.substr(9, 2);
    document.append(trim(line.substr(bar + 3))).push_back('\n');
    ++glosses, ++out.lines;
  }
  add_whole(document, out);
  return {};
}

void add_sections(std::string_view text, Extracted& out) {
  std::string section;
  bool has_text = false;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (begins_section(line)) {
      if (has_text) {
        add_whole(section, out);
        section.clear();
      }
      has_text = false;
    } else {
      has_text = has_text || !is_blank(line);
    }
    section.append(line).push_back('\n');
  }
  add_whole(section, out);
}

}  // namespace stacklab
