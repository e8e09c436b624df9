#include "engine/base/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/log.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path beside(const fs::path& target, const char* ending) {
  fs::path path = target;
  path += ending;
  return path;
}

// What is known of a file that is being fetched or was.
struct Record {
  std::string url, etag, modified;
  std::int64_t bytes = 0;
  std::string sha256;

  // What makes a server go on only with the same version: weak tags do not promise equal bytes.
  std::string validator() const { return !etag.empty() && !etag.starts_with("W/") ? etag : modified; }

  static Record read(const fs::path& file) {
    Record record;
    const Result<std::string> text = read_file(file, 1 << 16);
    const Json json = text ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
    if (!json.is_object()) return record;
    for (auto [key, field] : {std::pair("url", &record.url), std::pair("etag", &record.etag),
                              std::pair("modified", &record.modified), std::pair("sha256", &record.sha256)}) {
      if (json.contains(key) && json[key].is_string()) *field = json[key].get<std::string>();
    }
    if (json.contains("bytes") && json["bytes"].is_number_unsigned()) record.bytes = json["bytes"].get<std::int64_t>();
    return record;
  }
  Status write(const fs::path& file) const {
    const Json json = {{"url", url}, {"etag", etag}, {"modified", modified}, {"bytes", bytes}, {"sha256", sha256}};
    return write_file_atomically(file, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }
};

// The headers of one answer.
struct Answer {
  long status = 0;
  std::string etag, modified, type;
  std::int64_t length = -1, range_begin = -1, range_total = -1;
  double retry_after = 0;

  void read(std::string_view line) {
    line = trim(line);
    if (line.starts_with("HTTP/")) {  // of the next answer: a redirection comes before
      *this = {};
      const std::size_t space = line.find(' ');
      if (space != std::string_view::npos) status = static_cast<long>(parse_int(line.substr(space + 1, 3)).value_or(0));
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::string_view value = trim(line.substr(colon + 1));
    if (name == "etag") etag = value;
    if (name == "last-modified") modified = value;
    if (name == "content-type") type = value;
    if (name == "content-length") length = parse_int(value).value_or(-1);
    if (name == "retry-after") retry_after = static_cast<double>(parse_int(value).value_or(0));
    if (name == "content-range" && value.starts_with("bytes ")) {  // "bytes 5-9/10", "bytes */10"
      const std::size_t dash = value.find('-'), slash = value.find('/');
      if (dash != std::string_view::npos) range_begin = parse_int(value.substr(6, dash - 6)).value_or(-1);
      if (slash != std::string_view::npos) range_total = parse_int(value.substr(slash + 1)).value_or(-1);
    }
  }
};

// The open .part file, locked against other processes.
class Part {
 public:
  static Result<Part> open(const fs::path& file, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    for (;;) {
      Part part(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
      if (part.fd_ < 0) return tl::unexpected(file_error("cannot write", file, errno));
      if (::flock(part.fd_, LOCK_EX | LOCK_NB) == 0) {
        // The one before may have renamed the file after we opened it.
        struct stat ours {
        }, there{};
        if (::fstat(part.fd_, &ours) == 0 && ::stat(file.c_str(), &there) == 0 && ours.st_ino == there.st_ino)
          return part;
        continue;
      }
      if (errno != EWOULDBLOCK && errno != EINTR) return tl::unexpected(file_error("cannot lock", file, errno));
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
      if (stop.stop_requested())
        return stopped(fmt::format("{}: stopped while another process fetched it", file.string()));
    }
  }
  Part(Part&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (fd_ >= 0) ::close(fd_);
  }

  std::int64_t size() const {
    struct stat now {};
    return ::fstat(fd_, &now) == 0 ? static_cast<std::int64_t>(now.st_size) : 0;
  }
  // 0 or the error number.
  int truncate(std::int64_t bytes) const { return ::ftruncate(fd_, bytes) == 0 ? 0 : errno; }
  int append(std::string_view bytes, std::int64_t at) const {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno;
      bytes.remove_prefix(static_cast<std::size_t>(n));
      at += n;
    }
    return 0;
  }
  int sync() const { return ::fsync(fd_) == 0 ? 0 : errno; }

 private:
  explicit Part(int fd) : fd_(fd) {}
  int fd_;
};

// One try: asks for what is missing and appends what comes.
class Attempt {
 public:
  enum class Outcome { whole, again, from_the_start, fatal, stopped };

