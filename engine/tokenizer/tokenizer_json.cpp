#include "engine/tokenizer/tokenizer_json.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/atomic_file.h"
#include "engine/base/json_reader.h"
#include "engine/base/json_writer.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/tokenizer/byte_alphabet.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t largest_file = std::int64_t{256} << 20, largest_manifest = std::int64_t{16} << 20;
constexpr int deepest = 32;
constexpr std::string_view folder_format = "stacklab-tokenizer";
constexpr std::string_view tokenizer_file = "tokenizer.json", config_file = "tokenizer_config.json",
                           manifest_file = "manifest.json";

// Thrown through the parser, which has no other way out, and caught right behind it.
struct Refused {
  std::string what;
};

[[noreturn]] void refuse(std::string what) { throw Refused{std::move(what)}; }

json parse_json(std::string_view text) {
  if (has_nul(text)) refuse("not JSON: it has a NUL byte");
  std::vector<std::unordered_set<std::string>> keys;
  return json::parse(text.begin(), text.end(), [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) refuse(fmt::format("nested deeper than {}", deepest));
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (!keys.back().insert(value.get_ref<const std::string&>()).second)
          refuse(fmt::format("the key \"{}\" occurs twice", printable(value.get_ref<const std::string&>())));
        break;
      default:
        break;
    }
    return true;
  });
}

