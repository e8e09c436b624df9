#include "engine/data/corpus.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view documents_file = "documents.bin", index_file = "documents.idx", licence_file = "licence.txt",
                           manifest_file = "manifest.json";
constexpr std::string_view format_name = "stacklab-corpus", index_magic = "SLDOCIDX";
constexpr std::uint32_t format_version = 1;
constexpr std::size_t index_header = 32;
constexpr std::int64_t largest_manifest = 1 << 20;

template <class T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

template <class T>
T get(std::string_view bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::string index_of(const DocumentSet& documents) {
  std::string index(index_magic);
  index.reserve(index_header + 8 * documents.offsets.size());
  put(index, format_version);
  put(index, std::uint32_t{0});
  put(index, std::uint64_t{documents.size()});
  put(index, std::uint64_t{documents.bytes.size()});
  for (const std::uint64_t offset : documents.offsets) put(index, offset);
  return index;
}

tl::unexpected<Error> bad_file(const fs::path& file, const std::string& why) {
  return failed(file.string() + ": " + why, "remove the folder " + file.parent_path().string() +
                                                "; a corpus of the catalogue is made again when it is needed");
}

// Reads fields of the manifest and remembers the first that is missing or of the wrong type.
class Reader {
 public:
  explicit Reader(const Json& object, std::string where = {}) : object_(object), where_(std::move(where)) {}

  std::string text(const char* key) {
    const Json* field = find(key);
    if (field && field->is_string()) return field->get<std::string>();
    return complain(key, "a text"), std::string();
  }
  std::int64_t size(const char* key) {
    const Json* field = find(key);
    if (field && field->is_number_integer() && *field >= 0 && *field <= std::int64_t{1} << 53)
      return field->get<std::int64_t>();
    return complain(key, "a whole number from 0"), 0;
  }
  const std::string& error() const { return error_; }

 private:
  const Json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(key);
    return at == object_.end() ? nullptr : &*at;
  }
  void complain(const char* key, const char* wanted) {
    if (error_.empty()) error_ = "\"" + where_ + key + "\" is missing or not " + wanted;
  }

  const Json& object_;
  std::string where_, error_;
};

struct FileRecord {
  std::int64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  CorpusInfo info;
  FileRecord documents, index;
  std::optional<FileRecord> licence;
};

