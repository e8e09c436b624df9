#include "engine/data/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/json_reader.h"
#include "engine/base/text.h"
#include "engine/data/byte_source.h"
#include "engine/data/parquet.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t block = std::size_t{1} << 20;

// Joins parts to documents, and leaves out those without a byte.
class Documents {
 public:
  explicit Documents(const TakePart& take) : take_(take) {}

  Status add(std::string_view part) {
    if (part.empty()) return {};
    open_ = true;
    return take_(part, false);
  }
  Status end() {
    if (!open_) return {};
    open_ = false;
    return take_({}, true);
  }
  bool open() const { return open_; }

 private:
  const TakePart& take_;
  bool open_ = false;
};

// Plain text: gets the file piece by piece.
class Splitter {
 public:
  Splitter(const ReadOptions& options, const TakePart& take) : options_(options), documents_(take) {}

  Status add(std::string_view piece) {
    if (options_.blank_lines) return add_lines(piece);
    if (options_.separator.empty()) return documents_.add(piece);
    const std::string& separator = options_.separator;
    held_.append(piece);
    std::size_t begin = 0;
    for (std::size_t at; (at = held_.find(separator, begin)) != std::string::npos; begin = at + separator.size()) {
      if (Status done = documents_.add(std::string_view(held_).substr(begin, at - begin)); !done) return done;
      if (Status done = documents_.end(); !done) return done;
    }
    // The last bytes may begin a separator.
    const std::size_t sure = std::max(begin, held_.size() - std::min(held_.size(), separator.size() - 1));
    if (Status done = documents_.add(std::string_view(held_).substr(begin, sure - begin)); !done) return done;
    held_.erase(0, sure);
    return {};
  }

  Status finish() {
    if (Status done = documents_.add(held_); !done) return done;
    return documents_.end();
  }

 private:
  // A line is blank when nothing, or a carriage return, is in it. The line end before it belongs to the document.
  Status add_lines(std::string_view piece) {
    while (!piece.empty()) {
      if (line_start_) {
        if (piece.front() == '\n') {
          held_.clear();
          piece.remove_prefix(1);
          if (Status done = documents_.end(); !done) return done;
          continue;
        }
        if (piece.front() == '\r' && held_.empty()) {
          held_ = "\r";
          piece.remove_prefix(1);
          continue;
        }
        if (Status done = documents_.add(held_); !done) return done;
        held_.clear();
        line_start_ = false;
      }
      const std::size_t newline = piece.find('\n');
      const std::size_t size = newline == std::string_view::npos ? piece.size() : newline + 1;
      if (Status done = documents_.add(piece.substr(0, size)); !done) return done;
      line_start_ = newline != std::string_view::npos;
      piece.remove_prefix(size);
    }
    return {};
  }

  const ReadOptions& options_;
  Documents documents_;
  std::string held_;  // may belong to what separates
  bool line_start_ = true;
};

// JSON lines: the same.
class LineReader {
 public:
  LineReader(const fs::path& file, const ReadOptions& options, const TakePart& take)
      : file_(file), path_(split(options.field, '.')), field_(options.field), take_(take) {}

  Status add(std::string_view piece) {
    while (!piece.empty()) {
      const std::size_t newline = piece.find('\n');
      line_.append(piece.substr(0, newline));
      if (line_.size() > longest_json_line) {
        ++number_;
        return failed(
            fmt::format("{}, line {}: is longer than {} MiB", file_.string(), number_, longest_json_line >> 20),
            "cut the text into several lines, or store it as plain text");
      }
      if (newline == std::string_view::npos) return {};
      piece.remove_prefix(newline + 1);
      if (Status done = take_line(); !done) return done;
    }
    return {};
  }
  Status finish() { return line_.empty() ? Status() : take_line(); }

 private:
  tl::unexpected<Error> bad(const std::string& why) const {
    return failed(fmt::format("{}, line {}: {}", file_.string(), number_, why),
                  "mend or remove the line; --field names the key of the text");
  }