// Null stands for a key that is missing.
const json& at(const json& object, const char* key) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string type_of(const json& object) {
  const json& type = at(object, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

// A switch that, set otherwise, would make other ids.
void must_be(const json& object, const char* where, const char* key, bool wanted, bool when_missing) {
  const json& value = at(object, key);
  const bool is = value.is_boolean() ? value.get<bool>() : when_missing;
  if (is != wanted || !(value.is_boolean() || value.is_null()))
    refuse(fmt::format("{}.{} is not supported unless {}", where, key, wanted));
}

std::string read_pattern(const json& pre) {
  const std::string type = type_of(pre);
  if (pre.is_null()) refuse("pre_tokenizer is missing: the model is not byte-level");
  if (type == "ByteLevel") {
    must_be(pre, "pre_tokenizer", "add_prefix_space", false, true);
    must_be(pre, "pre_tokenizer", "use_regex", true, true);
    return std::string(pattern_of(Split::gpt2));
  }
  const json& parts = at(pre, "pretokenizers");
  if (type != "Sequence" || !parts.is_array())
    refuse(fmt::format("pre_tokenizer of type \"{}\" is not known", printable(type)));
  if (parts.size() == 1 && type_of(parts[0]) == "ByteLevel") return read_pattern(parts[0]);
  if (parts.size() != 2 || type_of(parts[0]) != "Split" || type_of(parts[1]) != "ByteLevel")
    refuse("pre_tokenizer is a sequence other than Split, ByteLevel");
  const json& regex = at(at(parts[0], "pattern"), "Regex");
  if (!regex.is_string()) refuse("pre_tokenizer: the Split has no pattern.Regex");
  if (at(parts[0], "behavior") != "Isolated") refuse("pre_tokenizer: a Split is supported with behavior Isolated only");
  must_be(parts[0], "pre_tokenizer.Split", "invert", false, false);
  must_be(parts[1], "pre_tokenizer.ByteLevel", "add_prefix_space", false, true);
  must_be(parts[1], "pre_tokenizer.ByteLevel", "use_regex", false, true);
  return regex.get<std::string>();
}

bool read_normaliser(const json& normaliser) {
  if (normaliser.is_null()) return false;
  if (type_of(normaliser) == "NFC") return true;
  const json& parts = at(normaliser, "normalizers");
  if (type_of(normaliser) == "Sequence" && parts.is_array()) {
    bool nfc = false;
    for (const json& part : parts) nfc = read_normaliser(part) || nfc;
    return nfc;
  }
  refuse(fmt::format("normalizer of type \"{}\" is not known, and without it ids would differ",
                     printable(type_of(normaliser))));
}

TokenId read_id(const json& id, std::string_view what, std::size_t count) {
  if (!id.is_number_integer()) refuse(fmt::format("the id of {} is not a whole number", what));
  if (id.is_number_unsigned() ? id.get<std::uint64_t>() >= count : true)
    refuse(
        fmt::format("id {} of {} does not fit {} tokens: ids are 0, 1, 2, ... without gaps", id.dump(), what, count));
  return id.get<TokenId>();
}

class ModelReader {
 public:
  // made_here: written by this program.
  explicit ModelReader(bool made_here) : made_here_(made_here) {}

  TokenizerModel read(const json& root) {
    if (!root.is_object()) refuse("the file is not one JSON object");
    const json& version = at(root, "version");
    if (!version.is_null() && version != "1.0")
      refuse(fmt::format("version {} is not known, 1.0 is", printable(version.dump())));
    for (const char* key : {"truncation", "padding"}) {
      if (!at(root, key).is_null()) refuse(fmt::format("{} is set, which would change ids; set it to null", key));
    }
    model_.nfc = read_normaliser(at(root, "normalizer"));
    model_.pattern = read_pattern(at(root, "pre_tokenizer"));
    if (is_older_cl100k(model_.pattern) && !made_here_)
      refuse(
          "pre_tokenizer: \\p{N}{1,3}+ is up to three digits to some, and any number of them to Hugging Face; write "
          "\\p{N}{1,3} for three");
    const json& decoder = at(root, "decoder");
    if (!decoder.is_null() && type_of(decoder) != "ByteLevel")
      refuse(fmt::format("decoder of type \"{}\" is not known", printable(type_of(decoder))));
    const json& bpe = at(root, "model");
    if (!bpe.is_object()) refuse("model is missing");
    if (!at(bpe, "type").is_null() && type_of(bpe) != "BPE")
      refuse(fmt::format("model.type is \"{}\", only BPE is supported", printable(type_of(bpe))));
    const json& dropout = at(bpe, "dropout");
    if (!dropout.is_null() && dropout != 0) refuse("model.dropout is set: encoding would be random");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!at(bpe, key).is_null() && at(bpe, key) != "") refuse(fmt::format("model.{} is not supported", key));
    }
    if (const json& ignore = at(bpe, "ignore_merges"); !ignore.is_null()) {
      if (!ignore.is_boolean()) refuse("model.ignore_merges is not true or false");
      model_.ignore_merges = ignore.get<bool>();
    }
    read_vocabulary(at(bpe, "vocab"), at(root, "added_tokens"));
    read_merges(at(bpe, "merges"));
    return std::move(model_);
  }

 private:
  void read_vocabulary(const json& vocabulary, const json& added) {
    if (!vocabulary.is_object()) refuse("model.vocab is not an object of tokens and ids");
    if (!added.is_null() && !added.is_array()) refuse("added_tokens is not a list");
    for (const json& token : added) {
      const json& content = at(token, "content");
      if (!content.is_string()) refuse("an added token has no content");
      for (const char* key : {"single_word", "lstrip", "rstrip"}) must_be(token, "added_tokens", key, false, false);
      if (model_.nfc) must_be(token, "added_tokens", "normalized", false, true);
      AddedToken read{0, content.get<std::string>(), at(token, "special") != false, false};
      read.in_vocabulary = vocabulary.contains(read.content);
      model_.added.push_back(std::move(read));
    }
    std::set<std::string_view> outside;
    for (const AddedToken& token : model_.added) {
      if (!token.in_vocabulary) outside.insert(token.content);
    }
    const std::size_t count = vocabulary.size() + outside.size();
    model_.vocabulary.resize(count);
    std::vector<bool> taken(count);
    std::unordered_set<std::string_view> added_contents;
    for (const AddedToken& token : model_.added) added_contents.insert(token.content);

    for (const auto& [spelled, json_id] : vocabulary.items()) {
      const std::string what = fmt::format("token \"{}\"", printable(spelled));
      const TokenId id = read_id(json_id, what, count);
      if (taken[static_cast<std::size_t>(id)]) refuse(fmt::format("{} has id {}, which another one has", what, id));
      taken[static_cast<std::size_t>(id)] = true;
      const bool is_added = added_contents.contains(spelled);
      std::optional<std::string> bytes = is_added ? spelled : unspell_bytes(spelled);
      if (!bytes) refuse(fmt::format("{} is not spelt in the 256 characters that stand for bytes", what));
      if (std::optional<std::string> in_merges = unspell_bytes(spelled)) ids_.emplace(std::move(*in_merges), id);
      model_.vocabulary[static_cast<std::size_t>(id)] = std::move(*bytes);
    }
    for (std::size_t i = 0; i < model_.added.size(); ++i) {
      AddedToken& token = model_.added[i];
      const std::string what = fmt::format("added token \"{}\"", printable(token.content));
      token.id = read_id(at(added[i], "id"), what, count);
      std::string& place = model_.vocabulary[static_cast<std::size_t>(token.id)];
      if (!taken[static_cast<std::size_t>(token.id)]) place = token.content;
      taken[static_cast<std::size_t>(token.id)] = true;
      if (place != token.content)
        refuse(fmt::format("{} has id {}, which is that of \"{}\"", what, token.id, printable(place)));
    }
    for (std::size_t id = 0; id < count; ++id) {
      if (!taken[id]) refuse(fmt::format("no token has id {} of {}", id, count));
    }
  }

  void read_merges(const json& merges) {
    if (!merges.is_array()) refuse("model.merges is not a list");
    if (merges.empty() && ids_.size() > 256)
      refuse(fmt::format("model.merges is empty, and yet there are {} tokens", ids_.size()));
    model_.merges.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::string where = fmt::format("model.merges[{}]", i);
      if (merges[i].type() != merges[0].type()) refuse(where + ": pairs and texts are mixed");
      std::string left, right;
      if (merges[i].is_string()) {
        const std::vector<std::string> parts = split(merges[i].get_ref<const std::string&>(), ' ');
        if (parts.size() != 2) refuse(fmt::format("{} has {} parts, not two", where, parts.size()));
        left = parts[0];
        right = parts[1];
      } else if (merges[i].is_array() && merges[i].size() == 2 && merges[i][0].is_string() &&
                 merges[i][1].is_string()) {
        left = merges[i][0].get<std::string>();
        right = merges[i][1].get<std::string>();
      } else {
        refuse(where + " is neither a pair of tokens nor a text \"a b\"");
      }
      model_.merges.push_back({id_of(left, where), id_of(right, where), id_of(left + right, where)});
    }
  }

  TokenId id_of(const std::string& spelled, const std::string& where) const {
    const std::optional<std::string> bytes = unspell_bytes(spelled);
    const auto found = bytes ? ids_.find(*bytes) : ids_.end();
    if (found == ids_.end()) refuse(fmt::format("{}: \"{}\" is not in the vocabulary", where, printable(spelled)));
    return found->second;
  }

  const bool made_here_;
  TokenizerModel model_;
  std::unordered_map<std::string, TokenId> ids_;  // of the vocabulary, by bytes
};

