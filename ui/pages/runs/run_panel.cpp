#include "ui/pages/runs/run_panel.h"

#include <QEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollArea>
#include <QTableWidget>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/frame/run_head.h"
#include "ui/models/state_look.h"
#include "ui/pages/runs/run_actions.h"
#include "ui/theme/fact_grid.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int pad = 12;

QString text(const std::string& s) { return QString::fromStdString(s); }

struct Difference {
  QString key;
  QStringList values;
};

// The keys in which the configs of these runs differ; what changes nothing of a run goes last.
std::vector<Difference> differences(const std::vector<RunRowPtr>& rows) {
  std::vector<std::string> jsons;
  for (const RunRowPtr& row : rows) jsons.push_back(row->summary.config_json);
  std::vector<Difference> all;
  for (const ConfigDifference& found : config_differences(jsons)) {
    Difference difference{text(found.key), {}};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const QString value = rows[i]->config.value(difference.key);
      difference.values << (value.isEmpty() ? missing() : value);
    }
    all.push_back(std::move(difference));
  }
  std::stable_sort(all.begin(), all.end(), [](const Difference& a, const Difference& b) {
    const auto operational = [](const Difference& d) {
      return d.key.startsWith(QLatin1String("run.")) || d.key == QLatin1String("name");
    };
    return !operational(a) && operational(b);
  });
  return all;
}

}  // namespace

