#include "ui/models/run_source.h"

#include <QDateTime>
#include <algorithm>
#include <cmath>
#include <limits>

namespace stacklab::ui {

void take_live_figures(StoreReader& reader, RunSummary& run) {
  if (!is_active(run.state)) return;
  constexpr std::int64_t recent = 20;
  double sum = 0;
  int count = 0;
  if (const auto speeds = reader.series(run.id, std::string(metric::tokens_per_second), run.step - recent, 2 * recent))
    for (const SeriesPoint& point : *speeds)
      if (std::isfinite(point.value) && point.value > 0) {
        sum += point.value;
        ++count;
      }
  if (count > 0) run.tokens_per_second = sum / count;
  const auto memory =
      reader.decimated(run.id, std::string(metric::process_bytes), 0, std::numeric_limits<std::int64_t>::max() / 2, 1);
  if (memory && !memory->empty() && std::isfinite(memory->front().max.value))
    run.peak_bytes = std::max<std::int64_t>(run.peak_bytes, std::llround(memory->front().max.value));
}

RunSource::RunSource(WorkspaceLink* link, QObject* parent) : QObject(parent), link_(link) {
  qRegisterMetaType<RunListAnswerPtr>("stacklab::ui::RunListAnswerPtr");
  pause_.setSingleShot(true);
  connect(&pause_, &QTimer::timeout, this, [this] {
    if (again_) send();
  });
  // The link looks at the store at its own pace; what it has seen, the table sees.
  connect(link, &WorkspaceLink::snapshot_ready, this, [this] { poll(); });
}

void RunSource::set_query(const RunQuery& query, const std::string& group) {
  query_ = query;
  group_ = group;
  ++generation_;
  poll(true);
}

void RunSource::want(const std::vector<std::int64_t>& numbers) {
  if (numbers.empty()) return;
  wanted_.insert(numbers.begin(), numbers.end());
  poll(true);
}

void RunSource::set_watched(std::vector<std::int64_t> numbers) { watched_ = std::move(numbers); }

void RunSource::poll(bool at_once) {
  again_ = true;
  if (busy_) return;
  if (at_once) pause_.stop();
  if (!pause_.isActive()) send();
}

void RunSource::send() {
  if (busy_) return;
  busy_ = true;
  again_ = false;
  struct Work {
    std::shared_ptr<RunListAnswer> answer = std::make_shared<RunListAnswer>();
    std::int64_t counter = -1;
    qint64 took = 0;
  };
  auto work = std::make_shared<Work>();
  work->answer->generation = generation_;
  std::vector<std::int64_t> numbers(wanted_.begin(), wanted_.end());
  wanted_.clear();
  const bool fresh = generation_ != answered_generation_ || counter_ < 0;
  link_->with_store(
      [work, fresh, numbers = std::move(numbers), watched = watched_, counter = counter_, query = query_,
       group = group_](StoreReader* reader, JobService*) mutable {
        RunListAnswer& answer = *work->answer;
        answer.unix_time = static_cast<double>(QDateTime::currentMSecsSinceEpoch()) / 1000;
        if (reader == nullptr) return;
        QElapsedTimer clock;
        clock.start();
        const auto fail = [&](const Error& error) { answer.error = QString::fromStdString(error.message()); };
        const auto now = reader->change_counter();
        if (!now) return fail(now.error());
        work->counter = *now;
        const bool changed = *now != counter;
        if (fresh || changed) {
          auto places = reader->order(query, group);
          if (!places) return fail(places.error());
          answer.places = std::make_shared<const std::vector<RunPlace>>(std::move(*places));
          if (auto words = reader->filter_words())
            answer.words = std::make_shared<const FilterWords>(std::move(*words));
        }
        // The queue is not counted among what changes runs, and short.
        if (auto queue = reader->queue())
          answer.queue = std::make_shared<const std::vector<QueueEntry>>(std::move(*queue));
        // Whether a run lives is a matter of the time: what is before the eyes is read anew each time.
        numbers.insert(numbers.end(), watched.begin(), watched.end());
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        auto rows = reader->numbered(numbers);
        if (!rows) return fail(rows.error());
        for (RunSummary& row : *rows) {
          take_live_figures(*reader, row);
          answer.rows.push_back(make_run_row(std::move(row)));
        }
        const auto counts = reader->counts_by_state();
        if (!counts) return fail(counts.error());
        answer.counts = *counts;
        for (const auto& [state, count] : *counts) answer.all += count;
        work->took = clock.elapsed();
      },
      [this, work] { take(work->answer, work->counter, work->took); });
}

void RunSource::take(const RunListAnswerPtr& answer, std::int64_t counter, qint64 took_ms) {
  busy_ = false;
  if (counter < 0 && answer->error.isEmpty()) return;  // nothing is open yet
  const bool late = answer->generation != generation_;
  if (!late && answer->error.isEmpty()) {
    answered_generation_ = generation_;
    counter_ = counter;
  }
  if (late) {
    // Its rows are true all the same; its order is of another question.
    auto rows = std::make_shared<RunListAnswer>(*answer);
    rows->places.reset();
    emit answered(rows);
    return send();
  }
  emit answered(answer);
  // Reading a store of very many runs never takes more than a fifth of a processor.
  pause_.start(static_cast<int>(std::clamp<qint64>(4 * took_ms, 20, 2000)));
  if (!wanted_.empty()) poll(true);
}

}  // namespace stacklab::ui

#include <moc_run_source.cpp>
