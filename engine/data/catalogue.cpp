#include "engine/data/catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/data/extract.h"
#include "engine/data/packages.h"
#include "engine/data/tinyworld.h"
#include "engine/data/tinyworld_lexicon.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Reads an entry's fields and remembers the first that is missing or of the wrong type.
class Fields {
 public:
  explicit Fields(const Json& object, std::string& error) : object_(object), error_(error) {}

  std::string text(const char* key) const {
    const Json& field = get(key);
    if (!field.is_string() || field.get_ref<const std::string&>().empty())
      return complain(key, "a text"), std::string();
    return field.get<std::string>();
  }
  std::vector<std::string> texts(const char* key, bool required) const {
    const Json& field = get(key);
    if (field.is_null() && !required) return {};
    std::vector<std::string> out;
    if (field.is_array() && std::all_of(field.begin(), field.end(), [](const Json& e) { return e.is_string(); })) {
      out = field.get<std::vector<std::string>>();
    }
    if (out.empty()) complain(key, "a list of texts");
    return out;
  }
  std::int64_t count(const char* key, bool required) const {
    const Json& field = get(key);
    if (field.is_null() && !required) return 0;
    if (!field.is_number_unsigned()) return complain(key, "a whole number"), 0;
    return field.get<std::int64_t>();
  }
  const Json& get(const char* key) const {
    static const Json nothing;
    const auto at = object_.is_object() ? object_.find(key) : object_.end();
    return object_.is_object() && at != object_.end() ? *at : nothing;
  }

 private:
  void complain(const char* key, const char* wanted) const {
    if (error_.empty()) error_ = "\"" + std::string(key) + "\" is missing or not " + wanted;
  }

  const Json& object_;
  std::string& error_;
};

CatalogueItem read_item(const Json& json, std::string& error) {
  CatalogueItem item;
  const Fields fields(json, error);
  item.name = fields.text("name");
  item.title = fields.text("title");
  item.licence = fields.text("licence");
  item.about_bytes = fields.count("about_bytes", true);
  const Fields source(fields.get("source"), error);
  const std::string kind = source.text("kind");
  if (kind == "package") {
    PackageSource package;
    package.packages = source.texts("packages", true);
    package.runtime_packages = source.texts("runtime_packages", false);
    const Fields extraction(source.get("extraction"), error);
    package.extraction = {extraction.text("kind"), extraction.text("program"), extraction.texts("arguments", false)};
    item.source = std::move(package);
  } else if (kind == "generator") {
    item.source = GeneratorSource{source.text("generator"), static_cast<std::uint64_t>(source.count("seed", true)),
                                  source.count("people", true), source.count("documents", true)};
  } else if (error.empty()) {
    error = "unknown kind of source \"" + kind + "\"";
  }
  const Fields expected(fields.get("expect"), error);
  item.documents = expected.count("documents", false);
  item.lines = expected.count("lines", false);
  return item;
}

fs::path corpus_folder(const fs::path& workspace, std::string_view name) { return workspace / "data" / name; }

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  });
}

Result<Corpus> unknown_corpus(std::string_view name, const fs::path& workspace,
                              const std::vector<CatalogueItem>& catalogue) {
  std::vector<std::string> names;
  for (const CatalogueItem& item : catalogue) names.push_back(item.name);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(workspace / "data", error)) {
    const std::string found = entry.path().filename().string();
    if (entry.is_directory() && is_plain_name(found) && std::find(names.begin(), names.end(), found) == names.end())
      names.push_back(found);
  }
  std::string remedy = did_you_mean(name, names);
  if (remedy.empty()) {
    for (const std::string& known : names) remedy += (remedy.empty() ? "known are: " : ", ") + known;
  }
  return usage_error("no corpus \"" + std::string(name) + "\" in the catalogue or the workspace", remedy);
}

// A text of the packages themselves that says what may be done with them.
std::string licence_text(const fs::path& unpacked, const std::vector<std::string>& packages) {
  std::string text;
  for (const std::string& package : packages) {
    const Result<std::string> part = read_file(unpacked / "usr/share/doc" / package / "copyright", 1 << 20);
    if (part && text.find(*part) == std::string::npos) text += (text.empty() ? "" : "\n") + *part;
  }
  return text;
}

struct Made {
  CorpusInfo info;
  Extracted text;
  std::string licence;
};