void write_byte_level(JsonWriter& w, bool add_prefix_space, bool trim_offsets, bool use_regex) {
  w.begin_object();
  w.member("type", "ByteLevel");
  w.member("add_prefix_space", add_prefix_space);
  w.member("trim_offsets", trim_offsets);
  w.member("use_regex", use_regex);
  w.end_object();
}

void write_pre_tokenizer(JsonWriter& w, const std::string& pattern) {
  if (pattern == pattern_of(Split::gpt2)) return write_byte_level(w, false, true, true);
  w.begin_object();
  w.member("type", "Sequence");
  w.key("pretokenizers");
  w.begin_array();
  w.begin_object();
  w.member("type", "Split");
  w.key("pattern");
  w.begin_object();
  w.member("Regex", pattern);
  w.end_object();
  w.member("behavior", "Isolated");
  w.member("invert", false);
  w.end_object();
  write_byte_level(w, false, false, false);
  w.end_array();
  w.end_object();
}

void write_added(JsonWriter& w, const AddedToken& token, bool with_id) {
  w.begin_object();
  if (with_id) w.member("id", token.id);
  w.member("content", token.content);
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) w.member(key, false);
  w.member("special", token.special);
  w.end_object();
}

std::vector<AddedToken> by_id(std::vector<AddedToken> added) {
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

Result<Tokenizer> parse_tokenizer(std::string_view text, std::string_view name, bool made_here) {
  const auto wrong = [&](std::string what, std::string remedy = {}) {
    return failed(fmt::format("{}: {}", name, what), std::move(remedy));
  };
  try {
    Result<Tokenizer> tokenizer = Tokenizer::create(ModelReader(made_here).read(parse_json(text)));
    if (!tokenizer) return wrong(tokenizer.error().what, tokenizer.error().remedy);
    return tokenizer;
  } catch (const Refused& refused) {
    return wrong(refused.what);
  } catch (const json::exception& e) {
    const std::string_view what = e.what();
    const std::size_t begin = what.find("] ");
    return wrong("not valid JSON: " + printable(what.substr(begin == std::string_view::npos ? 0 : begin + 2), 300));
  }
}

namespace {

// What a folder that this program made says of itself; null of another.
json own_manifest(const fs::path& folder) {
  const Result<std::string> text = read_file(folder / manifest_file, largest_manifest);
  json parsed = text ? json::parse(*text, nullptr, /*allow_exceptions=*/false) : json();
  return at(parsed, "format") == folder_format ? parsed : json();
}

}  // namespace

Result<Tokenizer> read_tokenizer(const fs::path& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path file = is_folder ? path / tokenizer_file : path;
  const Result<std::string> text = read_file(file, largest_file);
  if (!text) return tl::unexpected(text.error());
  const bool made_here = is_folder && at(own_manifest(path), "tokenizer_sha256") == sha256_hex(*text);
  return parse_tokenizer(*text, file.string(), made_here);
}

std::string tokenizer_json(const TokenizerModel& model) {
  JsonWriter w(2);
  w.begin_object();
  w.member("version", "1.0");
  for (const char* key : {"truncation", "padding"}) {
    w.key(key);
    w.null();
  }
  w.key("added_tokens");
  w.begin_array();
  for (const AddedToken& token : by_id(model.added)) write_added(w, token, true);
  w.end_array();
  w.key("normalizer");
  if (model.nfc) {
    w.begin_object();
    w.member("type", "NFC");
    w.end_object();
  } else {
    w.null();
  }
  w.key("pre_tokenizer");
  write_pre_tokenizer(w, model.pattern);
  w.key("post_processor");
  w.null();
  w.key("decoder");
  write_byte_level(w, true, true, true);
  w.key("model");
  w.begin_object();
  w.member("type", "BPE");
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    w.key(key);
    w.null();
  }
  w.member("fuse_unk", false);
  w.member("byte_fallback", false);
  w.member("ignore_merges", model.ignore_merges);
  std::vector<const AddedToken*> added(model.vocabulary.size());
  for (const AddedToken& token : model.added) added[static_cast<std::size_t>(token.id)] = &token;
  w.key("vocab");
  w.begin_object();
  for (std::size_t id = 0; id < model.vocabulary.size(); ++id) {
    if (added[id] && !added[id]->in_vocabulary) continue;
    w.member(added[id] ? model.vocabulary[id] : spell_bytes(model.vocabulary[id]), id);
  }
  w.end_object();
  w.key("merges");
  w.begin_array();
  for (const Merge& merge : model.merges) {
    w.begin_array();
    w.value(spell_bytes(model.vocabulary[static_cast<std::size_t>(merge.left)]));
    w.value(spell_bytes(model.vocabulary[static_cast<std::size_t>(merge.right)]));
    w.end_array();
  }
  w.end_array();
  w.end_object();
  w.end_object();
  return w.text() + "\n";
}

