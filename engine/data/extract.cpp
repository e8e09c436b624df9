#include "engine/data/extract.h"

#include <fnmatch.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "engine/base/atomic_file.h"
#include "engine/base/process.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

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

Result<Extracted> run_for_verses(const ExtractionRecipe& recipe, const fs::path& unpacked,
                                 const std::function<Status()>& fetch_libraries, std::stop_token stop) {
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

// How a file's text becomes documents.
Status add_text(const std::string& kind, std::string_view text, Extracted& out) {
  if (kind == "glosses") return add_glosses(text, out);
  constexpr std::pair<std::string_view, void (*)(std::string_view, Extracted&)> cutters[] = {
      {"files", add_whole}, {"fortunes", add_fortunes}, {"dictionary", add_dictionary}, {"sections", add_sections}};
  for (const auto& [name, cut] : cutters) {
    if (name == kind) return cut(text, out), Status();
  }
  return failed("unknown kind of extraction \"" + kind + "\"", "the catalogue is of another version of the program");
}

constexpr const char* another_version = "the package holds something else than this program knows";

Result<Extracted> read_files(const ExtractionRecipe& recipe, const fs::path& unpacked, std::stop_token stop) {
  constexpr std::int64_t most = 512 << 20;  // of all texts together
  Result<std::vector<std::string>> files = matching_files(unpacked, recipe.files);
  if (!files) return tl::unexpected(files.error());
  if (files->empty())
    return failed("no file \"" + recipe.files.front() + "\" in the unpacked packages", another_version);
  Extracted out;
  for (const std::string& file : *files) {
    if (stop.stop_requested()) return stopped("stopped while texts were read");
    const Result<std::string> text =
        read_text(unpacked / file, most - static_cast<std::int64_t>(out.documents.bytes.size()));
    if (!text) return tl::unexpected(text.error());
    if (Status added = add_text(recipe.kind, *text, out); !added)
      return failed(file + ": " + added.error().what, added.error().remedy);
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> matching_files(const fs::path& folder, const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (i->is_symlink(error) || !i->is_regular_file(error)) continue;
    const std::string path = i->path().lexically_relative(folder).string();
    bool named = false;
    for (const std::string& pattern : patterns) {
      const bool out = pattern.starts_with('!');
      if (::fnmatch(pattern.c_str() + (out ? 1 : 0), path.c_str(), 0) == 0) named = !out;
    }
    if (named) found.push_back(path);
  }
  if (error) return tl::unexpected(file_error("cannot read", folder, error.value()));
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::string> read_text(const fs::path& file, std::int64_t limit) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> stream(::gzopen(file.c_str(), "rb"), ::gzclose);
  if (!stream) return tl::unexpected(file_error("cannot read", file, errno));
  std::string text;
  constexpr std::size_t piece = 1 << 20;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    const int n = ::gzread(stream.get(), text.data() + before, piece);
    text.resize(before + static_cast<std::size_t>(std::max(n, 0)));
    int code = Z_OK;
    const char* const why = ::gzerror(stream.get(), &code);
    // A stream that ends too early is told by Z_BUF_ERROR.
    if (n < 0 || code != Z_OK) return failed(file.string() + ": " + why, "the package is damaged: fetch it again");
    if (static_cast<std::int64_t>(text.size()) > limit)
      return failed(file.string() + ": unpacks to more than " + format_bytes(static_cast<double>(limit)),
                    another_version);
    if (n == 0) return text;
  }
}

Result<Extracted> extract(const ExtractionRecipe& recipe, const fs::path& unpacked,
                          const std::function<Status()>& fetch_libraries, std::stop_token stop) {
  if (recipe.kind == "verses") return run_for_verses(recipe, unpacked, fetch_libraries, std::move(stop));
  return read_files(recipe, unpacked, std::move(stop));
}

}  // namespace stacklab
