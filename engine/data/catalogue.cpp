#include "engine/data/catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/paths.h"

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
    ExtractionRecipe& recipe = package.extraction;
    recipe.kind = extraction.text("kind");
    if (recipe.kind == "verses") {
      recipe.program = extraction.text("program");
      recipe.arguments = extraction.texts("arguments", false);
    } else {
      recipe.files = extraction.texts("files", true);
    }
    item.source = std::move(package);
  } else if (kind == "generator") {
    GeneratorSource generator;
    generator.generator = source.text("generator");
    generator.settings.seed = static_cast<std::uint64_t>(source.count("seed", true));
    generator.settings.people = source.count("people", true);
    generator.settings.items = source.count("documents", true);
    generator.settings.streams = source.text("streams");
    item.source = std::move(generator);
  } else if (kind == "url") {
    UrlSource url;
    url.page = source.text("page");
    url.text = source.text("text");
    url.take = source.count("take", true);
    const Json& files = source.get("files");
    for (const Json& file : files.is_array() ? files : Json::array()) {
      const Fields one(file, error);
      url.files.push_back(
          {one.text("url"), one.count("bytes", false), one.get("sha256").is_null() ? "" : one.text("sha256")});
      const std::string& address = url.files.back().url;
      if (error.empty() && !address.starts_with("https://") && !address.starts_with("http://"))
        error = "\"" + address + "\" is no URL";
    }
    if (error.empty() && (url.files.empty() || url.take < 1 || url.take > static_cast<std::int64_t>(url.files.size())))
      error = "\"take\" is not a number of its \"files\"";
    item.source = std::move(url);
  } else if (error.empty()) {
    error = "unknown kind of source \"" + kind + "\"";
  }
  const Fields expected(fields.get("expect"), error);
  item.documents = expected.count("documents", false);
  item.lines = expected.count("lines", false);
  item.about_documents = expected.count("about_documents", false);
  return item;
}

}  // namespace

fs::path corpus_folder(const fs::path& workspace, std::string_view name) { return workspace / "data" / name; }

bool is_corpus_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
                  c == '.';
         });
}

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
    if (error.empty() && !is_corpus_name(item.name)) error = "\"" + item.name + "\" is not a plain name";
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
    CorpusEntry entry{item.name, item.title,       item.licence,
                      "",        item.about_bytes, fs::exists(corpus_folder(workspace, item.name), error),
                      ""};
    if (const auto* packages = std::get_if<PackageSource>(&item.source)) {
      entry.source = "package";
      for (const std::string& name : packages->packages) entry.from += (entry.from.empty() ? "" : ", ") + name;
    } else if (const auto* url = std::get_if<UrlSource>(&item.source)) {
      entry.source = "url";
      entry.from = url->page;
    } else {
      entry.source = "generator";
      entry.from = std::get<GeneratorSource>(item.source).generator;
    }
    entries.push_back(std::move(entry));
  }
  // What else is there: one's own, or made with other settings.
  std::error_code error;
  std::vector<CorpusEntry> own;
  for (const auto& folder : fs::directory_iterator(workspace / "data", error)) {
    const std::string name = folder.path().filename().string();
    const auto same = [&](const CorpusEntry& entry) { return entry.name == name; };
    if (!is_corpus_name(name) || std::any_of(entries.begin(), entries.end(), same)) continue;
    const Result<CorpusInfo> info = Corpus::describe(folder.path());
    if (info) own.push_back({name, info->title, info->licence, "workspace", info->bytes, true, info->origin});
  }
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  entries.insert(entries.end(), own.begin(), own.end());
  return entries;
}

}  // namespace stacklab
