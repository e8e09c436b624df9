// The filter language: what it means, what it refuses, and that its SQL says the same of every run as reading the
// filter word by word does.
#include "engine/store/run_filter.h"

#include <fmt/format.h>

#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "engine/config/config_io.h"
#include "engine/config/fields.h"
#include "engine/store/database.h"
#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

using Kind = RunFilter::Kind;
using Op = RunFilter::Op;

RunFilter parsed(const std::string& text) {
  auto filter = parse_run_filter(text);
  if (!filter) {
    ADD_FAILURE() << text << ": " << filter.error().what;
    return {};
  }
  return *filter;
}

// The plain meaning of a filter, for runs in hand.
struct Evaluation {
  const RunSummary& run;
  const RunConfig* config;  // null: it cannot be read
  std::map<std::string, SeriesPoint> metrics;

  static std::string lower(std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  }
  static bool contains(const std::string& text, const std::string& part) {
    return lower(text).find(lower(part)) != std::string::npos;
  }
  template <class T>
  static bool compared(Op op, const T& a, const T& b) {
    switch (op) {
      case Op::equal:
        return a == b;
      case Op::unequal:
        return a != b;
      case Op::less:
        return a < b;
      case Op::at_most:
        return a <= b;
      case Op::greater:
        return a > b;
      case Op::at_least:
        return a >= b;
      case Op::contains:
        break;
    }
    return false;
  }
  std::optional<FieldValue> field(const std::string& key) const {
    if (config == nullptr) return std::nullopt;
    RunConfig copy = *config;
    for (const Field& f : fields_of(copy))
      if (f.key == key) return value_of(f);
    return std::nullopt;
  }
  std::optional<double> number(const std::string& key) const {
    const auto real = [](auto v) { return std::optional<double>(static_cast<double>(v)); };
    if (key == "loss") return run.last_loss;
    if (key == "val_loss") return run.val_loss;
    if (key == "first_loss") return run.first_loss;
    if (key == "step") return real(run.step);
    if (key == "total_steps") return real(run.total_steps);
    if (key == "progress")
      return run.total_steps > 0 ? 100.0 * static_cast<double>(run.step) / static_cast<double>(run.total_steps) : 0;
    if (key == "tokens") return real(run.tokens);
    if (key == "seconds") return run.seconds;
    if (key == "number") return real(run.number);
    if (key == "created") return run.created;
    if (key == "finished") return run.finished > 0 ? std::optional(run.finished) : std::nullopt;
    if (key == "fork_step") return real(run.fork_step);
    if (key == "parameters") return real(run.parameters);
    if (key == "lr") {
      const auto matrices = field("optim.matrices");
      if (!matrices) return std::nullopt;
      return number(std::get<std::string>(*matrices) == "adamw" ? "optim.adam_lr" : "optim.muon_lr");
    }
    if (key.starts_with("metric.")) {
      const auto at = metrics.find(key.substr(7));
      return at == metrics.end() ? std::nullopt : std::optional(at->second.value);
    }
    const auto value = field(key);
    if (!value) return std::nullopt;
    if (const auto* i = std::get_if<std::int64_t>(&*value)) return real(*i);
    if (const auto* d = std::get_if<double>(&*value)) return *d;
    if (const auto* b = std::get_if<bool>(&*value)) return *b ? 1 : 0;
    return std::nullopt;
  }
  std::optional<std::string> text(const std::string& key) const {
    if (key == "name") return run.name;
    if (key == "note") return run.note;
    if (key == "cause") return run.cause;
    if (key == "id") return run.id;
    if (key == "commit") return run.commit;
    if (key == "corpus_sha256") return run.corpus_sha256;
    if (key == "tokenizer") return run.tokenizer;
    if (key == "parent") return run.parent;
    const auto value = field(key);
    if (!value || !std::holds_alternative<std::string>(*value)) return std::nullopt;
    return std::get<std::string>(*value);
  }
  bool holds(const RunFilter& f) const {
    const auto turned = [&](bool b) { return f.op == Op::unequal ? !b : b; };
    switch (f.kind) {
      case Kind::all:
        return std::all_of(f.parts.begin(), f.parts.end(), [&](const RunFilter& p) { return holds(p); });
      case Kind::any:
        return std::any_of(f.parts.begin(), f.parts.end(), [&](const RunFilter& p) { return holds(p); });
      case Kind::no:
        return !holds(f.parts.front());
      case Kind::word:
        return contains(run.name, f.text) || contains(run.note, f.text);
      case Kind::tag:
        return turned(std::find(run.tags.begin(), run.tags.end(), f.text) != run.tags.end());
      case Kind::state:
        return turned(to_string(run.state) == f.text);
      case Kind::is:
        return turned(f.text == "archived"   ? run.archived > 0
                      : f.text == "deleted"  ? run.deleted > 0
                      : f.text == "detached" ? run.detached
                      : f.text == "dirty"    ? run.dirty
                                             : !run.parent.empty());
      case Kind::number: {
        const auto value = number(f.key);
        if (!value) return false;
        if (std::isnan(f.number)) return turned(std::isnan(*value));
        return !std::isnan(*value) && compared(f.op, *value, f.number);
      }
      case Kind::text: {
        const auto value = text(f.key);
        if (!value) return false;
        return f.op == Op::contains ? contains(*value, f.text) : compared(f.op, *value, f.text);
      }
    }
    return false;
  }
};

