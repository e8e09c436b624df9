#include "ui/pages/monitor/run_order.h"

#include <QPointer>

namespace stacklab::ui {
namespace {
constexpr int typing_ms = 150, again_ms = 1000;
}

RunOrder::RunOrder(RunListModel* runs, QObject* parent) : QSortFilterProxyModel(parent), runs_(runs) {
  setSourceModel(runs);
  setDynamicSortFilter(true);
  sort(0);
  connect(runs, &RunListModel::marks_changed, this, &RunOrder::invalidate);
}

void RunOrder::set_matching(std::optional<std::set<std::int64_t>> numbers) {
  if (numbers == matching_) return;
  matching_ = std::move(numbers);
  changing_ = true;
  invalidateFilter();
  changing_ = false;
}

QModelIndex RunOrder::index_of(const RunId& run) const {
  const int row = runs_->row_of(run);
  return row < 0 ? QModelIndex() : mapFromSource(runs_->index(row));
}

bool RunOrder::filterAcceptsRow(int row, const QModelIndex&) const {
  const std::int64_t number = runs_->run_at(row).summary.number;
  return !matching_ || matching_->count(number) > 0 || runs_->is_pinned(number);
}

bool RunOrder::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const bool first = runs_->is_pinned(runs_->run_at(a.row()).summary.number),
             second = runs_->is_pinned(runs_->run_at(b.row()).summary.number);
  return first != second ? first : a.row() < b.row();
}

RunFilterBox::RunFilterBox(WorkspaceLink* link, RunOrder* order, QWidget* parent)
    : QLineEdit(parent), link_(link), order_(order) {
  setClearButtonEnabled(true);
  setPlaceholderText(tr("Filter runs"));
  setAccessibleName(tr("Filter the list of runs"));
  setToolTip(tr("Words of names and notes, or as in the table of runs: loss < 3 and tag:ablation"));
  timer_.setSingleShot(true);
  connect(&timer_, &QTimer::timeout, this, &RunFilterBox::ask);
  connect(this, &QLineEdit::textChanged, this, [this] { timer_.start(typing_ms); });
}

void RunFilterBox::runs_changed() {
  if (!text().trimmed().isEmpty() && !busy_ && !timer_.isActive()) timer_.start(again_ms);
}

void RunFilterBox::ask() {
  const std::uint64_t generation = ++generation_;
  const std::string wanted = text().trimmed().toStdString();
  auto filter = parse_run_filter(wanted);
  problem_ = filter ? QString() : QString::fromStdString(filter.error().what);
  busy_ = filter && !wanted.empty();
  if (wanted.empty()) order_->set_matching(std::nullopt);
  if (!busy_) return emit answered();
  RunQuery query;
  query.filter = *std::move(filter);
  const auto found = std::make_shared<Result<std::vector<RunPlace>>>();
  link_->with_store(
      [query, found](StoreReader* reader, JobService*) {
        if (reader) *found = reader->order(query, {});
      },
      [self = QPointer<RunFilterBox>(this), found, generation] {
        if (!self || generation != self->generation_) return;
        self->busy_ = false;
        if (*found) {
          std::set<std::int64_t> numbers;
          for (const RunPlace& place : **found) numbers.insert(place.number);
          self->order_->set_matching(std::move(numbers));
        } else {
          self->problem_ = QString::fromStdString(found->error().what);
        }
        emit self->answered();
      });
}

}  // namespace stacklab::ui

#include <moc_run_order.cpp>
