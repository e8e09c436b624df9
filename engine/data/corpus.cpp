#include "engine/data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/json_reader.h"

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

static_assert(std::endian::native == std::endian::little, "the index is read where it lies");

std::string index_header_of(std::uint64_t documents, std::uint64_t bytes) {
  std::string header(index_magic);
  put_number(header, format_version);
  put_number(header, std::uint32_t{0});
  put_number(header, documents);
  put_number(header, bytes);
  return header;
}

tl::unexpected<Error> bad_file(const fs::path& file, const std::string& why) {
  return failed(file.string() + ": " + why, "remove the folder " + file.parent_path().string() +
                                                "; a corpus of the catalogue is made again when it is needed");
}

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
  std::error_code error;
  if (fs::is_directory(dir, error) && !fs::exists(fs::symlink_status(file, error)))
    return failed(file.string() + ": No such file, and without it the folder is no corpus",
                  "take files of your own in with: stacklab corpus add " + dir.string() +
                      " --name NAME; else remove the folder, and a corpus of the catalogue is made again");
  Result<std::string> text = read_file(file, largest_manifest);
  if (!text) return tl::unexpected(text.error());
  const auto parsed = parse_json_object(*text);
  if (!parsed) return bad_file(file, parsed.error());
  const Json& json = *parsed;

  Manifest manifest;
  CorpusInfo& info = manifest.info;
  JsonFields top(json);
  const std::string format = top.text("format");
  const std::int64_t version = top.count("version");
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
  info.documents = top.count("documents");
  info.bytes = top.count("bytes");
  const Json &sources = top.list("sources"), &files = top.object("files");
  if (!top.error().empty()) return bad_file(file, top.error());

  for (const Json& source : sources) {
    JsonFields reader(source, "sources.");
    info.sources.push_back({reader.text("name"), reader.text("version"), reader.text("sha256"), reader.count("bytes")});
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  JsonFields named(files, "files.");
  for (auto [name, record] : {std::pair(documents_file, &manifest.documents), std::pair(index_file, &manifest.index)}) {
    JsonFields reader(named.object(name.data()), fmt::format("files.{}.", name));
    if (!named.error().empty()) return bad_file(file, named.error());
    *record = {reader.count("bytes"), reader.text("sha256")};
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  if (files.contains(licence_file)) {
    JsonFields reader(files[licence_file], "files.licence.txt.");
    manifest.licence = FileRecord{reader.count("bytes"), reader.text("sha256")};
    if (!reader.error().empty()) return bad_file(file, reader.error());
  }
  info.sha256 = manifest.documents.sha256;
  return manifest;
}

// A file that must be as the manifest says. It is read in pieces, so that its size costs no memory.
Status check_recorded(const fs::path& file, const FileRecord& record) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return bad_file(file, "cannot be read: " + error.message());
  if (size != static_cast<std::uintmax_t>(record.bytes)) {
    return bad_file(file, "has " + std::to_string(size) + " bytes, the manifest says " + std::to_string(record.bytes));
  }
  const Result<std::string> digest = sha256_file(file);
  if (!digest) return tl::unexpected(digest.error());
  if (*digest != record.sha256) return bad_file(file, "its SHA-256 is not the manifest's");
  return {};
}

Result<std::shared_ptr<const MappedFile>> map_recorded(const fs::path& file, const FileRecord& record) {
  if (Status fine = check_recorded(file, record); !fine) return tl::unexpected(fine.error());
  Result<MappedFile> mapped = MappedFile::open(file);
  if (!mapped) return tl::unexpected(mapped.error());
  if (mapped->bytes().size() != static_cast<std::size_t>(record.bytes))
    return bad_file(file, "changed while it was read");
  return std::make_shared<const MappedFile>(std::move(*mapped));
}

