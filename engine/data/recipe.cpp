#include "engine/data/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/json_reader.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A key of an object: its name, and what its value does. False: the value does not fit, `wanted` says what would.
struct Key {
  std::string name;
  std::string wanted;
  std::function<bool(const Json& value)> read;
};

bool number_between(const Json& value, double least, double most, double& into) {
  if (!value.is_number()) return false;
  const double number = value.get<double>();
  if (!(number >= least && number <= most)) return false;
  into = number;
  return true;
}

bool text(const Json& value, std::string& into) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) return false;
  into = value.get<std::string>();
  return true;
}

class Parser {
 public:
  Parser(std::string_view name, const fs::path& folder) : name_(name), folder_(folder) {}

  Result<DataRecipe> parse(std::string_view json) {
    const auto root = parse_json_object(json);
    if (!root) return bad(root.error());
    DataRecipe recipe;
    double tokens = static_cast<double>(recipe.shard_tokens);
    const std::vector<Key> known = {
        {"sources", "a list of corpora and files", [&](const Json& v) { return read_sources(v, recipe.sources); }},
        {"held_out", "a list of corpora and files", [&](const Json& v) { return read_sources(v, recipe.held_out); }},
        {"tokenizer", "bytes, or the name of a tokenizer in the workspace",
         [&](const Json& v) { return text(v, recipe.tokenizer); }},
        {"validation_fraction", "a number from 0 to 0.9",
         [&](const Json& v) { return number_between(v, 0, 0.9, recipe.validation_fraction); }},
        {"shard_tokens", "a whole number from 1 to 2^33",
         [&](const Json& v) { return number_between(v, 1, 0x1p33, tokens) && tokens == std::floor(tokens); }}};
    if (Status read = read_object(*root, "", known); !read) return tl::unexpected(read.error());
    recipe.shard_tokens = static_cast<std::int64_t>(tokens);
    if (recipe.sources.empty()) return bad("\"sources\" names nothing to read");
    return recipe;
  }

 private:
  tl::unexpected<Error> bad(std::string why, std::string remedy = {}) const {
    return usage_error(fmt::format("{}: {}", name_, why), std::move(remedy));
  }

  Status read_object(const Json& object, const std::string& where, const std::vector<Key>& known) {
    if (!object.is_object()) return bad((where.empty() ? "it" : where) + " is not an object");
    for (const auto& [name, value] : object.items()) {
      const std::string& key = name;
      const auto at = std::ranges::find(known, key, &Key::name);
      if (at == known.end()) {
        std::vector<std::string> names;
        for (const Key& one : known) names.push_back(one.name);
        return bad(fmt::format("unknown key \"{}{}\"", where, printable(key)), did_you_mean(key, names));
      }
      if (at->read(value)) continue;
      if (inner_) return tl::unexpected(*inner_);
      return bad(fmt::format("\"{}{}\" is {}", where, key,
                             printable(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60)),
                 "it must be " + at->wanted);
    }
    return {};
  }

  bool read_sources(const Json& list, std::vector<RecipeSource>& sources) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      RecipeSource source;
      std::string path, corpus, separator;
      if (entry.is_string()) {
        corpus = entry.get<std::string>();
        // A name is a corpus; what can only be a file is one.
        if (corpus.find('/') != std::string::npos || kind_of_name(corpus)) std::swap(corpus, path);
      } else {
        const std::vector<Key> known = {
            {"corpus", "the name of a corpus", [&](const Json& v) { return text(v, corpus); }},
            {"path", "a file or folder", [&](const Json& v) { return text(v, path); }},
            {"weight", "a number above 0", [&](const Json& v) { return number_between(v, 1e-9, 1e9, source.weight); }},
            {"separator", "a text", [&](const Json& v) { return text(v, separator); }},
            {"field", "a key, \"a.b\" for b inside a", [&](const Json& v) { return text(v, source.reading.field); }}};
        if (Status read = read_object(entry, "sources.", known); !read) {
          inner_ = read.error();
          return false;
        }
      }
      if (corpus.empty() == path.empty()) {
        inner_ = bad("a source names neither or both of \"corpus\" and \"path\"").value();
        return false;
      }
      source.corpus = corpus;
      if (!path.empty()) source.path = folder_ / path;
      source.reading.blank_lines = separator == "blank-line";
      if (!source.reading.blank_lines) source.reading.separator = separator;
      sources.push_back(std::move(source));
    }
    return true;
  }

  const std::string name_;
  const fs::path folder_;
  std::optional<Error> inner_;  // of an object inside
};

}  // namespace

Result<DataRecipe> parse_recipe(std::string_view json, std::string_view name, const fs::path& folder) {
  return Parser(name, folder).parse(json);
}

Result<std::string> unescaped(std::string_view typed) {
  std::string out;
  for (std::size_t i = 0; i < typed.size(); ++i) {
    if (typed[i] != '\\') {
      out.push_back(typed[i]);
      continue;
    }
    const char next = i + 1 < typed.size() ? typed[++i] : ' ';
    static constexpr std::string_view from = "nrt0\\";
    static constexpr char to[] = {'\n', '\r', '\t', '\0', '\\'};
    const std::size_t which = from.find(next);
    if (which == std::string_view::npos)
      return usage_error(
          fmt::format("the separator \"{}\" has a backslash before nothing that is known", printable(typed)),
          "\\n, \\r, \\t, \\0 and \\\\ are understood");
    out.push_back(to[which]);
  }
  return out;
}

}  // namespace stacklab
