#include "engine/data/shards.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/json_reader.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "shards are read where they lie");

constexpr std::string_view format_name = "stacklab-shards", shard_magic = "SLSHARD1", manifest_file = "manifest.json";
constexpr std::uint32_t format_version = 1;
constexpr std::size_t header_bytes = 64, hashed_at_once = std::size_t{1} << 20;
constexpr std::int64_t largest_manifest = std::int64_t{64} << 20;
constexpr std::int64_t most_tokens = std::int64_t{1} << 53;

tl::unexpected<Error> bad_file(const fs::path& file, const std::string& why) {
  return failed(file.string() + ": " + why,
                "remove the folder " + file.parent_path().string() + " and build its shards again");
}

std::string header_of(bool wide, std::uint64_t documents, std::uint64_t tokens) {
  std::string header(shard_magic);
  put_number(header, format_version);
  put_number(header, std::uint32_t{wide ? 4u : 2u});
  put_number(header, documents);
  put_number(header, tokens);
  header.resize(header_bytes, '\0');
  return header;
}

std::int64_t padded(std::int64_t bytes) { return (bytes + 7) / 8 * 8; }

// A name and nothing that leads elsewhere.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

std::string_view to_string(ShardRole role) { return role == ShardRole::train ? "train" : "held-out"; }

std::uint64_t document_hash(std::string_view sha256) {
  std::uint64_t hash = 0;
  std::from_chars(sha256.data(), sha256.data() + 16, hash, 16);
  return hash;
}

std::string ShardManifest::training_sha256() const {
  Sha256 hash;
  for (const ShardRecord& shard : shards)
    if (shard.role == ShardRole::train) hash.update(shard.sha256);
  return hash.hex();
}

std::int64_t ShardManifest::tokens(ShardRole role) const {
  std::int64_t sum = 0;
  for (const ShardRecord& shard : shards) sum += shard.role == role ? shard.tokens : 0;
  return sum;
}

std::int64_t ShardManifest::documents(ShardRole role) const {
  std::int64_t sum = 0;
  for (const ShardRecord& shard : shards) sum += shard.role == role ? shard.documents : 0;
  return sum;
}