Result<std::span<const std::uint64_t>> read_index(const fs::path& file, std::span<const std::byte> index,
                                                  const CorpusInfo& info) {
  if (index.size() < index_header || std::memcmp(index.data(), index_magic.data(), index_magic.size()) != 0)
    return bad_file(file, "is not an index of documents");
  if (const auto version = get_number<std::uint32_t>(index, 8);
      version != format_version || get_number<std::uint32_t>(index, 12) != 0) {
    return bad_file(file, "is of version " + std::to_string(version) + ", not " + std::to_string(format_version));
  }
  const std::size_t entries = (index.size() - index_header) / 8;
  const auto documents = get_number<std::uint64_t>(index, 16), bytes = get_number<std::uint64_t>(index, 24);
  if ((index.size() - index_header) % 8 != 0 || entries == 0 || documents != entries - 1) {
    return bad_file(file, "is for " + std::to_string(documents) + " documents, but " + std::to_string(index.size()) +
                              " bytes long");
  }
  if (documents != static_cast<std::uint64_t>(info.documents) || bytes != static_cast<std::uint64_t>(info.bytes)) {
    return bad_file(file, "says " + std::to_string(documents) + " documents and " + std::to_string(bytes) +
                              " bytes, the manifest " + std::to_string(info.documents) + " and " +
                              std::to_string(info.bytes));
  }
  const std::span offsets(reinterpret_cast<const std::uint64_t*>(index.data() + index_header), entries);
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

Result<CorpusInfo> Corpus::describe(const fs::path& dir) {
  Result<Manifest> manifest = read_manifest(dir);
  if (!manifest) return tl::unexpected(manifest.error());
  return std::move(manifest->info);
}

Result<Corpus> Corpus::open(const fs::path& dir) {
  Result<Manifest> manifest = read_manifest(dir);
  if (!manifest) return tl::unexpected(manifest.error());
  Corpus corpus;
  corpus.info_ = std::move(manifest->info);
  if (corpus.info_.bytes != manifest->documents.bytes) {
    return bad_file(dir / manifest_file, "\"bytes\" is not the size of " + std::string(documents_file));
  }
  auto index = map_recorded(dir / index_file, manifest->index);
  if (!index) return tl::unexpected(index.error());
  const auto offsets = read_index(dir / index_file, (*index)->bytes(), corpus.info_);
  if (!offsets) return tl::unexpected(offsets.error());
  if (manifest->licence) {
    if (Status fine = check_recorded(dir / licence_file, *manifest->licence); !fine)
      return tl::unexpected(fine.error());
  }
  auto bytes = map_recorded(dir / documents_file, manifest->documents);
  if (!bytes) return tl::unexpected(bytes.error());
  corpus.index_ = std::move(*index);
  corpus.bytes_ = std::move(*bytes);
  corpus.offsets_ = *offsets;
  const std::span<const std::byte> all = corpus.bytes_->bytes();
  corpus.documents_ = {reinterpret_cast<const std::uint8_t*>(all.data()), all.size()};
  return corpus;
}

void Corpus::release(std::span<const std::uint8_t> bytes) const {
  bytes_->release(static_cast<std::size_t>(bytes.data() - documents_.data()), bytes.size());
}

bool is_held_out(std::string_view sha256, double validation_fraction) {
  std::uint64_t hash = 0;
  std::from_chars(sha256.data(), sha256.data() + 13, hash, 16);  // 52 bits: exact in a double
  return static_cast<double>(hash) * 0x1p-52 < validation_fraction;
}

Corpus::Split Corpus::split(double validation_fraction) const {
  Split split;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::string digest = sha256_hex(std::as_bytes(document(i)));
    (is_held_out(digest, validation_fraction) ? split.validation : split.train).push_back(i);
  }
  return split;
}

Status expect_corpus_files(const fs::path& dir) {
  static constexpr std::array names = {documents_file, index_file, licence_file, manifest_file};
  return expect_only_files(dir, names);
}

Result<CorpusWriter> CorpusWriter::create(const fs::path& dir) {
  Result<AtomicDirectory> folder = AtomicDirectory::create(dir);
  if (!folder) return tl::unexpected(folder.error());
  CorpusWriter writer(std::move(*folder));
  for (auto [name, file] :
       {std::pair(documents_file, &writer.bytes_file_), std::pair(index_file, &writer.index_file_)}) {
    Result<OutputFile> created = OutputFile::create(writer.folder_.path() / name);
    if (!created) return tl::unexpected(created.error());
    *file = std::move(*created);
  }
  if (Status done = writer.index_file_.write(index_header_of(0, 0)); !done) return tl::unexpected(done.error());
  if (Status done = writer.put_offset(); !done) return tl::unexpected(done.error());
  return writer;
}

Status CorpusWriter::put_offset() {
  std::string offset;
  put_number(offset, static_cast<std::uint64_t>(bytes()));
  return index_file_.write(offset);
}

Status CorpusWriter::append(std::string_view part) {
  hash_.update(part);
  return bytes_file_.write(part);
}

Status CorpusWriter::end_document() {
  ++documents_;
  return put_offset();
}

Status CorpusWriter::add(std::string_view document) {
  if (Status done = append(document); !done) return done;
  return end_document();
}

Status CorpusWriter::commit(const CorpusInfo& info, std::string_view licence_text) {
  const std::int64_t size = bytes(), index_size = index_file_.size();
  const std::string header = index_header_of(static_cast<std::uint64_t>(documents_), static_cast<std::uint64_t>(size));
  if (Status done = index_file_.overwrite_start(header); !done) return done;
  for (OutputFile* file : {&bytes_file_, &index_file_})
    if (Status done = file->close(); !done) return done;
  const Result<std::string> index_hash = sha256_file(folder_.path() / index_file);
  if (!index_hash) return tl::unexpected(index_hash.error());
  Json files = Json::object();
  files[documents_file] = {{"bytes", size}, {"sha256", hash_.hex()}};
  files[index_file] = {{"bytes", index_size}, {"sha256", *index_hash}};
  if (!licence_text.empty()) {
    files[licence_file] = {{"bytes", licence_text.size()}, {"sha256", sha256_hex(licence_text)}};
    if (Status done = write_file_atomically(folder_.path() / licence_file, licence_text); !done) return done;
  }
  Json sources = Json::array();
  for (const CorpusSource& source : info.sources) {
    sources.push_back(
        {{"name", source.name}, {"version", source.version}, {"bytes", source.bytes}, {"sha256", source.sha256}});
  }
  const Json manifest = {{"format", format_name}, {"version", format_version}, {"name", info.name},
                         {"title", info.title},   {"licence", info.licence},   {"origin", info.origin},
                         {"sources", sources},    {"documents", documents_},   {"bytes", size},
                         {"files", files}};
  const std::string text = manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (Status done = write_file_atomically(folder_.path() / manifest_file, text); !done) return done;
  return folder_.commit();
}

Status write_corpus(const fs::path& dir, const CorpusInfo& info, const DocumentSet& documents,
                    std::string_view licence_text) {
  Result<CorpusWriter> writer = CorpusWriter::create(dir);
  if (!writer) return tl::unexpected(writer.error());
  const std::string_view all = documents.bytes;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::uint64_t begin = documents.offsets[i];
    if (Status done = writer->add(all.substr(begin, documents.offsets[i + 1] - begin)); !done) return done;
  }
  return writer->commit(info, licence_text);
}

}  // namespace stacklab