Result<Made> make_from_packages(const CatalogueItem& item, const PackageSource& source, const fs::path& folder,
                                const CorpusProgress& progress, std::stop_token stop) {
  const fs::path unpacked = folder / "unpacked";
  const auto fetch = [&](const std::vector<std::string>& names, std::vector<CorpusSource>* sources) -> Status {
    Result<std::vector<FetchedPackage>> packages = fetch_packages(names, folder, stop);
    if (!packages) return tl::unexpected(packages.error());
    if (sources) {
      for (const FetchedPackage& package : *packages) sources->push_back(package.source);
    }
    return unpack_packages(*packages, unpacked, stop);
  };

  Made made;
  progress(item.title + ", about " + format_bytes(static_cast<double>(item.about_bytes)) + ", " + item.licence +
               ": fetching it from the distribution's packages",
           0, item.about_bytes);
  if (Status fetched = fetch(source.packages, &made.info.sources); !fetched) return tl::unexpected(fetched.error());
  for (const CorpusSource& package : made.info.sources) {
    made.info.origin += (made.info.origin.empty() ? "package " : ", ") + package.name + " " + package.version;
  }
  progress(item.title + ", from " + made.info.origin + ": unpacking the text", 0, item.about_bytes);
  Result<Extracted> text = extract(
      source.extraction, unpacked,
      [&]() -> Status {
        progress(item.title + ": fetching the libraries of its program", 0, item.about_bytes);
        return fetch(source.runtime_packages, nullptr);
      },
      stop);
  if (!text) return tl::unexpected(text.error());
  made.text = std::move(*text);
  made.licence = licence_text(unpacked, source.packages);
  return made;
}

Result<Made> make_from_generator(const CatalogueItem& item, const GeneratorSource& source,
                                 const CorpusProgress& progress, std::stop_token stop) {
  if (source.generator != "tinyworld") {
    return failed("unknown generator \"" + source.generator + "\"",
                  "the catalogue is of another version of the program");
  }
  progress(item.title + ": inventing it", 0, source.documents);
  const Result<TinyWorld> world = TinyWorld::create(source.seed, source.people, tinyworld_folder());
  if (!world) return tl::unexpected(world.error());
  Made made;
  for (std::int64_t i = 0; i < source.documents; ++i) {
    if (i % 1000 == 0) {
      if (stop.stop_requested()) return stopped("corpus \"" + item.name + "\": stopped while it was generated");
      progress(item.title + ": writing documents", i, source.documents);
    }
    made.text.documents.add(world->document(WorldPart::train, static_cast<std::uint64_t>(i)).text);
  }
  made.info.origin =
      "generator tinyworld, seed " + std::to_string(source.seed) + ", " + format_integer(source.people) + " people";
  const Lexicon& lexicon = world->lexicon();
  made.info.sources = {{"tinyworld",
                        "seed " + std::to_string(source.seed) + ", people " + std::to_string(source.people),
                        lexicon.sha256, lexicon.bytes}};
  return made;
}

Status check_expected(const CatalogueItem& item, const Made& made) {
  const auto differs = [&](const char* what, std::int64_t found, std::int64_t expected) {
    return failed("corpus \"" + item.name + "\": " + made.info.origin + " gave " + std::to_string(found) + " " + what +
                      ", not " + std::to_string(expected),
                  "what it was made from has changed; use another corpus of the catalogue or text of your own");
  };
  const std::int64_t documents = static_cast<std::int64_t>(made.text.documents.size());
  if (item.documents && documents != item.documents) return differs("documents", documents, item.documents);
  if (item.lines && made.text.lines != item.lines) return differs("lines", made.text.lines, item.lines);
  const std::int64_t bytes = static_cast<std::int64_t>(made.text.documents.bytes.size());
  if (bytes < item.about_bytes * 9 / 10 || bytes > item.about_bytes * 11 / 10)
    return differs("bytes", bytes, item.about_bytes);
  return {};
}

}  // namespace

fs::path catalogue_file() { return share_folder() / "resources" / "corpora.json"; }

