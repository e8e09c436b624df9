#include "engine/data/extract.h"

#include <charconv>
#include <set>
#include <string>

#include "engine/base/process.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

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

// Folders of shared libraries in an unpacked package, as LD_LIBRARY_PATH wants them.
std::string library_folders(const fs::path& unpacked) {
  std::set<std::string> folders;
  std::error_code error;
  for (const char* top : {"lib", "usr/lib"}) {
    for (fs::recursive_directory_iterator i(unpacked / top, error), end; !error && i != end; i.increment(error)) {
      if (i->path().filename().string().find(".so.") != std::string::npos)
        folders.insert(i->path().parent_path().string());
    }
    error.clear();
  }
  std::string path;
  for (const std::string& folder : folders) path += (path.empty() ? "" : ":") + folder;
  return path;
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

Result<Extracted> extract(const ExtractionRecipe& recipe, const fs::path& unpacked,
                          const std::function<Status()>& fetch_libraries, std::stop_token stop) {
  if (recipe.kind != "verses")
    return failed("unknown kind of extraction \"" + recipe.kind + "\"",
                  "the catalogue is of another version of the program");
  ProcessOptions process;
  process.arguments = {(unpacked / recipe.program).string()};
  for (std::string argument : recipe.arguments) {
    constexpr std::string_view placeholder = "{unpacked}";
    if (const std::size_t at = argument.find(placeholder); at != std::string::npos) {
      argument.replace(at, placeholder.size(), unpacked.string());
    }
    process.arguments.push_back(std::move(argument));
  }
  process.environment = {{"LC_ALL", "C"}};
  process.output_limit = 64 << 20;
  process.timeout_seconds = 120;
  Result<ProcessResult> result = run_process(process, stop);
  if (result && result->exit_code == 127 && result->errors.find("shared librar") != std::string::npos) {
    if (Status fetched = fetch_libraries(); !fetched) return tl::unexpected(fetched.error());
    process.environment.emplace_back("LD_LIBRARY_PATH", library_folders(unpacked));
    result = run_process(process, stop);
  }
  if (!result) return tl::unexpected(result.error());
  if (result->exit_code != 0 || result->truncated) {
    return failed(recipe.program + " of the unpacked packages: exit code " + std::to_string(result->exit_code) + " " +
                      std::string(trim(result->errors)).substr(0, 200),
                  "the workspace must be on a disk from which programs may run");
  }
  return chapters_from_verses(result->output);
}

}  // namespace stacklab