RunPanel::RunPanel(const RunActions& actions, QWidget* parent) : QTabWidget(parent) {
  setDocumentMode(true);
  tabBar()->setDrawBase(false);
  setAccessibleName(tr("Details of the run"));
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  body_ = new QWidget(scroll);
  body_->setObjectName(QStringLiteral("inspector"));
  body_->setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(body_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);

  auto* head = new QVBoxLayout;
  head->setContentsMargins(pad, 10, pad, 10);
  head->setSpacing(7);
  head_ = new RunHead(body_);
  auto* buttons = new QHBoxLayout;
  buttons->setSpacing(6);
  for (QAction* action : {actions.pause, actions.resume, actions.stop, actions.checkpoint}) {
    auto* button = make_button(action == actions.checkpoint ? tr("Checkpoint") : action->text(), {}, body_);
    // Pause and resume stand in one place.
    const bool pause = action == actions.pause, resume = action == actions.resume;
    const auto follow = [button, action, pause, resume, other = actions.resume] {
      button->setEnabled(action->isEnabled());
      button->setToolTip(action->toolTip());
      button->setAccessibleDescription(action->statusTip());
      if (pause || resume) button->setVisible(other->isEnabled() == resume);
    };
    if (pause) connect(actions.resume, &QAction::changed, button, follow);
    connect(action, &QAction::changed, button, follow);
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    follow();
    buttons->addWidget(button);
  }
  buttons->addStretch();
  head->addWidget(head_);
  head->addLayout(buttons);
  column->addLayout(head);
  column->addWidget(make_line(Qt::Horizontal, body_));

  const auto section = [&](const QString& title, const QString& note = {}) {
    auto* row = new QHBoxLayout;
    row->setContentsMargins(pad, 9, pad, 3);
    row->setSpacing(8);
    auto* label = new TextLabel(TextRole::secondary, Token::text, true, body_);
    label->set_full_text(title);
    row->addWidget(label);
    if (!note.isEmpty()) {
      auto* more = new TextLabel(TextRole::secondary, Token::text3, false, body_);
      more->set_full_text(note);
      row->addWidget(more);
    }
    row->addStretch();
    column->addLayout(row);
    return label;
  };
  section(tr("Loss"), tr("by step"));
  auto* mini_row = new QHBoxLayout;
  mini_row->setContentsMargins(pad, 0, pad, 6);
  mini_ = new MiniLoss(body_);
  mini_row->addWidget(mini_);
  column->addLayout(mini_row);
  column->addWidget(make_line(Qt::Horizontal, body_));
  facts_ = new FactGrid(body_);
  column->addWidget(facts_);
  column->addWidget(make_line(Qt::Horizontal, body_));
  against_title_ = section(tr("Against the baseline"));
  against_box_ = new QWidget(body_);
  against_ = new QGridLayout(against_box_);
  against_->setContentsMargins(pad, 2, pad, 8);
  against_->setHorizontalSpacing(10);
  against_->setVerticalSpacing(3);
  against_->setColumnStretch(0, 2);
  against_->setColumnStretch(1, 1);
  against_->setColumnStretch(3, 1);
  column->addWidget(against_box_);
  against_line_ = make_line(Qt::Horizontal, body_);
  column->addWidget(against_line_);
  section(tr("Notes"));
  auto* note_row = new QVBoxLayout;
  note_row->setContentsMargins(pad, 2, pad, 10);
  note_row->setSpacing(8);
  note_ = new QPlainTextEdit(body_);
  note_->setAccessibleName(tr("Notes on the run"));
  note_->setPlaceholderText(tr("What you found out about this run"));
  note_->setTabChangesFocus(true);
  note_->installEventFilter(this);
  note_->setMinimumHeight(metrics().scaled(72));
  note_row->addWidget(note_);
  auto* tag_row = new QHBoxLayout;
  tags_ = new TextLabel(TextRole::secondary, Token::text2, false, body_);
  tags_->set_elided(true);
  auto* add = make_button(tr("Tags"), {}, body_);
  add->setAccessibleName(tr("Edit tags"));
  connect(add, &QPushButton::clicked, this, &RunPanel::tags_wanted);
  tag_row->addWidget(tags_, 1);
  tag_row->addWidget(add);
  note_row->addLayout(tag_row);
  column->addLayout(note_row);
  column->addStretch();
  scroll->setWidget(body_);
  addTab(scroll, tr("Details"));

  auto* diff = new QWidget(this);
  diff->setObjectName(QStringLiteral("inspector"));
  diff->setAttribute(Qt::WA_StyledBackground);
  auto* diff_column = new QVBoxLayout(diff);
  diff_column->setContentsMargins(0, 0, 0, 0);
  auto* diff_head = new QHBoxLayout;
  diff_head->setContentsMargins(pad, 10, pad, 4);
  difference_title_ = new TextLabel(TextRole::secondary, Token::text2, false, diff);
  difference_title_->setWordWrap(true);
  diff_head->addWidget(difference_title_);
  diff_column->addLayout(diff_head);
  difference_ = new QTableWidget(diff);
  difference_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  difference_->setAccessibleName(tr("Differences of the configs"));
  difference_->verticalHeader()->hide();
  difference_->setFrameShape(QFrame::NoFrame);
  difference_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  diff_column->addWidget(difference_, 1);
  addTab(diff, tr("Diff"));

  events_ = new QTreeWidget(this);
  events_->setAccessibleName(tr("What happened in the run"));
  events_->setHeaderLabels({tr("Step"), tr("Event"), tr("When")});
  events_->setRootIsDecorated(false);
  events_->setUniformRowHeights(true);
  events_->setFrameShape(QFrame::NoFrame);
  events_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  events_->header()->setSectionResizeMode(1, QHeaderView::Stretch);
  events_->header()->setStretchLastSection(false);
  connect(events_, &QTreeWidget::itemActivated, this, [this](const QTreeWidgetItem* item) {
    if (const qint64 step = item->data(0, Qt::UserRole).toLongLong(); step > 0) emit event_chosen(step);
  });
  addTab(events_, tr("Events"));
  show_run(nullptr, nullptr, 0, false);
  show_difference({}, -1);
}

void RunPanel::show_events(const std::vector<RunEventRow>& events) {
  const QSignalBlocker quiet(events_);
  events_->clear();
  QList<QTreeWidgetItem*> items;
  for (auto row = events.rbegin(); row != events.rend(); ++row) {
    const EventLook look = look_of(row->event.kind);
    auto* item = new QTreeWidgetItem({row->event.step > 0 ? format_count(row->event.step) : missing(),
                                      text(row->event.text), format_clock(row->unix_time)});
    const int side = metrics().scaled(11);
    QPixmap picture(QSize(side, side) * devicePixelRatioF());
    picture.setDevicePixelRatio(devicePixelRatioF());
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    paint_glyph(painter, look.glyph, QRectF(0, 0, side, side), theme()[look.color]);
    painter.end();
    item->setIcon(1, QIcon(picture));
    item->setToolTip(1, text(row->event.text));
    item->setData(0, Qt::UserRole, static_cast<qlonglong>(row->event.step));
    item->setTextAlignment(0, Qt::AlignRight | Qt::AlignVCenter);
    items << item;
  }
  events_->addTopLevelItems(items);
  events_->resizeColumnToContents(0);
  events_->resizeColumnToContents(2);
  setTabText(2, events.empty() ? tr("Events") : tr("Events %1").arg(events.size()));
}

