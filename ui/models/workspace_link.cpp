#include "ui/models/workspace_link.h"

#include <QCoreApplication>
#include <QPointer>
#include <algorithm>

#include "ui/models/workspace_reader.h"

namespace stacklab::ui {

WorkspaceLink::WorkspaceLink(LinkOptions options, QObject* parent) : QObject(parent) {
  qRegisterMetaType<WorkspaceSnapshotPtr>("stacklab::ui::WorkspaceSnapshotPtr");
  qRegisterMetaType<SeriesChunkPtr>("stacklab::ui::SeriesChunkPtr");
  qRegisterMetaType<EventsChunkPtr>("stacklab::ui::EventsChunkPtr");
  qRegisterMetaType<NoticesChunkPtr>("stacklab::ui::NoticesChunkPtr");
  qRegisterMetaType<SystemInfoPtr>("stacklab::ui::SystemInfoPtr");
  reader_ = new WorkspaceReader(std::move(options));
  reader_->moveToThread(&thread_);
  connect(&thread_, &QThread::finished, reader_, &QObject::deleteLater);
  connect(reader_, &WorkspaceReader::opened, this, [this] {
    service_ = reader_->service();
    emit opened();
  });
  connect(reader_, &WorkspaceReader::open_failed, this, &WorkspaceLink::open_failed);
  connect(reader_, &WorkspaceReader::snapshot_ready, this, [this](const WorkspaceSnapshotPtr& snapshot) {
    reader_->snapshot_taken();
    emit snapshot_ready(snapshot);
  });
  connect(reader_, &WorkspaceReader::chunk_ready, this, [this](const SeriesChunkPtr& chunk) {
    reader_->chunk_taken();
    if (chunk->generation == generation_of(chunk->key)) emit chunk_ready(chunk);
  });
  connect(reader_, &WorkspaceReader::events_ready, this, &WorkspaceLink::events_ready);
  connect(reader_, &WorkspaceReader::notices_ready, this, &WorkspaceLink::notices_ready);
  connect(reader_, &WorkspaceReader::system_ready, this, &WorkspaceLink::system_ready);
  connect(reader_, &WorkspaceReader::drained, this, [this] {
    thread_.quit();
    thread_.wait();
    emit closed();
  });
  thread_.setObjectName(QStringLiteral("reader"));
  thread_.start();
}

WorkspaceLink::~WorkspaceLink() {
  if (thread_.isRunning()) {
    if (const auto service = service_.lock()) service->stop_all();
    disconnect(reader_, nullptr, this, nullptr);
    reader_->hurry();
    // Still on its own thread: the reader shuts its connections there, and the service joins its jobs.
    QObject::connect(reader_, &WorkspaceReader::drained, &thread_, &QThread::quit, Qt::DirectConnection);
    QMetaObject::invokeMethod(reader_, &WorkspaceReader::drain, Qt::QueuedConnection);
    thread_.wait();
  }
}

void WorkspaceLink::open() { QMetaObject::invokeMethod(reader_, &WorkspaceReader::open, Qt::QueuedConnection); }

std::uint64_t WorkspaceLink::generation_of(const SeriesKey& key) const {
  const auto it = std::find_if(followed_.begin(), followed_.end(), [&](const auto& f) { return f.first == key; });
  return it == followed_.end() ? 0 : it->second;
}

std::uint64_t WorkspaceLink::follow(const std::vector<SeriesKey>& keys) {
  ++generation_;
  std::vector<std::pair<SeriesKey, std::uint64_t>> next;
  for (const SeriesKey& key : keys) {
    const std::uint64_t before = generation_of(key);
    next.emplace_back(key, before ? before : generation_);
  }
  followed_ = next;
  reader_->hurry();
  QMetaObject::invokeMethod(
      reader_, [reader = reader_, next = std::move(next)]() mutable { reader->follow(std::move(next)); },
      Qt::QueuedConnection);
  return generation_;
}

void WorkspaceLink::look_at(const SectionsByRun& sections) {
  reader_->hurry();
  QMetaObject::invokeMethod(
      reader_, [reader = reader_, sections] { reader->look_at(sections); }, Qt::QueuedConnection);
}

std::uint64_t WorkspaceLink::follow_events(const RunId& run) {
  const std::uint64_t generation = ++generation_;
  reader_->hurry();
  QMetaObject::invokeMethod(
      reader_, [reader = reader_, run, generation] { reader->follow_events(run, generation); }, Qt::QueuedConnection);
  return generation;
}

std::int64_t WorkspaceLink::submit(const RunConfig& config, const SubmitOptions& options) {
  const auto service = service_.lock();
  if (!service || closing_) return -1;
  const std::int64_t job = service->submit(config, options);
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::wake, Qt::QueuedConnection);
  return job;
}

void WorkspaceLink::resume(const RunId& run) {
  if (const auto service = service_.lock(); service && !closing_) service->resume(run);
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::wake, Qt::QueuedConnection);
}

void WorkspaceLink::stop(const RunId& run) {
  if (const auto service = service_.lock(); service && !closing_) service->stop(run);
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::wake, Qt::QueuedConnection);
}

void WorkspaceLink::stop_job(std::int64_t job) {
  if (const auto service = service_.lock(); service && !closing_) service->stop_job(job);
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::wake, Qt::QueuedConnection);
}

void WorkspaceLink::trace(const RunId& run, std::function<void(const QString& error)> asked) {
  const auto answer = std::make_shared<QString>();
  with_store(
      [run, answer](StoreReader*, JobService* service) {
        if (!service) {
          *answer = tr("This workspace is open for reading only.");
          return;
        }
        const Result<bool> running = service->ask(run, JobService::Request::trace);
        if (!running)
          *answer = QString::fromStdString(running.error().message());
        else if (!*running)
          *answer = tr("It is not running.");
      },
      [answer, asked = std::move(asked)] { asked(*answer); });
}

void WorkspaceLink::in_background(std::function<void()> work, std::function<void()> done) {
  if (!thread_.isRunning()) return;  // the reader went with its thread
  QPointer<WorkspaceLink> self(this);
  QMetaObject::invokeMethod(
      reader_,
      [self, work = std::move(work), done = std::move(done)] {
        work();
        QMetaObject::invokeMethod(qApp, [self, done] {
          if (self) done();
        });
      },
      Qt::QueuedConnection);
}

void WorkspaceLink::with_store(std::function<void(StoreReader*, JobService*)> work, std::function<void()> done) {
  in_background([reader = reader_, work = std::move(work)] { work(reader->store(), reader->job_service()); },
                std::move(done));
}

void WorkspaceLink::close() {
  if (closing_) return;
  closing_ = true;
  if (const auto service = service_.lock()) service->stop_all();
  reader_->hurry();
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::drain, Qt::QueuedConnection);
}

void WorkspaceLink::leave() {
  if (closing_) return;
  closing_ = true;
  reader_->hurry();
  QMetaObject::invokeMethod(reader_, &WorkspaceReader::leave, Qt::QueuedConnection);
}

}  // namespace stacklab::ui

#include <moc_workspace_link.cpp>
