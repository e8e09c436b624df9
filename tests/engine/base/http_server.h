// A server of this computer whose answers a test writes byte by byte, wrong ones included.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace stacklab {

class HttpServer {
 public:
  struct Request {
    std::string text;  // the first line and the headers

    // Of a header, in lower case as it is sent or not.
    std::string header(std::string_view name) const {
      const std::size_t at = text.find("\r\n" + std::string(name) + ": ");
      if (at == std::string::npos) return {};
      const std::size_t begin = at + name.size() + 4;
      return text.substr(begin, text.find("\r\n", begin) - begin);
    }
    std::string path() const {
      const std::size_t begin = text.find(' ') + 1;
      return text.substr(begin, text.find(' ', begin) - begin);
    }
    // Of "Range: bytes=N-", or 0.
    std::size_t range() const {
      const std::string range = header("Range");
      return range.empty() ? 0 : std::stoul(range.substr(range.find('=') + 1));
    }
  };

  class Connection {
   public:
    Connection(int fd, std::stop_token stop) : fd_(fd), stop_(std::move(stop)) {}
    void send(std::string_view bytes) const {
      while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;  // the other side has gone
        bytes.remove_prefix(static_cast<std::size_t>(n));
      }
    }
    // Says nothing more until the other side, or the test, has had enough.
    void hang() const {
      while (!stop_.stop_requested()) {
        pollfd watched{fd_, POLLIN | POLLRDHUP, 0};
        if (::poll(&watched, 1, 20) > 0) return;
      }
    }

   private:
    int fd_;
    std::stop_token stop_;
  };

  using Handler = std::function<void(const Request&, const Connection&)>;

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
  }
  ~HttpServer() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
  }

  std::string url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd watched{listener_, POLLIN, 0};
      if (::poll(&watched, 1, 20) <= 0) continue;
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      Request request;
      char buffer[4096];
      while (request.text.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) break;
        request.text.append(buffer, static_cast<std::size_t>(n));
      }
      if (!request.text.empty()) {
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        handler_(request, Connection(fd, stop));
      }
      ::shutdown(fd, SHUT_WR);
      ::close(fd);
    }
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::jthread thread_;
};

// A file as an honest server gives it: with ranges, to who names this version of it; `sent` bytes at most, then the
// connection ends.
inline void serve_file(const HttpServer::Request& request, const HttpServer::Connection& to, std::string_view body,
                       const std::string& etag, std::size_t sent = std::string::npos) {
  const std::size_t begin = request.header("If-Range") == etag ? request.range() : 0;
  const std::string size = std::to_string(body.size());
  std::string head = begin > 0 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(begin) + "-" +
                                     std::to_string(body.size() - 1) + "/" + size + "\r\n"
                               : "HTTP/1.1 200 OK\r\n";
  head +=
      "ETag: " + etag + "\r\nContent-Length: " + std::to_string(body.size() - begin) + "\r\nConnection: close\r\n\r\n";
  to.send(head);
  to.send(body.substr(begin, sent));
}

}  // namespace stacklab