  Attempt(const Download& what, const Part& part, Record& record, const DownloadProgress& progress,
          const DownloadLimits& limits)
      : what_(what), part_(part), record_(record), progress_(progress), limits_(limits) {}

  Outcome run(const std::stop_token& stop);

  std::string why;
  std::optional<Error> error;  // of a fatal outcome
  double wanted_pause = 0;

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t n, void* self) {
    static_cast<Attempt*>(self)->answer_.read({data, size * n});
    return size * n;
  }
  static std::size_t on_body(char* data, std::size_t size, std::size_t n, void* self) {
    return static_cast<Attempt*>(self)->body({data, size * n}) ? size * n : 0;
  }

  bool body(std::string_view bytes);
  bool begin();
  bool give_up(Error e) {
    error = std::move(e);
    return false;
  }
  Outcome judge(CURLcode code);

  const Download& what_;
  const Part& part_;
  Record& record_;
  const DownloadProgress& progress_;
  const DownloadLimits& limits_;
  Answer answer_;
  std::int64_t at_ = 0;
  bool begun_ = false, restart_ = false;
};

Error other_file(const Download& what, const std::string& why) {
  return {Error::Kind::failed, fmt::format("{}: {}", what.url, why),
          "it was changed where it comes from: use another corpus, or a newer version of this program"};
}

// The first bytes are there: is it what was asked for?
bool Attempt::begin() {
  begun_ = true;
  if (answer_.status == 206) {
    const bool same = answer_.range_begin == at_ && (record_.bytes == 0 || answer_.range_total == record_.bytes) &&
                      (answer_.etag.empty() || record_.etag.empty() || answer_.etag == record_.etag);
    restart_ = !same;
    return same;
  }
  if (answer_.type.starts_with("text/html") && what_.target.extension() != ".html") {
    return give_up({Error::Kind::failed, what_.url + ": a web page came in place of the file",
                    "a network that asks for a login answers so: open the URL in a browser"});
  }
  at_ = 0;
  if (const int code = part_.truncate(0)) return give_up(file_error("cannot write", what_.target, code));
  record_.etag = answer_.etag, record_.modified = answer_.modified;
  record_.bytes = std::max<std::int64_t>(answer_.length, 0);
  if (what_.bytes > 0 && record_.bytes > 0 && record_.bytes != what_.bytes) {
    return give_up(other_file(what_, fmt::format("has {} bytes, not {}", record_.bytes, what_.bytes)));
  }
  std::error_code ec;
  const fs::space_info disk = fs::space(what_.target.parent_path(), ec);
  if (!ec && static_cast<std::uintmax_t>(record_.bytes) > disk.available) {
    return give_up(
        {Error::Kind::failed,
         fmt::format("{} is {} large, and {} has {} left", what_.url, format_bytes(static_cast<double>(record_.bytes)),
                     what_.target.parent_path().string(), format_bytes(static_cast<double>(disk.available))),
         "free some, or choose another workspace"});
  }
  // From now on a later attempt knows with what it may go on.
  if (Status written = record_.write(beside(what_.target, ".json")); !written) return give_up(written.error());
  return true;
}

bool Attempt::body(std::string_view bytes) {
  if (answer_.status != 200 && answer_.status != 206) return true;  // an explanation for people
  if (!begun_ && !begin()) return false;
  if (const int code = part_.append(bytes, at_)) return give_up(file_error("cannot write", what_.target, code));
  at_ += static_cast<std::int64_t>(bytes.size());
  if (progress_) progress_(at_, record_.bytes);
  return true;
}

Attempt::Outcome Attempt::judge(CURLcode code) {
  if (error) return Outcome::fatal;
  if (restart_) return Outcome::from_the_start;
  if (code != CURLE_OK) {
    why = ::curl_easy_strerror(code);
    const bool hopeless = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                          code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_PEER_FAILED_VERIFICATION ||
                          code == CURLE_SSL_CACERT_BADFILE;
    if (!hopeless) return Outcome::again;
    error = {Error::Kind::failed, fmt::format("cannot fetch {}: {}", what_.url, why), "check the URL and the network"};
    return Outcome::fatal;
  }
  switch (answer_.status) {
    case 200:
      if (!begun_ && !begin()) return Outcome::fatal;  // an empty file
      [[fallthrough]];
    case 206:
      why = fmt::format("the connection ended after {} of {} bytes", at_, record_.bytes);
      return record_.bytes > 0 && at_ < record_.bytes ? Outcome::again : Outcome::whole;
    case 416:  // nothing is missing, or the file is another one by now
      return record_.bytes > 0 && at_ == record_.bytes && answer_.range_total == at_ ? Outcome::whole
                                                                                     : Outcome::from_the_start;
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      why = fmt::format("the server answers {}", answer_.status);
      wanted_pause = answer_.retry_after;
      return Outcome::again;
    default:
      break;
  }
  std::string remedy = "the catalogue may be out of date: look at the page of the corpus";
  if (answer_.status == 401 || answer_.status == 403)
    remedy = "its owners want a login or their terms accepted: look at the page of the corpus";
  if (answer_.status == 407) remedy = "the proxy wants a login: see the environment's https_proxy";
  error = {Error::Kind::failed, fmt::format("cannot fetch {}: the server answers {}", what_.url, answer_.status),
           remedy};
  return Outcome::fatal;
}

Attempt::Outcome Attempt::run(const std::stop_token& stop) {
  const std::unique_ptr<CURL, void (*)(CURL*)> easy(::curl_easy_init(), ::curl_easy_cleanup);
  const std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi(::curl_multi_init(), ::curl_multi_cleanup);
  at_ = part_.size();
  curl_slist* list = nullptr;
  if (at_ > 0) {
    list = ::curl_slist_append(list, fmt::format("Range: bytes={}-", at_).c_str());
    list = ::curl_slist_append(list, ("If-Range: " + record_.validator()).c_str());
  }
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, ::curl_slist_free_all);
  const auto set = [&](CURLoption option, auto value) { ::curl_easy_setopt(easy.get(), option, value); };
  set(CURLOPT_URL, what_.url.c_str());
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_USERAGENT, "stacklab");
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits_.connect_seconds * 1000));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(limits_.stall_seconds)));
  set(CURLOPT_HEADERFUNCTION, &Attempt::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Attempt::on_body);
  set(CURLOPT_WRITEDATA, this);
  ::curl_multi_add_handle(multi.get(), easy.get());
  CURLcode code = CURLE_OK;
  {
    const std::stop_callback on_stop(stop, [&multi] { ::curl_multi_wakeup(multi.get()); });
    for (int running = 1; running > 0 && !stop.stop_requested();) {
      if (::curl_multi_perform(multi.get(), &running) != CURLM_OK) break;
      if (running > 0) ::curl_multi_poll(multi.get(), nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    while (const CURLMsg* message = ::curl_multi_info_read(multi.get(), &left)) {
      if (message->msg == CURLMSG_DONE) code = message->data.result;
    }
  }
  ::curl_multi_remove_handle(multi.get(), easy.get());
  if (stop.stop_requested()) return Outcome::stopped;
  return judge(code);
}

// Hashes the file and compares with all that is known of it.
Result<Downloaded> check(const Download& what, const fs::path& file, const Record& record) {
  std::error_code ec;
  const std::int64_t bytes = static_cast<std::int64_t>(fs::file_size(file, ec));
  const std::int64_t expected = what.bytes > 0 ? what.bytes : record.bytes;
  if (expected > 0 && bytes != expected)
    return tl::unexpected(other_file(what, fmt::format("has {} bytes, not {}", bytes, expected)));
  Result<std::string> sha256 = sha256_file(file);
  if (!sha256) return tl::unexpected(sha256.error());
  for (const std::string& known : {what.sha256, record.sha256}) {
    if (known.empty() || *sha256 == known) continue;
    Error error = other_file(what, fmt::format("its SHA-256 is {}, not {}", *sha256, known));
    if (what.sha256.empty())
      error.remedy =
          "it is not what was fetched before; remove " + beside(what.target, ".json").string() + " to take it";
    return tl::unexpected(std::move(error));
  }
  return Downloaded{bytes, *sha256};
}

Result<Downloaded> check_present(const Download& what) {
  const fs::path file = beside(what.target, ".json");
  Record record = Record::read(file);
  if (record.url != what.url) record = {.url = what.url, .etag = {}, .modified = {}, .bytes = 0, .sha256 = {}};
  Result<Downloaded> checked = check(what, what.target, record);
  if (!checked) {
    return failed(fmt::format("{}: {}", what.target.string(), checked.error().what),
                  "remove it, to have it fetched again");
  }
  if (record.sha256.empty()) {
    record.bytes = checked->bytes, record.sha256 = checked->sha256;
    if (Status written = record.write(file); !written) return tl::unexpected(written.error());
  }
  return checked;
}

// The whole file is in .part: checked, recorded, renamed.
Result<Downloaded> finish(const Download& what, const Part& part, Record record) {
  const fs::path partial = beside(what.target, ".part"), file = beside(what.target, ".json");
  Result<Downloaded> checked = check(what, partial, record);
  if (!checked) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    return checked;
  }
  record.bytes = checked->bytes, record.sha256 = checked->sha256;
  if (const int code = part.sync()) return tl::unexpected(file_error("cannot write", partial, code));
  if (Status written = record.write(file); !written) return tl::unexpected(written.error());
  std::error_code ec;
  fs::rename(partial, what.target, ec);
  if (ec) return tl::unexpected(file_error("cannot write", what.target, ec.value()));
  return checked;
}

}  // namespace

