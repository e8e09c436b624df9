// Corpora by URL, from a server of this computer.
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>

#include "engine/base/sha256.h"
#include "engine/data/catalogue.h"
#include "tests/engine/base/http_server.h"
#include "tests/engine/data/data_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

std::string gzip(const std::string& text) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "x.gz";
  const gzFile out = ::gzopen(file.c_str(), "wb");
  EXPECT_EQ(::gzwrite(out, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  EXPECT_EQ(::gzclose(out), Z_OK);
  return file_text(file);
}

class ByUrl : public testing::Test {
 protected:
  ByUrl()
      : server_([this](const HttpServer::Request& request, const HttpServer::Connection& to) {
          if (request.path() == "/a.jsonl")
            return serve_file(request, to, plain_, "\"a\"", cut_ && request.range() == 0 ? 20 : std::string::npos);
          if (request.path() == "/b.json.gz?download=1") return serve_file(request, to, packed_, "\"b\"");
          to.send("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nnope");
        }) {
    source_.page = "http://page.example/card";
    source_.text = "content";
    source_.files = {{server_.url("/a.jsonl"), 0, {}},
                     {server_.url("/b.json.gz?download=1"), 0, {}},
                     {server_.url("/c.jsonl"), 0, {}}};
  }

  Result<Corpus> get(std::int64_t files = 0, std::stop_token stop = {}) {
    const CatalogueItem item = {
        .name = "far", .title = "Far away", .licence = "free", .about_bytes = 5, .source = source_};
    return ensure_corpus("far", workspace_.path(), {item}, {}, std::move(stop), files);
  }
  fs::path data() const { return workspace_.path() / "data"; }

  TemporaryFolder workspace_;
  std::string plain_ = "{\"content\": \"one\\n\", \"x\": 1}\n\n{\"content\": \"\"}\n{\"content\": \"two \\u00e9\"}";
  std::string packed_ = gzip("{\"content\":\"three\"}\n{\"content\":\"four\"}\n");
  std::atomic<bool> cut_ = false;
  UrlSource source_;
  HttpServer server_;
};

TEST_F(ByUrl, FilesBecomeACorpus) {
  const auto corpus = get(2);
  ASSERT_TRUE(corpus) << corpus.error().message();
  ASSERT_EQ(corpus->size(), 4u) << "a line without text is no document";
  EXPECT_EQ(text_of(corpus->document(0)), "one\n");
  EXPECT_EQ(text_of(corpus->document(1)), "two \xc3\xa9");
  EXPECT_EQ(text_of(corpus->document(3)), "four");
  EXPECT_EQ(corpus->info().origin, "http://page.example/card, 2 of 3 files");
  ASSERT_EQ(corpus->info().sources.size(), 2u);
  EXPECT_EQ(corpus->info().sources[0].sha256, sha256_hex(std::string_view(plain_)));
  EXPECT_EQ(corpus->info().sources[1].bytes, static_cast<std::int64_t>(packed_.size()));
  EXPECT_NE(corpus_licence("far", workspace_.path())->find("http://page.example/card"), std::string::npos);
  // Removed and made again, nothing is fetched twice.
  ASSERT_TRUE(remove_corpus("far", workspace_.path()));
  EXPECT_EQ(get(1)->size(), 2u);
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(ByUrl, WhatBrokeOffGoesOn) {
  cut_ = true;
  const auto corpus = get();
  ASSERT_TRUE(corpus) << corpus.error().message();
  EXPECT_EQ(corpus->size(), 2u);
  EXPECT_EQ(server_.requests().back().range(), 20u);
}

TEST_F(ByUrl, FailuresNameThePageAndLeaveNoCorpus) {
  const auto expect = [&](const Result<Corpus>& corpus, const std::string& because) {
    ASSERT_FALSE(corpus) << because;
    EXPECT_NE(corpus.error().message().find(because), std::string::npos) << corpus.error().message();
    EXPECT_TRUE(!fs::exists(data()) || fs::is_empty(data()));
  };
  expect(get(3), "page.example");
  expect(get(3), "404");
  expect(get(4), "1 to 3");
  expect(get(-1), "1 to 3");
  source_.text = "text";
  expect(get(1), "has no \"text\"");
  expect(get(1), "0-a.jsonl, line 1");
  source_.text = "content";
  source_.files[0].sha256 = std::string(64, 'b');
  expect(get(1), "SHA-256");
  source_.files[0] = {server_.url("/x.bin"), 0, {}};
  expect(get(1), "x.bin");
  std::stop_source stop;
  stop.request_stop();
  source_.files[0] = {server_.url("/fresh.jsonl"), 0, {}};
  EXPECT_EQ(get(1, stop.get_token()).error().kind, Error::Kind::stopped);
}

}  // namespace
}  // namespace stacklab