  Status take_line() {
    ++number_;
    std::string_view line = line_;
    if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    line = trim(line);
    if (line.empty()) return line_.clear(), Status();
    if (has_nul(line)) return bad("has a NUL byte, which is not JSON");
    if (number_ == 1 && line.front() == '[')
      return failed(file_.string() + ": is one list in JSON, not a line for each document",
                    "turn it into lines, for example with: jq -c '.[]'");
    // What is deeper takes no memory, and nothing to walk it back from.
    bool deep = false;
    const auto shallow = [&deep](int depth, Json::parse_event_t, Json&) {
      deep |= depth > deepest_json;
      return depth <= deepest_json;
    };
    const Json json = Json::parse(line, shallow, /*allow_exceptions=*/false);
    if (deep) return bad(fmt::format("is nested deeper than {} levels", deepest_json));
    if (json.is_discarded()) return bad("is not JSON in UTF-8: " + printable(line, 60));
    const Json* at = &json;
    for (const std::string& key : path_) {
      if (!at->is_object() || !at->contains(key)) {
        std::string keys;
        if (json.is_object())
          for (const auto& [known, value] : json.items()) keys += (keys.empty() ? "" : ", ") + printable(known, 40);
        return bad(
            fmt::format("has no \"{}\"; its keys are: {}", field_, keys.empty() ? "none" : printable(keys, 200)));
      }
      at = &(*at)[key];
    }
    if (!at->is_string()) return bad(fmt::format("\"{}\" is {}, not a text", field_, at->type_name()));
    line_.clear();
    const std::string& text = at->get_ref<const std::string&>();
    return text.empty() ? Status() : take_(text, true);
  }

  const fs::path& file_;
  const std::vector<std::string> path_;
  const std::string& field_;
  const TakePart& take_;
  std::string line_;
  std::int64_t number_ = 0;
};

template <class Reader>
Result<FileDigest> read_pieces(ByteSource& source, Reader& reader, const ReadSoFar& so_far,
                               const std::stop_token& stop) {
  std::vector<char> buffer(block);
  for (;;) {
    if (stop.stop_requested()) return stopped("stopped while documents were read");
    const Result<std::size_t> n = source.read(buffer);
    if (!n) return tl::unexpected(n.error());
    so_far(source.file_bytes());
    if (*n == 0) break;
    if (Status done = reader.add(std::string_view(buffer.data(), *n)); !done) return tl::unexpected(done.error());
  }
  if (Status done = reader.finish(); !done) return tl::unexpected(done.error());
  return FileDigest{source.file_sha256(), source.file_bytes()};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

}  // namespace

std::optional<FileKind> kind_of_name(const fs::path& file) {
  fs::path name = lower(file.filename().string());
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  const std::string extension = name.extension().string();
  if (extension == ".parquet") return FileKind::parquet;
  for (const char* known : {".jsonl", ".ndjson", ".json"})
    if (extension == known) return FileKind::json_lines;
  for (const char* known :
       {".txt", ".text", ".md", ".rst", ".tex", ".org", ".html", ".htm", ".xml", ".csv", ".tsv", ".log",
        ".c",   ".h",    ".cc", ".cpp", ".hpp", ".py",  ".js",   ".ts",  ".rs",  ".go",  ".java"})
    if (extension == known) return FileKind::text;
  return {};
}

std::string_view foreign_kind(std::string_view start) {
  using namespace std::string_view_literals;
  static constexpr std::array kinds = {std::pair{"%PDF-"sv, "a PDF file"sv},
                                       std::pair{"PK\x03\x04"sv, "a ZIP archive or an office document"sv},
                                       std::pair{"\xFD"
                                                 "7zXZ\0"sv,
                                                 "packed by xz"sv},
                                       std::pair{"BZh"sv, "packed by bzip2"sv},
                                       std::pair{"7z\xBC\xAF\x27\x1C"sv, "a 7z archive"sv},
                                       std::pair{"\x89PNG"sv, "a picture"sv},
                                       std::pair{"\xFF\xD8\xFF"sv, "a picture"sv},
                                       std::pair{"SQLite format 3\0"sv, "a data base"sv},
                                       std::pair{"\x7F"
                                                 "ELF"sv,
                                                 "a program"sv},
                                       std::pair{"Rar!"sv, "a RAR archive"sv}};
  for (const auto& [magic, kind] : kinds)
    if (start.starts_with(magic)) return kind;
  return {};
}

Status check_text(const fs::path& file) {
  const auto source = open_bytes(file);
  if (!source) return tl::unexpected(source.error());
  std::string start(64, '\0');
  const Result<std::size_t> n = (*source)->read(start);
  if (!n) return tl::unexpected(n.error());
  start.resize(*n);
  const std::string_view kind = foreign_kind(start);
  if (kind.empty()) return {};
  return failed(fmt::format("{} is no text: it is {}", file.string(), kind), "turn it into text first");
}

Result<FileDigest> read_documents(const fs::path& file, FileKind kind, const ReadOptions& options, const TakePart& take,
                                  const ReadSoFar& so_far, std::stop_token stop) {
  if (kind == FileKind::parquet) return read_parquet(file, options.field, take, so_far, std::move(stop));
  auto source = open_bytes(file);
  if (!source) return tl::unexpected(source.error());
  if (kind == FileKind::json_lines) {
    LineReader reader(file, options, take);
    return read_pieces(**source, reader, so_far, stop);
  }
  Splitter reader(options, take);
  return read_pieces(**source, reader, so_far, stop);
}

}  // namespace stacklab
