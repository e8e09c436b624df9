#include "engine/store/store.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <utility>

#include "engine/base/atomic_file.h"
#include "engine/base/clock.h"
#include "engine/base/held_folder.h"
#include "engine/base/log.h"
#include "engine/store/claims.h"
#include "engine/store/database.h"
#include "engine/store/edits.h"
#include "engine/store/left_spills.h"
#include "engine/store/liveness.h"
#include "engine/store/queue.h"
#include "engine/store/writer.h"

namespace stacklab {

class Claim::Hold {
 public:
  explicit Hold(std::shared_ptr<store::Attachment> from) : attachment(std::move(from)) {}
  const std::shared_ptr<store::Attachment> attachment;
};

namespace {

namespace fs = std::filesystem;
using store::Attachment;
using store::Writer;

class Sink final : public RunSink {
 public:
  Sink(Writer& writer, std::shared_ptr<Attachment> from) : writer_(writer), from_(std::move(from)) {}

  void progress(const Progress& progress) override {
    writer_.pulse(from_, [&](Attachment& a) { a.progress = progress; });
  }
  void metrics(const MetricEvent& event) override {
    store::StepRecord record{event.step, event.tokens, event.process_seconds, event.unix_time, {}};
    record.values.reserve(event.values.size());
    for (const auto& value : event.values) record.values.emplace_back(value.name, value.value);
    writer_.push(from_, std::move(record));
  }
  void event(const RunEvent& event) override {
    writer_.push(from_,
                 store::EventRecord{0, event.step, unix_seconds(), event.kind, event.text, event.severity, event.value},
                 true);
  }
  void resolved(RunEvent::Kind kind, std::int64_t step) override {
    writer_.push(from_, store::ResolvedRecord{0, step, unix_seconds(), kind}, true);
  }
  void beat(double next_within_seconds) override {
    const double now = unix_seconds();
    const auto due = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                            std::chrono::duration<double>(next_within_seconds));
    writer_.pulse(from_, [&](Attachment& a) {
      a.beat = {now, now + next_within_seconds};
      a.beat_due = due;
    });
  }
  void resumed_after(std::int64_t step) override { writer_.push(from_, store::ResumedRecord{step}, true); }
  void fact(std::string_view name, double value) override {
    writer_.push(from_, store::FactRecord{std::string(name), value});
  }
  void settle() override { writer_.settle(); }

 private:
  Writer& writer_;
  const std::shared_ptr<Attachment> from_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(const fs::path& workspace, std::unique_ptr<SQLite::Database> db, const StoreOptions& options)
      : workspace_(workspace), folder_(workspace), writer_(workspace, std::move(db), options) {
    if (::stat(store::database_file(workspace_).c_str(), &place_) != 0) place_ = {};
  }

  Result<Claim> claim(const ClaimRequest& request, RunRequests requests) override {
    store::ClaimedRow row;
    const Status done = writer_.call([&](SQLite::Database& db) -> Status {
      if (request.resume) store::take_in_left_spills(db, workspace_);
      auto claimed = store::claim_run(db, request, store::this_owner(), unix_seconds());
      if (!claimed) return tl::unexpected(claimed.error());
      row = std::move(*claimed);
      return {};
    });
    if (!done) return tl::unexpected(done.error());
    if (row.claim.kind != Claim::Kind::already_finished) {
      auto attachment = std::make_shared<Attachment>();
      attachment->key = {request.id, row.session};
      attachment->run_number = row.run_number;
      attachment->requests = std::move(requests);
      writer_.attach(attachment);
      row.claim.hold = std::make_shared<Claim::Hold>(std::move(attachment));
    }
    return std::move(row.claim);
  }

  Result<Claim::Kind> look(const ClaimRequest& request) override {
    Claim::Kind kind{};
    const Status done = writer_.call([&](SQLite::Database& db) -> Status {
      store::take_in_left_spills(db, workspace_);
      auto claimed = store::claim_run(db, request, store::this_owner(), unix_seconds(), true);
      if (!claimed) return tl::unexpected(claimed.error());
      kind = claimed->claim.kind;
      return {};
    });
    if (!done) return tl::unexpected(done.error());
    return kind;
  }

  std::unique_ptr<RunSink> sink(const Claim& claim) override {
    return std::make_unique<Sink>(writer_, claim.hold->attachment);
  }

  void note_stopping(const Claim& claim) override {
    writer_.pulse(claim.hold->attachment, [](Attachment& a) { a.stopping = true; });
  }

  Status end(const Claim& claim, const Completion& c) override {
    const auto& from = claim.hold->attachment;
    writer_.push(from, store::EndRecord{c.state, c.cause, unix_seconds(), c.step, c.tokens, c.seconds, c.parameters,
                                        c.plan_bytes, c.peak_bytes, c.tokens_per_second, c.queue_options});
    const Status stored = writer_.flush();
    writer_.detach(from);
    return stored;
  }

