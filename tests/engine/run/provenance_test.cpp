#include "engine/run/provenance.h"

#include <gtest/gtest.h>

namespace stacklab {
namespace {

Provenance example() {
  Provenance p;
  p.config_hash = "0123456789ab", p.commit = "abc123", p.dirty = true;
  p.corpus = "kjv", p.corpus_sha256 = std::string(64, 'c'), p.tokenizer = "bytes";
  p.environment.fields = {
      {"cpu", "A \"fast\" one\n"}, {"isa", "AVX2"}, {"device", "cpu"}, {"threads", "2"}, {"library.glibc", "2.36"}};
  return p;
}

TEST(Provenance, ReadsBackAsWritten) {
  const auto read = parse_provenance(to_json(example()), "provenance.json");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, example());
  EXPECT_EQ(to_json(*read), to_json(example()));
}

TEST(Provenance, WhatDoesNotFitIsNamed) {
  const std::string good = to_json(example());
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto read = parse_provenance(bad, "there/provenance.json");
    return read ? std::string() : read.error().what;
  };
  EXPECT_NE(error("{", "[").find("there/provenance.json: not a provenance: is not JSON"), std::string::npos);
  EXPECT_NE(error("\"commit\"", "\"comit\"").find("\"commit\" is missing"), std::string::npos);
  EXPECT_NE(error("true", "1").find("dirty"), std::string::npos);
  EXPECT_NE(error("\"AVX2\"", "2").find("\"environment.isa\""), std::string::npos);
  EXPECT_NE(error("\"environment\"", "\"env\"").find("\"environment\" is missing"), std::string::npos);
  EXPECT_EQ(error("\"commit\"", "\"later\": [1, {}], \"commit\""), "") << "a later version may say more";
  for (std::size_t n = 0; n + 2 < good.size(); ++n)
    EXPECT_FALSE(parse_provenance(std::string_view(good).substr(0, n), "p")) << n;
}

TEST(Provenance, DifferencesAreNamedAndWeighed) {
  const Provenance was = example();
  EXPECT_TRUE(differences(was, was).empty());
  Provenance is = was;
  is.config_hash = "another";
  EXPECT_TRUE(differences(was, is).empty()) << "which run it is of is not its environment";
  is.commit = "def456", is.dirty = false;
  is.environment.fields = {
      {"cpu", "another"}, {"isa", "AVX3"}, {"device", "cpu"}, {"threads", "8"}, {"library.fmt", "9"}};
  const std::vector<FieldChange> expected = {{"commit", "abc123", "def456", true},
                                             {"uncommitted changes", "yes", "no", true},
                                             {"cpu", "A \"fast\" one\n", "another", false},
                                             {"isa", "AVX2", "AVX3", true},
                                             {"threads", "2", "8", false},
                                             {"library.glibc", "2.36", "none", true},
                                             {"library.fmt", "none", "9", true}};
  EXPECT_EQ(differences(was, is), expected);
  EXPECT_EQ(to_text({expected[3], expected[6]}), "isa was AVX2, is AVX3; library.fmt was none, is 9");
}

TEST(Provenance, OfThisBuild) {
  const Provenance p = provenance_of_build();
  EXPECT_FALSE(p.commit.empty());
  EXPECT_EQ(p.commit.find("dirty"), std::string::npos);
  const Fingerprint here = current_fingerprint("cpu", 3, {{"SQLite", "3.40"}});
  EXPECT_EQ(*here.find("device"), "cpu");
  EXPECT_EQ(*here.find("threads"), "3");
  EXPECT_EQ(*here.find("library.SQLite"), "3.40");
  EXPECT_EQ(here.find("nothing"), nullptr);
  EXPECT_EQ(*current_fingerprint("reference", 1).find("isa"), "plain");
}

}  // namespace
}  // namespace stacklab