const std::vector<std::string> hostile = {"' OR 1=1 --", "\"); DROP TABLE runs; --",
                                          "%",           "_",
                                          "\\",          "Ünïcode",
                                          "ÜNÏ",         "日本語",
                                          "a b",         "run",
                                          "$.optim",     "?1",
                                          "x'00'",       "NULL",
                                          "é",           "(",
                                          ":",           "="};

class Filtering : public testing::Test {
 protected:
  Filtering() {
    auto store = must(Store::open(folder_.path()));
    std::mt19937 random(7);
    const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    for (int n = 0; n < count; ++n) {
      RunConfig config;
      config.optim.matrices = pick(2) ? "muon" : "adamw";
      config.optim.muon_lr = 1e-3 * (1 + pick(4));
      config.optim.adam_lr = 1e-4 * (1 + pick(4));
      config.model.n_layers = 2 + pick(3);
      config.model.qk_norm = pick(2) != 0;
      config.train.seed = pick(3);
      config.data.corpus = pick(2) ? "kjv" : "TinyWorld";
      config.train.tokens = 409600;
      ClaimRequest request = test_request(n);
      request.name = pick(3) ? fmt::format("Run-{}", pick(9)) : hostile[static_cast<std::size_t>(pick(18))];
      request.config_json = pick(12) ? to_json(config) : pick(2) ? "not json" : R"({"optim":{"muon_lr":"text"}})";
      request.total_steps = pick(4) ? 100 : 0;
      request.detached = pick(4) == 0;
      auto claim = must(store->claim(request, {}));
      if (pick(5)) {
        auto sink = store->sink(claim);
        for (std::int64_t step = 1; step <= 1 + pick(5); ++step) {
          MetricEvent event = test_metrics(step, pick(6) == 0 ? nan : pick(6) == 0 ? inf : 1 + 0.5 * pick(6));
          if (pick(3) == 0) event.values.push_back({metric::val_loss, pick(3) ? 2.5 : nan});
          sink->metrics(event);
        }
      }
      must(store->end(claim, {pick(3) ? RunState::finished : RunState::failed, pick(2) ? "out of memory" : ""}));
      RunEdit edit;
      if (pick(2)) edit.add_tags.push_back(pick(2) ? "ablation" : "ladder");
      if (pick(3) == 0) edit.add_tags.push_back("Ünï");
      if (pick(3) == 0) edit.note = hostile[static_cast<std::size_t>(pick(18))];
      if (pick(8) == 0) edit.archived = true;
      if (pick(9) == 0) edit.deleted = true;
      must(store->edit(request.id, edit));
    }
    store.reset();
    reader_ = must(open_store_reader(folder_.path()));
    all_ = must(reader_->runs());
    for (const RunSummary& run : all_) {
      auto config = parse_config(run.config_json, "");
      configs_.push_back(config ? std::optional(*config) : std::nullopt);
      auto& metrics = metrics_.emplace_back();
      for (const char* name : {"grad_norm", "loss", "nothing"})
        if (const auto point = must(reader_->last_point(run.id, name))) metrics[name] = *point;
    }
  }