Status write_shard_manifest(const fs::path& dir, const ShardManifest& manifest) {
  Json json = {{"format", format_name}, {"version", format_version}};
  json["recipe"] = Json::parse(manifest.recipe, nullptr, /*allow_exceptions=*/false);
  json["recipe_sha256"] = sha256_hex(std::string_view(manifest.recipe));
  json["corpus_hash"] = manifest.corpus_hash();
  json["tokenizer"] = {
      {"name", manifest.tokenizer}, {"sha256", manifest.tokenizer_sha256}, {"vocab_size", manifest.vocabulary_size}};
  json["tokenizer"]["end_of_document"] = manifest.end_of_document ? Json(*manifest.end_of_document) : Json();
  json["sources"] = Json::array();
  for (const ShardSource& source : manifest.sources)
    json["sources"].push_back({{"name", source.name},
                               {"weight", source.weight},
                               {"sha256", source.sha256},
                               {"documents", source.documents},
                               {"tokens", source.tokens},
                               {"bytes", source.text_bytes}});
  json["removed"] = Json::object();
  for (const auto& [reason, documents] : manifest.removed) json["removed"][reason] = documents;
  json["shards"] = Json::array();
  for (const ShardRecord& shard : manifest.shards)
    json["shards"].push_back({{"path", shard.path},
                              {"role", to_string(shard.role)},
                              {"source", shard.source},
                              {"documents", shard.documents},
                              {"tokens", shard.tokens},
                              {"bytes", shard.bytes},
                              {"sha256", shard.sha256}});
  return write_file_atomically(dir / manifest_file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<ShardManifest> read_shard_manifest(const fs::path& dir) {
  const fs::path file = dir / manifest_file;
  Result<std::string> text = read_file(file, largest_manifest);
  if (!text) return tl::unexpected(text.error());
  const auto parsed = parse_json_object(*text);
  if (!parsed) return bad_file(file, parsed.error());
  const Json& json = *parsed;
  JsonFields top(json);
  const std::string format = top.text("format");
  const std::int64_t version = top.count("version");
  if (!top.error().empty()) return bad_file(file, top.error());
  if (format != format_name) return bad_file(file, "is not the manifest of token shards");
  if (version != format_version)
    return failed(file.string() + ": format version " + std::to_string(version) + ", this program reads " +
                      std::to_string(format_version),
                  "use the program that made it, or build the shards again");

  ShardManifest manifest;
  const std::string corpus_hash = top.text("corpus_hash"), recipe_hash = top.text("recipe_sha256");
  const Json &recipe = top.object("recipe"), &coding = top.object("tokenizer"), &sources = top.list("sources"),
             &removed = top.object("removed"), &shards = top.list("shards");
  if (!top.error().empty()) return bad_file(file, top.error());
  // Keys are written sorted; what is read here must give the same text.
  manifest.recipe = nlohmann::json(recipe).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (sha256_hex(std::string_view(manifest.recipe)) != recipe_hash)
    return bad_file(file, "\"recipe_sha256\" is not the recipe's");

  JsonFields tokenizer(coding, "tokenizer.");
  manifest.tokenizer = tokenizer.text("name");
  manifest.tokenizer_sha256 = tokenizer.text("sha256");
  manifest.vocabulary_size = tokenizer.count("vocab_size");
  if (tokenizer.error().empty() && !coding.value("end_of_document", Json()).is_null()) {
    const std::int64_t end = tokenizer.count("end_of_document");
    if (end >= manifest.vocabulary_size)
      return bad_file(file, "\"tokenizer.end_of_document\" is not in the vocabulary");
    manifest.end_of_document = static_cast<std::int32_t>(end);
  }
  if (!tokenizer.error().empty()) return bad_file(file, tokenizer.error());
  if (manifest.vocabulary_size < 1 || manifest.vocabulary_size > std::int64_t{1} << 30)
    return bad_file(file, "\"tokenizer.vocab_size\" is out of range");

  for (const Json& entry : sources) {
    JsonFields reader(entry, "sources.");
    manifest.sources.push_back({reader.text("name"), reader.number("weight"), reader.text("sha256"),
                                reader.count("documents"), reader.count("tokens"), reader.count("bytes")});
    if (!reader.error().empty()) return bad_file(file, reader.error());
    if (manifest.sources.back().weight < 0) return bad_file(file, "\"sources.weight\" is below 0");
  }
  for (const auto& [reason, documents] : removed.items()) {
    if (!documents.is_number_unsigned()) return bad_file(file, "\"removed." + reason + "\" is not a whole number");
    manifest.removed[reason] = documents.get<std::int64_t>();
  }
  for (const Json& entry : shards) {
    JsonFields reader(entry, "shards.");
    ShardRecord shard;
    shard.path = reader.text("path");
    const std::string role = reader.text("role");
    shard.role = role == to_string(ShardRole::train) ? ShardRole::train : ShardRole::held_out;
    shard.source = static_cast<std::size_t>(reader.count("source"));
    shard.documents = reader.count("documents");
    shard.tokens = reader.count("tokens");
    shard.bytes = reader.count("bytes");
    shard.sha256 = reader.text("sha256");
    if (!reader.error().empty()) return bad_file(file, reader.error());
    if (!is_file_name(shard.path)) return bad_file(file, "\"shards.path\" is not the name of a file in the folder");
    if (role != to_string(shard.role))
      return bad_file(file, "\"shards.role\" of " + shard.path + " is \"" + role + "\"");
    if (shard.source >= manifest.sources.size())
      return bad_file(file, "\"shards.source\" of " + shard.path + " is not in the list of sources");
    if (!manifest.shards.empty() && manifest.shards.back().path >= shard.path)
      return bad_file(file, "\"shards\" are not in order of path, or " + shard.path + " is there twice");
    manifest.shards.push_back(std::move(shard));
  }
  if (manifest.corpus_hash() != corpus_hash)
    return bad_file(file, "\"corpus_hash\" is not that of its training shards");
  return manifest;
}

Result<Shard> Shard::open(const fs::path& dir, const ShardRecord& record, std::int64_t vocabulary_size,
                          std::stop_token stop) {
  const fs::path path = dir / record.path;
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return bad_file(path, mapped.error().what);
  const std::span<const std::byte> bytes = mapped->bytes();
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size != record.bytes)
    return bad_file(path, "has " + std::to_string(size) + " bytes, the manifest says " + std::to_string(record.bytes));
  if (bytes.size() < header_bytes || std::memcmp(bytes.data(), shard_magic.data(), shard_magic.size()) != 0)
    return bad_file(path, "is no token shard");
  const auto version = get_number<std::uint32_t>(bytes, 8), width = get_number<std::uint32_t>(bytes, 12);
  if (version != format_version)
    return bad_file(path, "is of version " + std::to_string(version) + ", not " + std::to_string(format_version));
  if (width != (vocabulary_size > 65536 ? 4u : 2u))
    return bad_file(path, "has tokens of " + std::to_string(width) + " bytes, which does not suit a vocabulary of " +
                              std::to_string(vocabulary_size));
  const auto documents = get_number<std::uint64_t>(bytes, 16), tokens = get_number<std::uint64_t>(bytes, 24);
  if (documents != static_cast<std::uint64_t>(record.documents) || tokens != static_cast<std::uint64_t>(record.tokens))
    return bad_file(path, "has " + std::to_string(documents) + " documents and " + std::to_string(tokens) +
                              " tokens, the manifest says " + std::to_string(record.documents) + " and " +
                              std::to_string(record.tokens));
  // The counts come from a file that anybody may have written: no product may overflow.
  if (record.tokens > most_tokens || record.documents > record.tokens ||
      static_cast<std::int64_t>(header_bytes) + padded(record.tokens * width) + 16 * record.documents != size)
    return bad_file(path, "its size does not fit its numbers of documents and tokens");

  Shard shard;
  shard.wide_ = width == 4;
  shard.tokens_ = bytes.data() + header_bytes;
  const std::size_t token_bytes = tokens * width,
                    index = header_bytes + static_cast<std::size_t>(padded(record.tokens * width));
  // One pass: hashed, and every token compared with the vocabulary, since models index by it.
  Sha256 hash;
  std::uint32_t largest = 0;
  for (std::size_t at = 0; at < bytes.size(); at += hashed_at_once) {
    if (stop.stop_requested()) return stopped("stopped while the shards were verified");
    const std::span<const std::byte> piece = bytes.subspan(at, std::min(hashed_at_once, bytes.size() - at));
    hash.update(piece);
    const std::size_t begin = std::max(at, header_bytes), end = std::min(at + piece.size(), header_bytes + token_bytes);
    const auto look = [&]<class T>(T) {
      const T* first = reinterpret_cast<const T*>(bytes.data() + begin);
      T most = 0;
      for (std::size_t i = 0; begin + i * sizeof(T) < end; ++i) most = std::max(most, first[i]);
      largest = std::max<std::uint32_t>(largest, most);
    };
    if (begin < end) shard.wide_ ? look(std::uint32_t{}) : look(std::uint16_t{});
    mapped->release(at, piece.size());
  }
  if (hash.hex() != record.sha256) return bad_file(path, "its SHA-256 is not the manifest's");
  if (tokens > 0 && static_cast<std::int64_t>(largest) >= vocabulary_size)
    return bad_file(
        path, "has a token " + std::to_string(largest) + ", but the vocabulary has " + std::to_string(vocabulary_size));
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data() + index);
  shard.ends_ = {words, static_cast<std::size_t>(documents)};
  shard.hashes_ = {words + documents, static_cast<std::size_t>(documents)};
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < shard.ends_.size(); ++i) {
    if (shard.ends_[i] <= before) return bad_file(path, "document " + std::to_string(i) + " ends before it begins");
    before = shard.ends_[i];
  }
  if (before != tokens) return bad_file(path, "its documents do not hold all of its tokens");
  shard.file_ = std::move(*mapped);
  return shard;
}