QLabel* RunPanel::difference_title() const { return difference_title_; }

void RunPanel::save_note() {
  if (!shown_.empty() && note_->toPlainText() != shown_note_) {
    shown_note_ = note_->toPlainText();
    emit note_edited(shown_note_);
  }
}

bool RunPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == note_ && event->type() == QEvent::FocusOut) save_note();
  return QTabWidget::eventFilter(watched, event);
}

void RunPanel::show_run(const RunRowPtr& row, const RunRowPtr& baseline, double now, bool can_steer) {
  const bool same = row && row->summary.id == shown_;
  if (!same) save_note();
  body_->setEnabled(row != nullptr);
  if (!row) {
    shown_.clear();
    head_->show_nothing();
    facts_->hide();
    mini_->set_curves({});
    show_events({});
    shown_note_.clear();
    note_->clear();
    tags_->set_full_text({});
    against_title_->hide();
    against_box_->hide();
    against_line_->hide();
    return;
  }
  const RunSummary& s = row->summary;
  const RunInfo info{s, {}, -1};
  if (!same) {
    mini_->set_curves({});
    show_events({});
  }
  shown_ = s.id;
  head_->show_run(info, now);
  facts_->show();
  facts_->set(tr("Config"), text(s.id), true);
  facts_->set(tr("Commit"),
              s.commit.empty() ? missing()
                               : tr("%1 %2").arg(text(s.commit).left(10), s.dirty ? tr("with changes") : tr("clean")),
              true);
  facts_->set(tr("Corpus"),
              row->config.value(QStringLiteral("data.corpus")) + QLatin1Char(' ') + text(s.corpus_sha256).left(8),
              true);
  const QString device = row->config.value(QStringLiteral("run.device"));
  facts_->set(tr("Device"), device.isEmpty()
                                ? missing()
                                : tr("%1, %2").arg(device, row->config.value(QStringLiteral("train.precision"))));
  facts_->set(tr("Parameters"), s.parameters > 0 ? format_count(s.parameters) : missing());
  facts_->set(tr("Peak memory"), s.peak_bytes > 0
                                     ? tr("%1, planned %2").arg(format_bytes(s.peak_bytes), format_bytes(s.plan_bytes))
                                     : missing());
  facts_->set(tr("Speed"),
              s.tokens_per_second > 0 ? tr("%1 tok/s").arg(format_compact(s.tokens_per_second)) : missing());
  facts_->set(tr("Loss"), s.last_loss ? format_loss(*s.last_loss) : missing());
  facts_->set(tr("Validation"), s.val_loss ? format_loss(*s.val_loss) : missing());
  facts_->set(tr("Forked from"), s.parent.empty()
                                     ? QString()
                                     : tr("%1 at step %2").arg(text(s.parent).left(8), format_count(s.fork_step)));
  facts_->set(tr("Stored in"), text("runs/" + s.folder), true);

  const bool against = baseline && baseline->summary.id != s.id;
  against_title_->setVisible(against);
  against_box_->setVisible(against);
  against_line_->setVisible(against);
  const QString against_key = against ? text(baseline->summary.id + s.id) : QString();
  if (against && against_key != shown_against_) {
    against_title_->set_full_text(tr("Against baseline %1").arg(text(baseline->summary.name)));
    while (QLayoutItem* item = against_->takeAt(0)) {
      delete item->widget();
      delete item;
    }
    int line = 0;
    for (const Difference& d : differences({baseline, row})) {
      const std::tuple<QString, Token, bool> cells[] = {{d.key, Token::text, true},
                                                        {d.values[0], Token::text3, false},
                                                        {QStringLiteral("›"), Token::text3, false},
                                                        {d.values[1], Token::text, false}};
      for (int i = 0; i < 4; ++i) {
        auto* label = new TextLabel(TextRole::secondary, std::get<1>(cells[i]), false, against_box_);
        if (std::get<2>(cells[i])) label->set_mono(true);
        if (i != 2) label->set_elided(true);
        label->set_full_text(std::get<0>(cells[i]));
        against_->addWidget(label, line, i);
      }
      ++line;
    }
  }
  shown_against_ = against_key;

  const QString stored = text(s.note);
  if (!same || (stored != shown_note_ && note_->toPlainText() == shown_note_)) {
    shown_note_ = stored;
    note_->setPlainText(stored);
  }
  note_->setReadOnly(!can_steer);
  QStringList tags;
  for (const std::string& tag : s.tags) tags << text(tag);
  tags_->set_full_text(tags.isEmpty() ? tr("No tags") : tags.join(QStringLiteral("   ")));
}