  std::set<std::int64_t> by_sql(const RunFilter& filter) {
    RunQuery query;
    query.filter = filter;
    query.archived = query.deleted = true;
    std::set<std::int64_t> numbers;
    for (const RunSummary& run : must(reader_->runs(query))) numbers.insert(run.number);
    return numbers;
  }
  std::set<std::int64_t> by_reading(const RunFilter& filter) const {
    std::set<std::int64_t> numbers;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (Evaluation{all_[i], configs_[i] ? &*configs_[i] : nullptr, metrics_[i]}.holds(filter))
        numbers.insert(all_[i].number);
    return numbers;
  }

  static constexpr int count = 150;
  TemporaryFolder folder_;
  std::unique_ptr<StoreReader> reader_;
  std::vector<RunSummary> all_;
  std::vector<std::optional<RunConfig>> configs_;
  std::vector<std::map<std::string, SeriesPoint>> metrics_;
};

std::string written(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

std::string random_filter(std::mt19937& random, int depth) {
  const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth > 0 && pick(3) != 0) {
    const std::string a = random_filter(random, depth - 1), b = random_filter(random, depth - 1);
    switch (pick(4)) {
      case 0:
        return "not (" + a + ")";
      case 1:
        return "(" + a + " or " + b + ")";
      case 2:
        return a + " " + b;
      default:
        return a + " and " + b;
    }
  }
  const char* signs[] = {"=", "!=", "<", "<=", ">", ">="};
  const auto sign = [&] { return std::string(signs[pick(6)]); };
  const auto odd = [&] { return written(hostile[static_cast<std::size_t>(pick(static_cast<int>(hostile.size())))]); };
  const char* numbers[] = {"loss",        "val_loss",  "first_loss",     "lr",          "step",
                           "total_steps", "progress",  "tokens",         "number",      "n_layers",
                           "muon_lr",     "grad_norm", "metric.nothing", "metric.loss", "seed"};
  const char* values[] = {"0", "1", "2", "2.5", "3e-3", "2k", "1e-4", "50", "100", "inf", "-1"};
  const char* texts[] = {"name", "note", "cause", "corpus", "data.corpus", "id", "optim.matrices"};
  switch (pick(9)) {
    case 0:
      return std::string(pick(2) ? "tag:" : "tag != ") + (pick(3) ? (pick(2) ? "ablation" : "Ünï") : odd());
    case 1:
      return std::string("state") + (pick(2) ? ":" : "!=") + (pick(2) ? "failed" : "finished");
    case 2:
      return std::string("is:") + (pick(2) ? "archived" : pick(2) ? "deleted" : "detached");
    case 3:
      return std::string(texts[pick(7)]) + (pick(2) ? ":" : sign()) + odd();
    case 4:
      return pick(2) ? "run" : odd();
    case 5:
      return std::string("qk_norm") + (pick(2) ? ":" : "!=") + (pick(2) ? "true" : "false");
    case 6:
      return std::string(pick(2) ? "loss" : pick(2) ? "grad_norm" : "val_loss") + (pick(2) ? "=" : "!=") + "nan";
    default:
      return std::string(numbers[pick(15)]) + " " + sign() + " " + values[pick(11)];
  }
}

TEST_F(Filtering, SqlSaysTheSameAsReading) {
  std::mt19937 random(11);
  int some = 0;
  for (int i = 0; i < 700; ++i) {
    const std::string text = random_filter(random, 3);
    const RunFilter filter = parsed(text);
    const auto expected = by_reading(filter);
    ASSERT_EQ(by_sql(filter), expected) << text;
    if (!expected.empty() && expected.size() < all_.size()) ++some;
  }
  EXPECT_GT(some, 200) << "the filters tell runs apart";
}

