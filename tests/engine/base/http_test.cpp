#include "engine/base/http.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "engine/base/atomic_file.h"
#include "engine/base/sha256.h"
#include "tests/engine/base/http_server.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Request = HttpServer::Request;
using Connection = HttpServer::Connection;

constexpr DownloadLimits hasty = {
    .attempts = 3, .connect_seconds = 5, .stall_seconds = 1, .first_pause = 1e-3, .longest_pause = 2e-3};

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

class Http : public testing::Test {
 protected:
  Result<Downloaded> get(const HttpServer& server, const std::string& path = "/file.bin", std::stop_token stop = {},
                         const DownloadProgress& progress = {}) {
    return download({server.url(path), target(), bytes_, sha256_}, progress, std::move(stop), hasty);
  }
  fs::path target() const { return folder_ / "below/file.bin"; }
  fs::path part() const { return folder_ / "below/file.bin.part"; }
  void expect_error(const Result<Downloaded>& result, const std::string& because) const {
    ASSERT_FALSE(result) << because;
    EXPECT_NE(result.error().what.find(because), std::string::npos) << result.error().message();
    EXPECT_FALSE(result.error().remedy.empty()) << result.error().what;
    EXPECT_FALSE(fs::exists(target()));
  }
  void expect_whole(const Result<Downloaded>& result) const {
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(result->bytes, static_cast<std::int64_t>(body_.size()));
    EXPECT_EQ(result->sha256, sha256_hex(std::string_view(body_)));
    EXPECT_TRUE(file_text(target()) == body_);
    EXPECT_FALSE(fs::exists(part()));
  }

