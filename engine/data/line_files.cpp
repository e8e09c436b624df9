#include "engine/data/line_files.h"

#include <zlib.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t longest_line = 256u << 20;

}  // namespace

bool is_line_file(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const char* ending : {".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".json.gz"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

Status add_lines(const fs::path& file, const std::string& field, CorpusWriter& writer, std::stop_token stop) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> stream(::gzopen(file.c_str(), "rb"), ::gzclose);
  if (!stream) return tl::unexpected(file_error("cannot read", file, errno));
  std::int64_t number = 0;
  const auto add = [&](std::string_view line) -> Status {
    ++number;
    if (trim(line).empty()) return {};
    const auto bad = [&](const std::string& why) {
      return failed(file.string() + ", line " + std::to_string(number) + ": " + why,
                    "remove the file, to have it fetched again");
    };
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return bad("is no JSON object: " + printable(line, 60));
    const auto text = json.find(field);
    if (text == json.end() || !text->is_string()) return bad("has no text \"" + field + "\"");
    return writer.add(text->get_ref<const std::string&>());
  };
  std::string pending;
  std::string piece(1 << 20, '\0');
  for (;;) {
    if (stop.stop_requested()) return stopped(file.string() + ": stopped while it was read");
    const int n = ::gzread(stream.get(), piece.data(), static_cast<unsigned>(piece.size()));
    int code = Z_OK;
    const char* const why = ::gzerror(stream.get(), &code);
    if (n < 0 || code != Z_OK) return failed(file.string() + ": " + why, "remove the file, to have it fetched again");
    if (n == 0) break;
    std::string_view rest(piece.data(), static_cast<std::size_t>(n));
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      pending.append(rest.substr(0, end));
      if (Status added = add(pending); !added) return added;
      pending.clear();
      rest.remove_prefix(end + 1);
    }
    pending.append(rest);
    if (pending.size() > longest_line)
      return failed(file.string() + ", line " + std::to_string(number + 1) + ": is longer than " +
                    format_bytes(static_cast<double>(longest_line)));
  }
  return pending.empty() ? Status() : add(pending);
}

}  // namespace stacklab