TEST_F(Filtering, WhatPeopleType) {
  const auto found = [&](const std::string& text) { return by_sql(parsed(text)).size(); };
  EXPECT_EQ(found(""), static_cast<std::size_t>(count));
  EXPECT_GT(found("lr > 1e-4 and tag:ablation"), 0u);
  EXPECT_EQ(
      found("loss < 2") + found("loss >= 2") + found("loss = nan") + found("not (loss = nan or loss < 2 or loss >= 2)"),
      static_cast<std::size_t>(count));
  EXPECT_EQ(found("RUN-3"), found("name:run-3 or note:run-3"));
  EXPECT_EQ(found("state:failed NOT tag:ladder"), found("state=failed and (not tag=ladder)"));
  EXPECT_EQ(found("created > 2001-01-01"), static_cast<std::size_t>(count));
  EXPECT_EQ(found("created > 2100-01-01T10:30"), 0u);
}

TEST_F(Filtering, ArchivedAndDeletedRunsAreShownWhenAskedFor) {
  RunQuery query;
  const auto count_of = [&](const std::string& text) {
    query.filter = parsed(text);
    return must(reader_->runs(query)).size();
  };
  const auto plain = count_of("");
  EXPECT_LT(plain, all_.size());
  EXPECT_GT(count_of("is:archived"), 0u);
  EXPECT_GT(count_of("is:deleted"), 0u);
  EXPECT_EQ(count_of("number >= 0"), plain);
}

TEST_F(Filtering, OrderAndGroupsAgreeWithTheRows) {
  RunQuery query;
  query.order = "optim.muon_lr";
  query.descending = true;
  const auto rows = must(reader_->runs(query));
  const auto places = must(reader_->order(query, "train.seed"));
  ASSERT_EQ(places.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(places[i].number, rows[i].number);
    EXPECT_EQ(places[i].state, rows[i].state);
    EXPECT_EQ(places[i].loss.has_value(), rows[i].last_loss.has_value());
    const auto& config = configs_[static_cast<std::size_t>(rows[i].number)];
    EXPECT_EQ(places[i].group, config ? std::to_string(config->train.seed) : "") << i;
  }
  const auto some = must(reader_->numbered({places[3].number, places[1].number}));
  EXPECT_EQ(some.size(), 2u);
  EXPECT_TRUE(must(reader_->numbered({})).empty());
  EXPECT_FALSE(reader_->order(query, "'; DROP TABLE runs"));
}

TEST(RunFilter, ErrorsNameThePlaceAndTheRemedy) {
  struct Case {
    const char* text;
    std::size_t at;
    const char* says;
  };
  for (const Case& c :
       {Case{"los < 3", 0, "did you mean \"loss\""}, Case{"loss <", 5, "lacks a value"},
        Case{"loss < cheese", 7, "a number"}, Case{"state:broken", 6, "one of queued"},
        Case{"state:fialed", 6, "failed"}, Case{"(loss < 3", 0, "not closed"}, Case{"loss < 3)", 8, "closes"},
        Case{"a and", 5, "missing at the end"}, Case{"and b", 0, "before \"and\""}, Case{"name:\"open", 5, "quote"},
        Case{"tag < b", 4, "no order"}, Case{"step = nan", 7, "NaN"}, Case{"loss < nan", 7, "NaN"},
        Case{"< 3", 0, "no key"}, Case{"()", 1, "empty"}, Case{"created > yesterday", 10, "a day"},
        Case{"qk_norm = maybe", 10, "true or false"}, Case{"loss ~= 3", 5, "compares nothing"}}) {
    const auto filter = parse_run_filter(c.text);
    ASSERT_FALSE(filter) << c.text;
    EXPECT_EQ(filter.error().at, c.at) << c.text;
    const std::string said = filter.error().what + " " + filter.error().remedy;
    EXPECT_NE(said.find(c.says), std::string::npos) << c.text << ": " << said;
    EXPECT_EQ(to_error(filter.error(), c.text).kind, Error::Kind::usage);
  }
}

