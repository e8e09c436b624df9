#include "engine/run/provenance.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/base/environment.h"
#include "engine/base/json_reader.h"
#include "engine/base/json_writer.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

// Everything by which two may differ, as text.
std::vector<std::pair<std::string, std::string>> flat(const Provenance& p) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"commit", p.commit},       {"uncommitted changes", p.dirty ? "yes" : "no"},
      {"corpus", p.corpus},       {"corpus_sha256", p.corpus_sha256},
      {"tokenizer", p.tokenizer}, {"tokenizer_sha256", p.tokenizer_sha256}};
  fields.insert(fields.end(), p.environment.fields.begin(), p.environment.fields.end());
  return fields;
}

const std::string* value_in(const std::vector<std::pair<std::string, std::string>>& fields, const std::string& name) {
  for (const auto& [field, value] : fields)
    if (field == name) return &value;
  return nullptr;
}

}  // namespace

Provenance provenance_of_build() {
  Provenance p;
  std::tie(p.commit, p.dirty) = split_commit(build_info().commit);
  return p;
}

std::string to_json(const Provenance& p) {
  JsonWriter w(2);
  w.begin_object();
  w.member("config_hash", p.config_hash);
  w.member("commit", p.commit);
  w.member("dirty", p.dirty);
  w.member("corpus", p.corpus);
  w.member("corpus_sha256", p.corpus_sha256);
  w.member("tokenizer", p.tokenizer);
  w.member("tokenizer_sha256", p.tokenizer_sha256);
  w.key("environment");
  w.begin_object();
  for (const auto& [field, value] : p.environment.fields) w.member(field, value);
  w.end_object();
  w.end_object();
  return w.text() + "\n";
}

Result<Provenance> parse_provenance(std::string_view json, std::string_view source_name) {
  const auto bad = [source_name](std::string_view cause) {
    return failed(fmt::format("{}: not a provenance: {}", source_name, cause));
  };
  const auto root = parse_json_object(json);
  if (!root) return bad(root.error());
  JsonFields read(*root);
  Provenance p;
  p.config_hash = read.text("config_hash");
  p.commit = read.text("commit");
  p.dirty = read.flag("dirty");
  p.corpus = read.text("corpus");
  p.corpus_sha256 = read.text("corpus_sha256");
  p.tokenizer = read.text("tokenizer");
  p.tokenizer_sha256 = read.text("tokenizer_sha256");
  const auto& environment = read.object("environment");
  if (!read.error().empty()) return bad(read.error());
  for (const auto& [field, value] : environment.items()) {
    if (!value.is_string()) return bad(fmt::format("\"environment.{}\" is not a text", printable(field)));
    p.environment.fields.emplace_back(field, value.get<std::string>());
  }
  return p;
}

std::vector<FieldChange> differences(const Provenance& was, const Provenance& is) {
  const auto before = flat(was), now = flat(is);
  std::vector<FieldChange> changes;
  const auto compare = [&](const std::string& field) {
    const std::string *a = value_in(before, field), *b = value_in(now, field);
    if (a && b && *a == *b) return;
    changes.push_back({field, a ? *a : "none", b ? *b : "none", changes_bits(field)});
  };
  for (const auto& [field, value] : before) compare(field);
  for (const auto& [field, value] : now)
    if (!value_in(before, field)) compare(field);
  return changes;
}

std::string to_text(const std::vector<FieldChange>& changes) {
  std::string text;
  for (const FieldChange& c : changes)
    text += fmt::format("{}{} was {}, is {}", text.empty() ? "" : "; ", printable(c.field), printable(c.was),
                        printable(c.is));
  return text;
}

}  // namespace stacklab
