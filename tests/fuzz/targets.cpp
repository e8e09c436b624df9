#include "tests/fuzz/targets.h"

#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/safetensors.h"
#include "engine/base/safetensors_shards.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/data/corpus.h"
#include "engine/data/cutting.h"
#include "engine/data/document_reader.h"
#include "engine/data/extract.h"
#include "engine/data/parquet.h"
#include "engine/data/recipe.h"
#include "engine/data/shards.h"
#include "engine/interop/hf_config.h"
#include "engine/run/provenance.h"
#include "engine/run/trainer_state.h"
#include "engine/store/records.h"
#include "engine/store/run_filter.h"
#include "engine/store/store.h"
#include "engine/store/store_reader.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace stacklab::fuzz {
namespace {

namespace fs = std::filesystem;

// A folder of this process, for readers that take a path.
const fs::path& scratch() {
  static const struct Folder {
    fs::path path;
    Folder() {
      std::string pattern =
          (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) / "stacklab-fuzz-XXXXXX";
      check(::mkdtemp(pattern.data()) != nullptr, "a folder for temporary files");
      path = pattern;
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  } folder;
  return folder.path;
}

std::string reason(const Status& status) { return status ? std::string() : status.error().what; }

void put(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

bool safetensors(std::string_view bytes) {
  const auto file = Safetensors::parse(std::as_bytes(std::span(bytes)), "fuzz");
  if (!file) return false;
  std::size_t sum = 0, covered = 0;
  for (const SafetensorsEntry& e : file->entries()) {
    for (const std::byte b : e.bytes) sum += static_cast<std::size_t>(b);
    covered += e.bytes.size();
    check(e.bytes.size() == static_cast<std::size_t>(e.elements() * bytes_per_element(e.type)), "bytes fit the shape");
    check(file->find(e.name) == &e, "a tensor is found by its name");
  }
  check(covered + 8 <= bytes.size() && sum + 1 > 0, "tensors lie in the file");
  return true;
}

bool tokenizer_json(std::string_view bytes) {
  const auto tokenizer = parse_tokenizer(bytes, "fuzz");
  if (!tokenizer) return false;
  // What was accepted must encode anything, and lose nothing but what its normalisation changes.
  std::vector<TokenId> ids;
  for (const std::string_view text : {std::string_view("Hello  world\n\xC3\xA9 \xFF"), bytes.substr(0, 200)}) {
    ids.clear();
    if (!tokenizer->encode(text, Specials::as_text, ids)) continue;
    check(tokenizer->decode(ids).has_value(), "ids of an encoding can be decoded");
  }
  return true;
}

bool run_config(std::string_view bytes) {
  const auto config = parse_config(bytes, "fuzz");
  if (!config) return false;
  const auto again = parse_config(to_json(*config), "fuzz");
  check(again && *again == *config, "a config reads back as written");
  check(config_hash(*again) == config_hash(*config), "and keeps its hash");
  static_cast<void>(validate(*config));
  return true;
}

bool hf_config(std::string_view bytes) {
  const auto config = parse_hf_config(bytes, "fuzz");
  if (!config) return false;
  RunConfig run;
  run.model = config->model;
  check(check_model(run).has_value(), "an accepted model is one");
  return true;
}

bool trainer_file(std::string_view bytes) {
  const auto file = parse_trainer_file(bytes, "fuzz");
  if (!file) return false;
  check(file->state.step >= 0 && file->state.skipped <= file->state.step, "steps are counts");
  check(parse_trainer_file(to_json(*file), "fuzz").has_value(), "reads back as written");
  return true;
}

bool provenance(std::string_view bytes) {
  const auto read = parse_provenance(bytes, "fuzz");
  if (!read) return false;
  const auto again = parse_provenance(to_json(*read), "fuzz");
  check(again && *again == *read, "reads back as written");
  check(differences(*read, *again).empty(), "and does not differ");
  return true;
}

// The corpus around the bytes is right: its manifest knows their size and hash.
bool corpus_index(std::string_view bytes) {
  const fs::path dir = scratch() / "index";
  fs::create_directories(dir);
  const std::string documents = "Once upon a time\na bird sang\n";
  put(dir / "documents.bin", documents);
  put(dir / "documents.idx", bytes);
  static const std::string manifest = [] {
    const fs::path made = scratch() / "made";
    DocumentSet set;
    set.add("Once upon a time\n");
    set.add("a bird sang\n");
    CorpusInfo info;
    info.name = "fuzz";
    check(write_corpus(made, info, set).has_value(), "a corpus to begin with");
    std::ifstream in(made / "manifest.json", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  // The index of the corpus that was made has 24 + 8 * 4 bytes.
  std::string text = manifest;
  const std::size_t at = text.find("documents.idx"), size = text.find("\"bytes\"", at),
                    sum = text.find("\"sha256\"", at);
  check(at != std::string::npos && size != std::string::npos && sum != std::string::npos, "the manifest has an index");
  const std::size_t sum_begin = text.find('"', text.find(':', sum)) + 1;
  text.replace(sum_begin, 64, sha256_hex(bytes));
  const std::size_t digits = text.find_first_of("0123456789", size), end = text.find_first_not_of("0123456789", digits);
  text.replace(digits, end - digits, std::to_string(bytes.size()));
  put(dir / "manifest.json", text);
  const auto corpus = Corpus::open(dir);
  if (!corpus) return false;
  std::size_t total = 0;
  for (std::size_t i = 0; i < corpus->size(); ++i) total += corpus->document(i).size();
  check(total == documents.size(), "documents are the bytes");
  return true;
}

bool corpus_manifest(std::string_view bytes) {
  const fs::path dir = scratch() / "manifest";
  fs::create_directories(dir);
  put(dir / "manifest.json", bytes);
  static_cast<void>(Corpus::open(dir));
  return Corpus::describe(dir).has_value();
}

bool shard_manifest(std::string_view bytes) {
  const fs::path dir = scratch() / "shards";
  fs::create_directories(dir);
  put(dir / "manifest.json", bytes);
  const auto manifest = read_shard_manifest(dir);
  if (!manifest) return false;
  check(write_shard_manifest(dir, *manifest).has_value() && read_shard_manifest(dir), "reads back as written");
  return true;
}

// The manifest is right about the file, and repeats what its header says.
bool shard_file(std::string_view bytes) {
  const fs::path dir = scratch() / "shard";
  fs::create_directories(dir);
  put(dir / "train-00000.bin", bytes);
  ShardRecord record;
  record.path = "train-00000.bin";
  record.bytes = std::ssize(bytes);
  record.sha256 = sha256_hex(bytes);
  if (bytes.size() >= 32) {
    std::memcpy(&record.documents, bytes.data() + 16, 8);
    std::memcpy(&record.tokens, bytes.data() + 24, 8);
  }
  if (record.documents < 0 || record.tokens < 0) return false;  // no manifest says so
  const auto shard = Shard::open(dir, record, 300, {});
  if (!shard) return false;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < shard->size(); ++i) {
    const TokenDocument document = shard->document(i);
    for (std::size_t t = 0; t < document.size(); ++t) check(document[t] >= 0 && document[t] < 300, "a token has an id");
    tokens += static_cast<std::int64_t>(document.size());
  }
  check(tokens == shard->tokens(), "documents are the tokens");
  return true;
}

bool extraction(std::string_view bytes) {
  if (bytes.empty()) return false;
  // The first byte chooses the cutter.
  const std::string_view text = bytes.substr(1);
  Extracted out;
  switch (static_cast<unsigned char>(bytes[0]) % 6) {
    case 0:
      return chapters_from_verses(text).has_value();
    case 1:
      add_whole(text, out);
      break;
    case 2:
      add_fortunes(text, out);
      break;
    case 3:
      add_dictionary(text, out);
      break;
    case 4:
      if (!add_glosses(text, out)) return false;
      break;
    default:
      add_sections(text, out);
      break;
  }
  check(out.documents.offsets.back() == out.documents.bytes.size(), "documents end where their bytes do");
  for (std::size_t i = 0; i < out.documents.size(); ++i)
    check(out.documents.offsets[i] <= out.documents.offsets[i + 1], "documents do not overlap");
  return true;
}

// Documents of a file, whole texts of it alone; the reader has one of these names, or nothing is told from its bytes.
bool documents(std::string_view bytes, const char* name, FileKind kind, const ReadOptions& options) {
  const fs::path file = scratch() / name;
  put(file, bytes);
  std::size_t size = 0, ends = 0, open = 0;
  const auto take = [&](std::string_view part, bool last) -> Status {
    size += part.size();
    open = last ? 0 : open + part.size();
    ends += last ? 1 : 0;
    // Some packed bytes are very many: enough is enough.
    return size > std::size_t{1} << 24 ? Status(failed("long enough")) : Status();
  };
  const auto read = read_documents(file, kind, options, take, [](std::int64_t) {}, {});
  if (!read) return false;
  check(open == 0, "every document ends");
  check(ends <= size, "no document is empty");
  check(read->bytes == std::ssize(bytes) && read->sha256 == sha256_hex(bytes), "the digest is the file's");
  return true;
}

bool text_file(std::string_view bytes) {
  if (bytes.empty()) return false;
  // The first byte says how documents are told apart.
  ReadOptions options;
  const int way = static_cast<unsigned char>(bytes[0]) % 4;
  options.blank_lines = way == 1;
  if (way == 2) options.separator = "\n--\n";
  if (way == 3) options.separator = "aab";
  return documents(bytes.substr(1), "text.txt", FileKind::text, options);
}

bool json_lines(std::string_view bytes) {
  ReadOptions nested;
  nested.field = "body.text";
  const bool plain = documents(bytes, "lines.jsonl", FileKind::json_lines, {});
  return documents(bytes, "lines.jsonl", FileKind::json_lines, nested) || plain;
}

bool gzip(std::string_view bytes) {
  const fs::path file = scratch() / "short.gz";
  put(file, bytes);
  constexpr std::int64_t limit = 1 << 20;
  const auto text = read_text(file, limit);
  if (text) check(std::ssize(*text) <= limit, "a text keeps its limit");
  return documents(bytes, "text.gz", FileKind::text, {}) || text;
}

bool zstd(std::string_view bytes) { return documents(bytes, "text.zst", FileKind::text, {}); }

bool parquet(std::string_view bytes) { return documents(bytes, "rows.parquet", FileKind::parquet, {}); }

bool recipe(std::string_view bytes) {
  const auto read = parse_recipe(bytes, "fuzz", "folder");
  if (!read) return false;
  check(!read->sources.empty() && read->shard_tokens > 0, "a recipe has something to read");
  for (const RecipeSource& source : read->sources)
    check(source.corpus.empty() != source.path.empty() && source.weight > 0, "a source is a corpus or a file");
  return true;
}

bool safetensors_index(std::string_view bytes) {
  const fs::path dir = scratch() / "model";
  static const bool made = [&] {
    fs::create_directories(dir);
    constexpr std::string_view header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    put(dir / "model-1.safetensors", file.append(header).append(4, '\0'));
    return true;
  }();
  check(made, "a file to point at");
  put(dir / "model.safetensors.index.json", bytes);
  const auto model = SafetensorsShards::open(dir / "model.safetensors.index.json");
  if (!model) return false;
  for (const std::string& name : model->names()) check(model->find(name) != nullptr, "a tensor is found by its name");
  return true;
}

bool run_filter(std::string_view bytes) {
  static const auto store = Store::open(scratch() / "workspace");
  static const auto reader = open_store_reader(scratch() / "workspace");
  check(store && reader, "a store to ask");
  for (std::size_t at = 0; at <= bytes.size() && at < 64; ++at) {
    const FilterCompletions offers = complete_run_filter(bytes, at, {{"tag"}, {"grad_norm"}, {"name"}});
    check(offers.from <= offers.to && offers.to <= bytes.size(), "what is replaced lies in the text");
  }
  const auto filter = parse_run_filter(bytes);
  if (!filter) {
    check(filter.error().at + filter.error().length <= bytes.size(), "a fault lies in the text");
    static_cast<void>(to_error(filter.error(), bytes));
    return false;
  }
  RunQuery query;
  query.filter = *filter;
  check((*reader)->runs(query).has_value(), "what is understood can be asked");
  return true;
}

bool spill_line(std::string_view bytes) {
  bool any = false;
  for (const std::string& line : split(bytes, '\n')) {
    const auto record = store::from_json_line(line);
    if (!record) continue;
    const auto again = store::from_json_line(store::to_json_line(*record));
    check(again.has_value(), "a record reads back as written");
    check(store::to_json_line(*again) == store::to_json_line(*record), "with the same words");
    any = true;
  }
  return any;
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"safetensors", safetensors, {"golden/malformed/safetensors"}},
                                          {"tokenizer_json", tokenizer_json, {"golden/malformed/tokenizer"}},
                                          {"run_config", run_config, {"golden/malformed/config", "../experiments"}},
                                          {"hf_config", hf_config, {"golden/malformed/config"}},
                                          {"trainer_file", trainer_file, {}},
                                          {"provenance", provenance, {}},
                                          {"corpus_index", corpus_index, {}},
                                          {"corpus_manifest", corpus_manifest, {}},
                                          {"shard_manifest", shard_manifest, {}},
                                          {"shard_file", shard_file, {}},
                                          {"extraction", extraction, {}},
                                          {"text_file", text_file, {}},
                                          {"json_lines", json_lines, {}},
                                          {"gzip", gzip, {}},
                                          {"zstd", zstd, {}},
                                          {"parquet", parquet, {"engine/data/parquet"}, reason(parquet_available())},
                                          {"recipe", recipe, {}},
                                          {"safetensors_index", safetensors_index, {}},
                                          {"run_filter", run_filter, {}},
                                          {"spill_line", spill_line, {}}};
  return all;
}

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace stacklab::fuzz