Result<Downloaded> download(const Download& what, const DownloadProgress& progress, std::stop_token stop,
                            const DownloadLimits& limits) {
  static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return failed(fmt::format("libcurl: {}", ::curl_easy_strerror(ready)));
  std::error_code ec;
  if (fs::exists(what.target, ec)) return check_present(what);
  fs::create_directories(what.target.parent_path(), ec);
  if (ec) return tl::unexpected(file_error("cannot make the folder", what.target.parent_path(), ec.value()));
  const fs::path partial = beside(what.target, ".part");
  Result<Part> part = Part::open(partial, stop);
  if (!part) return tl::unexpected(part.error());
  if (fs::exists(what.target, ec)) {  // whom we waited for has fetched it
    fs::remove(partial, ec);
    return check_present(what);
  }

  Record record = Record::read(beside(what.target, ".json"));
  if (record.url != what.url) record = {.url = what.url, .etag = {}, .modified = {}, .bytes = 0, .sha256 = {}};
  const auto from_the_start = [&]() -> Status {
    if (const int code = part->truncate(0)) return tl::unexpected(file_error("cannot write", partial, code));
    return {};
  };
  if (part->size() > 0 && (record.validator().empty() || (record.bytes > 0 && part->size() > record.bytes))) {
    if (Status emptied = from_the_start(); !emptied) return tl::unexpected(emptied.error());
  }
  if (record.bytes > 0 && part->size() == record.bytes) return finish(what, *part, record);

  double pause = limits.first_pause;
  std::int64_t furthest = part->size();
  int restarts = 0;
  for (int attempt = 0;;) {
    Attempt tried(what, *part, record, progress, limits);
    switch (tried.run(stop)) {
      case Attempt::Outcome::whole:
        return finish(what, *part, record);
      case Attempt::Outcome::fatal:
        if (part->size() == 0) fs::remove(partial, ec);
        return tl::unexpected(*tried.error);
      case Attempt::Outcome::stopped:
        return stopped(fmt::format("{}: stopped after {}; it goes on from there", what.url,
                                   format_bytes(static_cast<double>(part->size()))));
      case Attempt::Outcome::from_the_start:
        if (Status emptied = from_the_start(); !emptied) return tl::unexpected(emptied.error());
        furthest = 0;
        if (++restarts > 2)
          return tl::unexpected(other_file(what, "the server answers with other parts than were asked for"));
        continue;
      case Attempt::Outcome::again:
        break;
    }
    // Getting further is hope; the same bytes again are not.
    if (part->size() > furthest) attempt = 0, pause = limits.first_pause, furthest = part->size();
    if (++attempt >= limits.attempts) {
      return failed(
          fmt::format("cannot fetch {}: {}", what.url, tried.why),
          "check the network, and the proxy in https_proxy if there is one; what came is kept, and asking again "
          "goes on from there");
    }
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    const double seconds = std::min(std::max(pause, tried.wanted_pause), limits.longest_pause);
    log_warning("{}: {}; attempt {} of {} in {:.0f} s", what.url, tried.why, attempt + 1, limits.attempts, seconds);
    wake.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
    pause *= 2;
    // What cannot be gone on with begins again.
    if (part->size() > 0 && record.validator().empty()) {
      if (Status emptied = from_the_start(); !emptied) return tl::unexpected(emptied.error());
    }
  }
}

}  // namespace stacklab