std::string tokenizer_config_json(const TokenizerModel& model) {
  JsonWriter w(2);
  w.begin_object();
  w.member("tokenizer_class", "PreTrainedTokenizerFast");
  w.key("added_tokens_decoder");
  w.begin_object();
  for (const AddedToken& token : by_id(model.added)) {
    w.key(std::to_string(token.id));
    write_added(w, token, false);
  }
  w.end_object();
  const auto has = [&](std::string_view content) {
    return std::any_of(model.added.begin(), model.added.end(),
                       [&](const AddedToken& t) { return t.content == content; });
  };
  if (has("<|endoftext|>")) {
    for (const char* key : {"bos_token", "eos_token", "pad_token"}) w.member(key, "<|endoftext|>");
  }
  w.member("clean_up_tokenization_spaces", false);
  w.end_object();
  return w.text() + "\n";
}

Status may_replace_tokenizer(const fs::path& folder) {
  static constexpr std::array names = {tokenizer_file, config_file, manifest_file};
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder, error))) return {};
  if (Status fine = expect_only_files(folder, names); !fine) return fine;
  if (fs::is_empty(folder, error)) return {};
  if (!own_manifest(folder).is_null()) return {};
  return refused(fmt::format("{} is not a tokenizer that this program made", folder.string()),
                 "name another folder, or remove it yourself");
}

Status write_tokenizer(const fs::path& folder, const TokenizerModel& model, const std::vector<TrainingText>& texts,
                       bool replace) {
  std::error_code error;
  remove_stale_temporaries(fs::absolute(folder, error).parent_path());
  Result<AtomicDirectory> made = AtomicDirectory::create(folder);
  if (!made) return tl::unexpected(made.error());
  const std::string tokenizer = tokenizer_json(model);
  JsonWriter w(2);
  w.begin_object();
  w.member("format", folder_format);
  w.member("version", 1);
  w.member("vocab_size", model.vocabulary.size());
  w.member("merges", model.merges.size());
  w.member("pattern", model.pattern);
  w.member("tokenizer_sha256", sha256_hex(tokenizer));
  w.key("trained_on");
  w.begin_array();
  for (const TrainingText& text : texts) {
    w.begin_object();
    w.member("name", text.name);
    w.member("bytes", text.bytes);
    w.member("sha256", text.sha256);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  Status written = write_file_atomically(made->path() / tokenizer_file, tokenizer);
  if (written) written = write_file_atomically(made->path() / config_file, tokenizer_config_json(model));
  if (written) written = write_file_atomically(made->path() / manifest_file, w.text() + "\n");
  // Looked at again: a training takes minutes.
  if (written && replace) written = may_replace_tokenizer(folder.has_filename() ? folder : folder.parent_path());
  if (written) written = made->commit(replace);
  return written;
}

}  // namespace stacklab