TEST(RunFilter, TooMuchIsRefusedNotCrashed) {
  std::string deep(3000, '('), many, nots;
  for (int i = 0; i < 900; ++i) many += "a ";
  for (int i = 0; i < 900; ++i) nots += "not ";
  for (const std::string& text : {deep, many, nots + "a", std::string(5000, 'a'), std::string("a\0b", 3),
                                  std::string("\xff"), std::string("name:\xc3")})
    EXPECT_FALSE(parse_run_filter(text)) << text.substr(0, 20);
  // Whatever is typed: an answer, and a place within the text.
  std::mt19937 random(3);
  const std::string letters = "ab <>=!:~()\"'\\.lossandornt3e-";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (unsigned n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    const auto filter = parse_run_filter(text);
    if (!filter) {
      ASSERT_LE(filter.error().at + filter.error().length, text.size()) << text;
      ASSERT_FALSE(filter.error().what.empty());
    }
    const auto offered = complete_run_filter(text, random() % (text.size() + 1), {});
    ASSERT_LE(offered.from, offered.to);
    ASSERT_LE(offered.to, text.size());
  }
}

TEST(RunFilter, EveryKeyCanBeAskedFor) {
  TemporaryFolder folder;
  must(Store::open(folder.path()));
  const auto reader = must(open_store_reader(folder.path()));
  std::set<std::string> seen;
  for (const FilterKey& key : filter_keys()) {
    EXPECT_TRUE(seen.insert(key.key).second) << key.key;
    const std::string value = !key.choices.empty()                   ? key.choices[0]
                              : key.type == FilterKey::Type::boolean ? "true"
                              : key.type == FilterKey::Type::time    ? "2025-01-31"
                              : key.type == FilterKey::Type::number  ? "1"
                                                                     : "x";
    RunQuery query;
    query.filter = parsed(key.key + " = " + value);
    EXPECT_TRUE(reader->runs(query)) << key.key;
    if (key.type == FilterKey::Type::tag || key.type == FilterKey::Type::is) continue;
    query.order = key.key;
    EXPECT_TRUE(reader->order(query, key.key)) << key.key;
  }
}

std::vector<std::string> offered(const std::string& with_cursor, const FilterWords& words = {}) {
  const std::size_t cursor = with_cursor.find('|');
  std::string text = with_cursor;
  text.erase(cursor, 1);
  std::vector<std::string> texts;
  for (const FilterCompletion& c : complete_run_filter(text, cursor, words).choices) texts.push_back(c.text);
  return texts;
}

TEST(RunFilter, CompletesKeysSignsAndValues) {
  const auto has = [](const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
  };
  const FilterWords words{{"ablation", "two words"}, {"max_logit.L3.H7"}, {"first-run"}};
  EXPECT_TRUE(has(offered("|"), "tag"));
  EXPECT_TRUE(has(offered("|"), "not"));
  EXPECT_EQ(offered("sta|").front(), "state");
  EXPECT_TRUE(has(offered("muon|"), "optim.muon_lr"));
  EXPECT_TRUE(has(offered("loss |"), "<="));
  EXPECT_FALSE(has(offered("tag |"), "<"));
  EXPECT_TRUE(has(offered("state:|"), "failed"));
  EXPECT_EQ(offered("state:fa|"), std::vector<std::string>{"failed"});
  EXPECT_TRUE(has(offered("tag:|", words), "ablation"));
  EXPECT_TRUE(has(offered("tag:|", words), "\"two words\""));
  EXPECT_TRUE(has(offered("mixer = |"), "mla"));
  EXPECT_TRUE(has(offered("loss < 3 |"), "and"));
  EXPECT_TRUE(has(offered("H7|", words), "metric.max_logit.L3.H7"));
  EXPECT_TRUE(has(offered("loss < 3 and (|"), "val_loss"));
  const auto within = complete_run_filter("state:faxled x", 8, {});
  EXPECT_EQ(within.from, 6u);
  EXPECT_EQ(within.to, 12u);
}

}  // namespace
}  // namespace stacklab