Result<std::vector<CatalogueItem>> load_catalogue(const fs::path& file) {
  const auto bad = [&](const std::string& why) {
    return failed(file.string() + ": " + why, "it came with the program: install it again");
  };
  Result<std::string> text = read_file(file, 1 << 20);
  if (!text) return bad("cannot be read: " + text.error().what);
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return bad("is not JSON, or not whole");
  if (!json.contains("version") || json["version"] != 1) return bad("is not of version 1");
  if (!json.contains("corpora") || !json["corpora"].is_array()) return bad("has no list \"corpora\"");
  std::vector<CatalogueItem> items;
  for (const Json& entry : json["corpora"]) {
    std::string error;
    CatalogueItem item = read_item(entry, error);
    if (error.empty() && !is_plain_name(item.name)) error = "\"" + item.name + "\" is not a plain name";
    if (error.empty() &&
        std::any_of(items.begin(), items.end(), [&](const auto& other) { return other.name == item.name; })) {
      error = "is there twice";
    }
    if (!error.empty()) return bad("corpus " + std::to_string(items.size()) + " (\"" + item.name + "\"): " + error);
    items.push_back(std::move(item));
  }
  return items;
}

Result<std::vector<CorpusEntry>> corpus_catalogue(const fs::path& workspace) {
  Result<std::vector<CatalogueItem>> items = load_catalogue(catalogue_file());
  if (!items) return tl::unexpected(items.error());
  std::vector<CorpusEntry> entries;
  for (const CatalogueItem& item : *items) {
    std::error_code error;
    const char* source = std::holds_alternative<PackageSource>(item.source) ? "package" : "generator";
    entries.push_back({item.name, item.title, item.licence, source, item.about_bytes,
                       fs::exists(corpus_folder(workspace, item.name), error)});
  }
  return entries;
}

Result<Corpus> ensure_corpus(std::string_view name, const fs::path& workspace, const CorpusProgress& progress,
                             std::stop_token stop) {
  Result<std::vector<CatalogueItem>> catalogue = load_catalogue(catalogue_file());
  if (!catalogue) return tl::unexpected(catalogue.error());
  return ensure_corpus(name, workspace, *catalogue, progress, std::move(stop));
}

Result<Corpus> ensure_corpus(std::string_view name, const fs::path& workspace,
                             const std::vector<CatalogueItem>& catalogue, const CorpusProgress& progress,
                             std::stop_token stop) {
  if (!is_plain_name(name)) {
    return usage_error("\"" + std::string(name) + "\" is not the name of a corpus",
                       "use letters, digits, '-', '_' and '.'");
  }
  const fs::path dir = corpus_folder(workspace, name);
  std::error_code error;
  if (fs::exists(dir, error)) return Corpus::open(dir);
  const auto item =
      std::find_if(catalogue.begin(), catalogue.end(), [&](const CatalogueItem& i) { return i.name == name; });
  if (item == catalogue.end()) return unknown_corpus(name, workspace, catalogue);

  remove_stale_temporaries(workspace / "data");
  const CorpusProgress silent = [](std::string_view, std::int64_t, std::int64_t) {};
  const CorpusProgress& say = progress ? progress : silent;
  const auto make = [&]() -> Result<Made> {
    if (const auto* source = std::get_if<GeneratorSource>(&item->source))
      return make_from_generator(*item, *source, say, stop);
    // Never committed: it goes with everything in it, whichever way this ends.
    Result<AtomicDirectory> scratch = AtomicDirectory::create(corpus_folder(workspace, item->name + ".fetch"));
    if (!scratch) return tl::unexpected(scratch.error());
    return make_from_packages(*item, std::get<PackageSource>(item->source), fs::absolute(scratch->path()), say, stop);
  };
  Result<Made> made = make();
  if (!made) return tl::unexpected(made.error());
  if (Status fine = check_expected(*item, *made); !fine) return tl::unexpected(fine.error());
  if (stop.stop_requested()) return stopped("corpus \"" + item->name + "\": stopped before it was written");

  made->info.name = item->name;
  made->info.title = item->title;
  made->info.licence = item->licence;
  const Status written = write_corpus(dir, made->info, made->text.documents, made->licence);
  // Another process may have been faster: its corpus is as good.
  if (!written && !fs::exists(dir, error)) return tl::unexpected(written.error());
  Result<Corpus> corpus = Corpus::open(dir);
  if (corpus) {
    const CorpusInfo& info = corpus->info();
    say(info.title + ": " + format_integer(info.documents) + " documents, " +
            format_bytes(static_cast<double>(info.bytes)) + ", " + info.licence,
        info.bytes, info.bytes);
  }
  return corpus;
}

}  // namespace stacklab