  TemporaryFolder folder_;
  std::string body_ = some_bytes(300'000);
  std::int64_t bytes_ = 0;
  std::string sha256_;
};

TEST_F(Http, FetchesOnceAndChecksFromThenOn) {
  std::string other = body_;
  other[5] ^= 1;
  std::atomic<bool> changed = false;
  const HttpServer server([&](const Request& request, const Connection& to) {
    serve_file(request, to, changed ? other : body_, "\"v1\"");
  });
  std::int64_t done = 0, total = 0;
  expect_whole(get(server, "/file.bin", {}, [&](std::int64_t d, std::int64_t t) {
    EXPECT_GE(d, done);
    done = d, total = t;
  }));
  EXPECT_EQ(done, 300'000);
  EXPECT_EQ(total, 300'000);
  expect_whole(get(server));
  EXPECT_EQ(server.requests().size(), 1u);
  // A file that changed since.
  std::string damaged = body_;
  damaged[1000] ^= 1;
  put_file(target(), damaged);
  const auto result = get(server);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("SHA-256"), std::string::npos) << result.error().message();
  // Removed and fetched again, what comes must be what came before.
  fs::remove(target());
  expect_whole(get(server));
  fs::remove(target());
  changed = true;
  expect_error(get(server), "SHA-256");
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(Http, ABrokenConnectionGoesOnWhereItEnded) {
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    serve_file(request, to, body_, "\"v1\"", ++n < 4 ? 70'000 : std::string::npos);
  });
  expect_whole(get(server));
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[0].range(), 0u);
  EXPECT_EQ(requests[1].range(), 70'000u);
  EXPECT_EQ(requests[1].header("If-Range"), "\"v1\"");
  EXPECT_EQ(requests[3].range(), 210'000u);
}

TEST_F(Http, AnotherCallGoesOnToo) {
  std::atomic<bool> cut = true;
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (cut && request.range() > 0) return;  // hangs up
    serve_file(request, to, body_, "\"v1\"", cut ? 100'000 : std::string::npos);
  });
  expect_error(get(server), "cannot fetch");
  EXPECT_EQ(fs::file_size(part()), 100'000u);
  cut = false;
  expect_whole(get(server));
  EXPECT_EQ(server.requests().back().range(), 100'000u);
}

TEST_F(Http, AServerThatIgnoresRangesBeginsAgain) {
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request&, const Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 300000\r\n\r\n");
    to.send(std::string_view(body_).substr(0, ++n < 3 ? 50'000u * static_cast<unsigned>(n) : std::string::npos));
  });
  expect_whole(get(server));
}

TEST_F(Http, TheSameBytesAgainAreNoProgress) {
  const HttpServer server([&](const Request&, const Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 300000\r\n\r\n");
    to.send(std::string_view(body_).substr(0, 50'000));
  });
  expect_error(get(server), "cannot fetch");
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(Http, AnotherVersionBeginsAgain) {
  const std::string newer = some_bytes(280'000);
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (++n == 1) return serve_file(request, to, body_, "\"v1\"", 290'000);
    serve_file(request, to, newer, "\"v2\"");
  });
  const auto result = get(server);
  body_ = newer;
  expect_whole(result);
  EXPECT_EQ(server.requests().size(), 2u);
}

// A server that goes on with another version although it was told not to.
TEST_F(Http, PartsOfTwoVersionsAreNotJoined) {
  const std::string newer = some_bytes(310'000).substr(10'000);
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (++n == 1) return serve_file(request, to, body_, "\"v1\"", 70'000);
    const std::size_t begin = request.range();
    to.send(begin > 0 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 70000-299999/300000\r\n"
                      : "HTTP/1.1 200 OK\r\n");
    to.send("ETag: \"v2\"\r\nContent-Length: " + std::to_string(newer.size() - begin) + "\r\n\r\n");
    to.send(std::string_view(newer).substr(begin));
  });
  const auto result = get(server);
  body_ = newer;
  expect_whole(result);
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(Http, PartsThatWereNotAskedForAreRefused) {
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (request.range() == 0) return serve_file(request, to, body_, "\"v1\"", 70'000);
    ++n;
    to.send("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-299999/300000\r\nETag: \"v1\"\r\n\r\n");
    to.send(body_);
  });
  expect_error(get(server), "other parts");
  EXPECT_GE(n, 2);
}

TEST_F(Http, WithoutAVersionNothingIsJoined) {
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    EXPECT_EQ(request.range(), 0u);
    to.send("HTTP/1.1 200 OK\r\nETag: W/\"weak\"\r\nContent-Length: 300000\r\n\r\n");
    to.send(std::string_view(body_).substr(0, ++n == 1 ? 50'000 : std::string::npos));
  });
  expect_whole(get(server));
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(Http, SizesAreCompared) {
  const HttpServer server(
      [&](const Request& request, const Connection& to) { serve_file(request, to, body_, "\"v1\""); });
  bytes_ = 299'999;
  expect_error(get(server), "300000 bytes, not 299999");
  EXPECT_FALSE(fs::exists(part()));
  bytes_ = 300'000;
  sha256_ = std::string(64, 'a');
  expect_error(get(server), "SHA-256");
  sha256_ = sha256_hex(std::string_view(body_));
  expect_whole(get(server));

  // Without a length nobody but the expected size tells that something is missing.
  const HttpServer silent([&](const Request&, const Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    to.send(std::string_view(body_).substr(0, 1000));
  });
  fs::remove(target());
  expect_error(get(silent, "/other"), "1000 bytes, not 300000");
}

TEST_F(Http, AnEmptyFileIsAFile) {
  body_.clear();
  const HttpServer server(
      [&](const Request& request, const Connection& to) { serve_file(request, to, body_, "\"v1\""); });
  expect_whole(get(server));
}

TEST_F(Http, WhatTheServerRefusesIsSaidOnce) {
  for (const auto& [status, type, because] :
       {std::tuple("404 Not Found", "text/html", "404"), std::tuple("401 Unauthorized", "text/plain", "401"),
        std::tuple("403 Forbidden", "text/plain", "403"),
        std::tuple("200 OK", "text/html; charset=utf-8", "web page")}) {
    const HttpServer server([&](const Request&, const Connection& to) {
      const std::string page = "<!DOCTYPE html><title>no</title>";
      to.send(std::string("HTTP/1.1 ") + status + "\r\nContent-Type: " + type +
              "\r\nContent-Length: " + std::to_string(page.size()) + "\r\n\r\n" + page);
    });
    expect_error(get(server), because);
    EXPECT_EQ(server.requests().size(), 1u);
    EXPECT_FALSE(fs::exists(part()));
  }
}

TEST_F(Http, BusyServersAreAskedAgain) {
  std::atomic<int> n = 0;
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (++n == 1) return to.send("HTTP/1.1 503 Busy\r\nRetry-After: 1000\r\nContent-Length: 0\r\n\r\n");
    if (n == 2) return to.send("HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n");
    serve_file(request, to, body_, "\"v1\"");
  });
  expect_whole(get(server));
  fs::remove(target());
  const HttpServer always(
      [&](const Request&, const Connection& to) { to.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"); });
  expect_error(get(always, "/other"), "503");
  EXPECT_EQ(always.requests().size(), 3u);
}

TEST_F(Http, RedirectionsAreFollowed) {
  const HttpServer server([&](const Request& request, const Connection& to) {
    if (request.path() == "/loop") return to.send("HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
    if (request.path() == "/away")
      return to.send("HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
    if (request.path() == "/file.bin")
      return to.send(
          "HTTP/1.1 302 Found\r\nETag: \"of the redirection\"\r\nLocation: /there\r\nContent-Length: 5\r\n\r\nmoved");
    serve_file(request, to, body_, "\"v1\"", request.range() == 0 ? 1000 : std::string::npos);
  });
  expect_whole(get(server));
  EXPECT_EQ(server.requests().back().header("If-Range"), "\"v1\"");
  fs::remove(target());
  expect_error(get(server, "/loop"), "cannot fetch");
  expect_error(get(server, "/away"), "cannot fetch");
  expect_error(download({"ftp://127.0.0.1/x", target(), 0, {}}, {}, {}, hasty), "cannot fetch");
}

TEST_F(Http, NobodyThereIsSaid) {
  std::string url;
  {
    const HttpServer gone([](const Request&, const Connection&) {});
    url = gone.url("/x");
  }
  expect_error(download({url, target(), 0, {}}, {}, {}, hasty), url);
}

TEST_F(Http, ASilentServerIsGivenUp) {
  const HttpServer server([&](const Request&, const Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 300000\r\n\r\nsome");
    to.hang();
  });
  DownloadLimits once = hasty;
  once.attempts = 1;
  expect_error(download({server.url("/x"), target(), 0, {}}, {}, {}, once), "Timeout");
}

TEST_F(Http, AStopEndsItAndKeepsWhatCame) {
  std::stop_source stop;
  std::atomic<bool> hangs = true;
  const HttpServer server([&](const Request& request, const Connection& to) {
    serve_file(request, to, body_, "\"v1\"", hangs ? 200'000 : std::string::npos);
    if (hangs) to.hang();
  });
  const auto result = get(server, "/file.bin", stop.get_token(), [&](std::int64_t done, std::int64_t) {
    if (done == 200'000) stop.request_stop();
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::stopped);
  EXPECT_EQ(fs::file_size(part()), 200'000u);
  hangs = false;
  expect_whole(get(server));
  EXPECT_EQ(server.requests().back().range(), 200'000u);
}

TEST_F(Http, TwoAtOnceFetchOnce) {
  const HttpServer server(
      [&](const Request& request, const Connection& to) { serve_file(request, to, body_, "\"v1\""); });
  std::vector<std::jthread> threads;
  std::atomic<int> whole = 0;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { whole += get(server).has_value(); });
  threads.clear();
  EXPECT_EQ(whole, 4);
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_FALSE(fs::exists(part()));
}

TEST_F(Http, AFullDiskKeepsWhatCame) {
  // A limit on the size of files is the nearest thing to a full disk that a test may make.
  const HttpServer server(
      [&](const Request& request, const Connection& to) { serve_file(request, to, body_, "\"v1\""); });
  ignore_file_size_signal();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = get(server);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_error(result, target().string());
  EXPECT_EQ(server.requests().size(), 1u);
  expect_whole(get(server));
  EXPECT_GT(server.requests().back().range(), 0u);

  const HttpServer huge([&](const Request&, const Connection& to) {
    to.send("HTTP/1.1 200 OK\r\nContent-Length: 4000000000000000000\r\n\r\nx");
    to.hang();
  });
  fs::remove(target());
  expect_error(get(huge, "/huge"), "left");
}

TEST_F(Http, DamagedNotesBeginAgain) {
  const HttpServer server(
      [&](const Request& request, const Connection& to) { serve_file(request, to, body_, "\"v1\""); });
  for (const char* notes : {"", "[]", "{\"url\": 3}", "{\"bytes\": -1, \"etag\": \"\\\"v1\\\"\"}"}) {
    put_file(part(), "what is this?");
    put_file(folder_ / "below/file.bin.json", notes);
    expect_whole(get(server));
    EXPECT_EQ(server.requests().back().range(), 0u);
    fs::remove(target());
  }
}

TEST_F(Http, TheEnvironmentNamesTheProxy) {
  const HttpServer proxy([&](const Request& request, const Connection& to) {
    EXPECT_EQ(request.path(), "http://far.example/file.bin");
    serve_file(request, to, body_, "\"v1\"");
  });
  ::setenv("http_proxy", proxy.url("").c_str(), 1);
  const auto result = download({"http://far.example/file.bin", target(), 0, {}}, {}, {}, hasty);
  ::unsetenv("http_proxy");
  expect_whole(result);
}

}  // namespace
}  // namespace stacklab