void RunPanel::show_difference(const std::vector<RunRowPtr>& chosen, std::int64_t baseline) {
  QString key = QString::number(baseline);
  for (const RunRowPtr& row : chosen) key += text(row->summary.id);
  if (key == shown_difference_) return;
  shown_difference_ = key;
  std::vector<RunRowPtr> rows = chosen;
  std::stable_partition(rows.begin(), rows.end(), [&](const RunRowPtr& r) { return r->summary.number == baseline; });
  if (rows.size() > 8) rows.resize(8);
  difference_->clear();
  if (rows.size() < 2) {
    difference_->setRowCount(0);
    difference_->setColumnCount(0);
    difference_title_->set_full_text(
        tr("Choose two runs or more, or one beside a baseline, to see how their configs differ."));
    setTabText(1, tr("Diff"));
    return;
  }
  const std::vector<Difference> found = differences(rows);
  difference_title_->set_full_text(found.empty() ? tr("These configs are alike.")
                                                 : tr("%1 keys differ. What all have in common is left out.")
                                                       .arg(format_count(static_cast<qint64>(found.size()))));
  setTabText(1, tr("Diff %1").arg(found.size()));
  difference_->setRowCount(static_cast<int>(found.size()) + 2);
  difference_->setColumnCount(static_cast<int>(rows.size()) + 1);
  QStringList titles{tr("Key")};
  for (const RunRowPtr& row : rows) titles << text(row->summary.name);
  difference_->setHorizontalHeaderLabels(titles);
  const auto put = [&](int line, int column, const QString& value, bool changed) {
    auto* item = new QTableWidgetItem(value);
    item->setToolTip(value);
    if (column == 0) item->setFont(look().mono_font(TextRole::secondary));
    if (changed) {
      QFont bold = look().font(TextRole::body, true);
      item->setFont(bold);
    }
    difference_->setItem(line, column, item);
  };
  int line = 0;
  for (const Difference& d : found) {
    put(line, 0, d.key, false);
    for (int i = 0; i < d.values.size(); ++i) put(line, i + 1, d.values[i], i > 0 && d.values[i] != d.values[0]);
    ++line;
  }
  // What came of it, with the distance to the first.
  const auto result = [&](const QString& title, auto&& value) {
    put(line, 0, title, false);
    const std::optional<double> first = value(rows[0]->summary);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::optional<double> own = value(rows[i]->summary);
      QString said = own ? format_loss(*own) : missing();
      if (i > 0 && own && first && std::isfinite(*own) && std::isfinite(*first))
        said += QStringLiteral("  (%1%2)")
                    .arg(*own >= *first ? QStringLiteral("+") : QStringLiteral("−"),
                         format_fixed(std::abs(*own - *first), 3));
      put(line, static_cast<int>(i) + 1, said, false);
    }
    ++line;
  };
  result(tr("loss"), [](const RunSummary& s) { return s.last_loss; });
  result(tr("val_loss"), [](const RunSummary& s) { return s.val_loss; });
  for (int i = 0; i < difference_->rowCount(); ++i) difference_->setRowHeight(i, metrics().row());
  difference_->resizeColumnsToContents();
}

}  // namespace stacklab::ui

#include <moc_run_panel.cpp>