Result<Manifest> read_manifest(const fs::path& dir) {
  const fs::path file = dir / manifest_file;
  Result<std::string> text = read_file(file, largest_manifest);
  if (!text) return tl::unexpected(text.error());
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return bad_file(file, "is not JSON, or not whole");

  Manifest manifest;
  CorpusInfo& info = manifest.info;
  Reader top(json);
  const std::string format = top.text("format");
  const std::int64_t version = top.size("version");
  if (!top.error().empty()) return bad_file(file, top.error());
  if (format != format_name) return bad_file(file, "is not the manifest of a corpus");
  if (version != format_version) {
    return failed(file.string() + ": format version " + std::to_string(version) + ", this program reads " +
                      std::to_string(format_version),
                  "use the program that made it, or remove the folder");
  }
  info.name = top.text("name");
  info.title = top.text("title");
  info.licence = top.text("licence");
  info.origin = top.text("origin");
  info.documents = top.size("documents");
  info.bytes = top.size("bytes");
  if (!top.error().empty()) return bad_file(file, top.error());

  const Json none = Json::object();
  const Json& sources = json.contains("sources") ? json["sources"] : none;
  if (!sources.is_array()) return bad_file(file, "\"sources\" is missing or not a list");
  for (const Json& source : sources) {
    Reader reader(source, "sources.");
    info.sources.push_back({reader.text("name"), reader.text("version"), reader.text("sha256"), reader.size("bytes")});
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  const Json& files = json.contains("files") ? json["files"] : none;
  for (auto [name, record] : {std::pair(documents_file, &manifest.documents), std::pair(index_file, &manifest.index)}) {
    Reader reader(files.is_object() && files.contains(name) ? files[name] : none, "files." + std::string(name) + ".");
    *record = {reader.size("bytes"), reader.text("sha256")};
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  if (files.contains(licence_file)) {
    Reader reader(files[licence_file], "files.licence.txt.");
    manifest.licence = FileRecord{reader.size("bytes"), reader.text("sha256")};
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  info.sha256 = manifest.documents.sha256;
  return manifest;
}

// The bytes of a file that must be as the manifest says. Sizes are compared before anything is allocated.
Result<std::string> read_recorded(const fs::path& file, const FileRecord& record) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return bad_file(file, "cannot be read: " + error.message());
  if (size != static_cast<std::uintmax_t>(record.bytes)) {
    return bad_file(file, "has " + std::to_string(size) + " bytes, the manifest says " + std::to_string(record.bytes));
  }
  Result<std::string> bytes = read_file(file, record.bytes);
  if (!bytes) return bytes;
  if (bytes->size() != static_cast<std::size_t>(record.bytes)) return bad_file(file, "changed while it was read");
  if (sha256_hex(std::string_view(*bytes)) != record.sha256) return bad_file(file, "its SHA-256 is not the manifest's");
  return bytes;
}

Result<std::vector<std::uint64_t>> read_index(const fs::path& file, std::string_view index, const CorpusInfo& info) {
  if (index.size() < index_header || !index.starts_with(index_magic))
    return bad_file(file, "is not an index of documents");
  if (const auto version = get<std::uint32_t>(index, 8);
      version != format_version || get<std::uint32_t>(index, 12) != 0) {
    return bad_file(file, "is of version " + std::to_string(version) + ", not " + std::to_string(format_version));
  }
  const std::size_t entries = (index.size() - index_header) / 8;
  const std::uint64_t documents = get<std::uint64_t>(index, 16), bytes = get<std::uint64_t>(index, 24);
  if ((index.size() - index_header) % 8 != 0 || entries == 0 || documents != entries - 1) {
    return bad_file(file, "is for " + std::to_string(documents) + " documents, but " + std::to_string(index.size()) +
                              " bytes long");
  }
  if (documents != static_cast<std::uint64_t>(info.documents) || bytes != static_cast<std::uint64_t>(info.bytes)) {
    return bad_file(file, "says " + std::to_string(documents) + " documents and " + std::to_string(bytes) +
                              " bytes, the manifest " + std::to_string(info.documents) + " and " +
                              std::to_string(info.bytes));
  }
  std::vector<std::uint64_t> offsets(entries);
  for (std::size_t i = 0; i < entries; ++i) offsets[i] = get<std::uint64_t>(index, index_header + 8 * i);
  if (offsets.front() != 0) return bad_file(file, "the first document begins at " + std::to_string(offsets.front()));
  for (std::size_t i = 1; i < entries; ++i) {
    if (offsets[i] < offsets[i - 1])
      return bad_file(file, "document " + std::to_string(i - 1) + " ends before it begins");
  }
  if (offsets.back() != bytes) {
    return bad_file(file, "the last document ends at " + std::to_string(offsets.back()) + " of " +
                              std::to_string(bytes) + " bytes");
  }
  return offsets;
}

}  // namespace

Result<Corpus> Corpus::open(const fs::path& dir) {
  Result<Manifest> manifest = read_manifest(dir);
  if (!manifest) return tl::unexpected(manifest.error());
  Corpus corpus;
  corpus.info_ = std::move(manifest->info);
  if (corpus.info_.bytes != manifest->documents.bytes) {
    return bad_file(dir / manifest_file, "\"bytes\" is not the size of " + std::string(documents_file));
  }
  Result<std::string> index = read_recorded(dir / index_file, manifest->index);
  if (!index) return tl::unexpected(index.error());
  Result<std::vector<std::uint64_t>> offsets = read_index(dir / index_file, *index, corpus.info_);
  if (!offsets) return tl::unexpected(offsets.error());
  if (manifest->licence) {
    const Result<std::string> licence = read_recorded(dir / licence_file, *manifest->licence);
    if (!licence) return tl::unexpected(licence.error());
  }
  Result<std::string> bytes = read_recorded(dir / documents_file, manifest->documents);
  if (!bytes) return tl::unexpected(bytes.error());
  corpus.documents_ = {std::move(*bytes), std::move(*offsets)};
  return corpus;
}

Corpus::Split Corpus::split(double validation_fraction) const {
  Split split;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto bytes = document(i);
    const std::string digest = sha256_hex(std::as_bytes(bytes));
    std::uint64_t hash = 0;
    std::from_chars(digest.data(), digest.data() + 13, hash, 16);  // 52 bits: exact in a double
    (static_cast<double>(hash) * 0x1p-52 < validation_fraction ? split.validation : split.train).push_back(i);
  }
  return split;
}

Status write_corpus(const fs::path& dir, const CorpusInfo& info, const DocumentSet& documents,
                    std::string_view licence_text) {
  Json files = Json::object();
  Result<AtomicDirectory> folder = AtomicDirectory::create(dir);
  if (!folder) return tl::unexpected(folder.error());
  const auto write = [&](std::string_view name, std::string_view bytes) -> Status {
    files[name] = {{"bytes", bytes.size()}, {"sha256", sha256_hex(bytes)}};
    return write_file_atomically(folder->path() / name, bytes);
  };
  if (Status done = write(documents_file, documents.bytes); !done) return done;
  if (Status done = write(index_file, index_of(documents)); !done) return done;
  if (!licence_text.empty()) {
    if (Status done = write(licence_file, licence_text); !done) return done;
  }
  Json sources = Json::array();
  for (const CorpusSource& source : info.sources) {
    sources.push_back(
        {{"name", source.name}, {"version", source.version}, {"bytes", source.bytes}, {"sha256", source.sha256}});
  }
  const Json manifest = {{"format", format_name}, {"version", format_version},     {"name", info.name},
                         {"title", info.title},   {"licence", info.licence},       {"origin", info.origin},
                         {"sources", sources},    {"documents", documents.size()}, {"bytes", documents.bytes.size()},
                         {"files", files}};
  const std::string text = manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (Status done = write_file_atomically(folder->path() / manifest_file, text); !done) return done;
  return folder->commit();
}

}  // namespace stacklab
