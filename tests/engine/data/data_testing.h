// Helpers for tests that need a corpus on disk.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/base/thread_team.h"
#include "engine/data/corpus.h"
#include "engine/data/dataset.h"
#include "engine/data/shard_builder.h"
#include "tests/temporary_folder.h"

namespace stacklab {

inline CorpusInfo test_info() {
  CorpusInfo info;
  info.name = "sample";
  info.title = "A sample";
  info.licence = "public domain";
  info.origin = "a test";
  info.sources = {{"thing", "1.0", std::string(64, 'a'), 7}};
  return info;
}

inline DocumentSet document_set(const std::vector<std::string>& documents) {
  DocumentSet set;
  for (const std::string& document : documents) set.add(document);
  return set;
}

// Written to disk and read back.
inline Corpus corpus_of(const std::vector<std::string>& documents) {
  const TemporaryFolder folder;
  const Status written = write_corpus(folder.path() / "sample", test_info(), document_set(documents));
  EXPECT_TRUE(written) << written.error().message();
  Result<Corpus> corpus = Corpus::open(folder.path() / "sample");
  EXPECT_TRUE(corpus) << corpus.error().message();
  return std::move(corpus.value());
}

// Written as token shards and read back: bytes, or what the coding makes of them.
inline Dataset dataset_of(const std::vector<std::string>& documents, bool held_out = false,
                          const TokenCoding& coding = TokenCoding::bytes(), std::int64_t shard_tokens = 1 << 26) {
  const TemporaryFolder folder;
  const Status written = write_corpus(folder.path() / "sample", test_info(), document_set(documents));
  EXPECT_TRUE(written) << written.error().message();
  ThreadTeam team(2);
  ShardOptions options;
  options.shard_tokens = shard_tokens;
  const auto built =
      build_shards(folder.path() / "shards", {{folder.path() / "sample", 1, held_out}}, coding, options, team, {}, {});
  EXPECT_TRUE(built) << built.error().message();
  Result<Dataset> data = Dataset::open({{folder.path() / "shards", 1}}, team, {}, {});
  EXPECT_TRUE(data) << data.error().message();
  return std::move(data.value());
}

inline std::string text_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

// A part of a test that another process runs: a disabled test of this program. `variables` ("NAME=value") reach it as
// its environment.
inline pid_t start_child(const std::string& disabled_test, const std::vector<std::string>& variables) {
  const std::string filter = "--gtest_filter=" + disabled_test;
  std::vector<std::string> environment = variables;
  for (char** v = environ; *v; ++v) environment.emplace_back(*v);
  std::vector<char*> pointers;
  for (std::string& variable : environment) pointers.push_back(variable.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execle("/proc/self/exe", "data_tests", "--gtest_also_run_disabled_tests", "--gtest_brief=1", filter.c_str(),
             nullptr, pointers.data());
    ::_exit(127);
  }
  return child;
}

}  // namespace stacklab
