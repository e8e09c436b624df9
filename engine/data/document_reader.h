// Documents out of files: plain text, JSON lines, Parquet; packed by gzip or zstd or not. A piece of a file is in
// memory at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace stacklab {

enum class FileKind { text, json_lines, parquet };

// A line is in memory as a whole, and some four times as large while it is parsed.
inline constexpr std::size_t longest_json_line = std::size_t{32} << 20;

struct ReadOptions {
  // Of plain text: where it stands, a document ends; it belongs to none. Empty: the file is one document.
  std::string separator;
  bool blank_lines = false;    // lines without a character are what separates
  std::string field = "text";  // of JSON lines and Parquet; "a.b" is b inside a
};

// By the name; what is packed by the name inside. Empty: a kind that is not known.
std::optional<FileKind> kind_of_name(const std::filesystem::path& file);
// What a file without text is by its first bytes, "a PDF file"; empty: nothing that is known.
std::string_view foreign_kind(std::string_view start);

// Whether what a file holds, unpacked, may be text: a picture or an archive would be learnt letter by letter.
Status check_text(const std::filesystem::path& file);

// The SHA-256 and size of the file itself.
struct FileDigest {
  std::string sha256;
  std::int64_t bytes = 0;
};

// Takes a document in parts; last: it ends with this one. An empty last part may end it.
using TakePart = std::function<Status(std::string_view part, bool last)>;
// Called now and then with the bytes of the file that are read.
using ReadSoFar = std::function<void(std::int64_t bytes)>;

// Bytes come as they are: byte order marks, line ends, NUL and broken UTF-8 too (JSON lines have to be UTF-8).
// Documents without a byte are left out. Errors name the file and the line or byte: unreadable, damaged, no JSON, no
// such field.
Result<FileDigest> read_documents(const std::filesystem::path& file, FileKind kind, const ReadOptions& options,
                                  const TakePart& take, const ReadSoFar& so_far, std::stop_token stop);

}  // namespace stacklab