Result<ShardWriter> ShardWriter::create(const fs::path& path, bool wide) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file) return tl::unexpected(file.error());
  ShardWriter writer;
  writer.file_ = std::move(*file);
  writer.wide_ = wide;
  if (Status done = writer.file_.write(header_of(wide, 0, 0)); !done) return tl::unexpected(done.error());
  return writer;
}

Status ShardWriter::add(std::span<const std::int32_t> tokens) {
  const auto narrow = [&]<class T>(T) {
    buffer_.resize(tokens.size() * sizeof(T));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const T token = static_cast<T>(tokens[i]);
      std::memcpy(buffer_.data() + i * sizeof(T), &token, sizeof(T));
    }
  };
  wide_ ? narrow(std::uint32_t{}) : narrow(std::uint16_t{});
  tokens_ += static_cast<std::int64_t>(tokens.size());
  return file_.write(buffer_);
}

void ShardWriter::end_document(std::uint64_t hash) {
  ends_.push_back(static_cast<std::uint64_t>(tokens_));
  hashes_.push_back(hash);
}

Status ShardWriter::finish() {
  const auto padding = static_cast<std::size_t>(padded(file_.size()) - file_.size());
  if (Status done = file_.write(std::string(padding, '\0')); !done) return done;
  for (const std::vector<std::uint64_t>* words : {&ends_, &hashes_}) {
    const std::string_view bytes(reinterpret_cast<const char*>(words->data()), words->size() * sizeof(std::uint64_t));
    if (Status done = file_.write(bytes); !done) return done;
  }
  const std::string header = header_of(wide_, ends_.size(), static_cast<std::uint64_t>(tokens_));
  if (Status done = file_.overwrite_start(header); !done) return done;
  return file_.close();
}

}  // namespace stacklab