  void request_stop(const RunId& run, StopKind kind) override {
    writer_.post([run, kind](SQLite::Database& db) { store::set_stop_requested(db, run, kind); });
  }
  void request_checkpoint(const RunId& run) override {
    writer_.post([run](SQLite::Database& db) { store::set_checkpoint_requested(db, run); });
  }
  void request_trace(const RunId& run) override {
    writer_.post([run](SQLite::Database& db) { store::set_trace_requested(db, run); });
  }

  Result<bool> stop_by_request(const RunId& run, StopKind kind) override {
    return call<bool>([&](SQLite::Database& db) { return Result<bool>(store::set_stop_requested(db, run, kind)); });
  }
  Result<bool> checkpoint_by_request(const RunId& run) override {
    return call<bool>([&](SQLite::Database& db) { return Result<bool>(store::set_checkpoint_requested(db, run)); });
  }
  Result<bool> trace_by_request(const RunId& run) override {
    return call<bool>([&](SQLite::Database& db) { return Result<bool>(store::set_trace_requested(db, run)); });
  }

  Result<RunEdit> edit(const RunId& run, const RunEdit& edit) override {
    return call<RunEdit>([&](SQLite::Database& db) { return store::edit_run(db, run, edit, unix_seconds()); });
  }
  Status add_fork(const ForkedRun& fork) override {
    return writer_.call(
        [&](SQLite::Database& db) { return store::add_fork(db, fork, store::this_owner(), unix_seconds()); });
  }
  Status purge(const RunId& run) override {
    return writer_.call([&](SQLite::Database& db) { return store::purge_run(db, run); });
  }

  Result<std::int64_t> queue_add(const QueueEntry& entry, bool ours) override {
    return call<std::int64_t>([&](SQLite::Database& db) -> Result<std::int64_t> {
      return store::add_to_queue(db, entry, ours ? std::optional(store::this_owner()) : std::nullopt, unix_seconds());
    });
  }
  void queue_add_later(const QueueEntry& entry, std::function<void(std::int64_t id)> done) override {
    writer_.post([entry, done = std::move(done)](SQLite::Database& db) {
      if (const auto id = store::add_to_queue(db, entry, store::this_owner(), unix_seconds())) done(*id);
    });
  }
  Status queue_move(std::int64_t entry, std::int64_t place) override {
    return writer_.call([&](SQLite::Database& db) { return store::move_in_queue(db, entry, place); });
  }
  Status queue_remove(std::int64_t entry) override {
    return writer_.call([&](SQLite::Database& db) { return store::remove_from_queue(db, entry); });
  }
  Status queue_release(std::int64_t entry) override {
    return writer_.call([&](SQLite::Database& db) { return store::release_in_queue(db, entry); });
  }
  Result<std::optional<QueueEntry>> queue_take(std::optional<std::int64_t> entry) override {
    return call<std::optional<QueueEntry>>(
        [&](SQLite::Database& db) { return store::take_from_queue(db, store::this_owner(), entry); });
  }

  Status check_place() const override {
    struct stat now {};
    const fs::path file = store::database_file(workspace_);
    if (::stat(file.c_str(), &now) == 0 && now.st_dev == place_.st_dev && now.st_ino == place_.st_ino) return {};
    return failed(
        fmt::format("the workspace {} {} while it is in use", workspace_.string(),
                    folder_.in_place() ? "lost its store, which was moved, deleted or replaced," : folder_.fate()),
        "bring it back to its place");
  }

  Status flush() override { return writer_.flush(); }
  StoreHealth health() const override { return writer_.health(); }

 private:
  // A task of the writer's thread that has a result.
  template <class T, class F>
  Result<T> call(F&& task) {
    std::optional<T> value;
    const Status done = writer_.call([&](SQLite::Database& db) -> Status {
      auto result = task(db);
      if (!result) return tl::unexpected(result.error());
      value.emplace(std::move(*result));
      return {};
    });
    if (!done) return tl::unexpected(done.error());
    return std::move(*value);
  }

  const fs::path workspace_;
  const HeldFolder folder_;
  struct stat place_ {};  // of the data base's file
  Writer writer_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const fs::path& workspace, const StoreOptions& options) {
  ignore_file_size_signal();
  // SQLite takes a relative name that starts with "file:" for a URI.
  std::error_code ec;
  const fs::path folder = fs::absolute(workspace, ec);
  fs::create_directories(folder / "runs", ec);
  if (ec) return tl::unexpected<Error>(file_error("cannot create the workspace's folder", folder / "runs", ec.value()));
  auto db = store::open_for_writing(folder, {static_cast<int>(options.claim_timeout.count()), options.max_pages});
  if (!db) return tl::unexpected(db.error());
  store::take_in_left_spills(**db, folder);
  const Status marked = store::guarded(folder, [&]() -> Status {
    for (const auto& note : store::mark_lost_runs(**db, unix_seconds())) log_info("{}", note);
    return {};
  });
  // Readers see for themselves what is lost: a disk that is full must not keep anybody out.
  if (!marked) log_warning("{}", marked.error().message());
  (*db)->setBusyTimeout(static_cast<int>(options.busy_timeout.count()));
  return std::make_unique<SqliteStore>(folder, std::move(*db), options);
}

}  // namespace stacklab
