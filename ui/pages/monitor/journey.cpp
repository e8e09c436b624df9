#include "ui/pages/monitor/journey.h"

#include <QCoreApplication>
#include <QGridLayout>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

class GlyphLabel : public QWidget {
 public:
  using QWidget::QWidget;
  void set(Glyph glyph, Token color) {
    glyph_ = glyph;
    color_ = color;
    update();
  }
  QSize sizeHint() const override { return {metrics().scaled(11) + 4, metrics().scaled(11) + 4}; }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const double side = metrics().scaled(11);
    paint_glyph(painter, glyph_, QRectF((width() - side) / 2, (height() - side) / 2, side, side), theme()[color_]);
  }

 private:
  Glyph glyph_ = Glyph::circle;
  Token color_ = Token::text3;
};

Journey::Journey() { clear(); }

void Journey::clear() {
  const auto tr = [](const char* text) { return QCoreApplication::translate("journey", text); };
  steps_ = {{QStringLiteral("text"), phase_title("text"), tr("fetch what the model will read")},
            {QStringLiteral("starting"), phase_title("starting"),
             tr("turn it into tokens, hold a part back for the test, lay out the memory")},
            {QStringLiteral("training"), phase_title("training"),
             tr("guess the next token, compare, correct, again and again")},
            {QStringLiteral("evaluation"), phase_title("evaluation"), tr("loss on text that was held back")}};
}

void Journey::update(const Progress& progress, const RunInfo* run, double now) {
  const QString phase =
      progress.phase == "shards" ? QStringLiteral("starting") : QString::fromStdString(progress.phase);
  const auto current = std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.phase == phase; });
  const bool trained = run && run->summary.step > 0;
  const bool finished = run && run->summary.state == RunState::finished;
  const bool ended_badly = run && !is_active(run->summary.state) && !finished && run->summary.state != RunState::queued;
  for (auto step = steps_.begin(); step != steps_.end(); ++step) {
    const bool before = current != steps_.end() && step < current;
    const bool is_training = step->phase == QLatin1String("training");
    // Evaluations come between training steps; the training goes on behind them.
    const bool training_goes_on =
        is_training && before && !finished && run && run->summary.step < run->summary.total_steps;
    if (finished || (before && !training_goes_on) ||
        (trained && !is_training && step->phase != QLatin1String("evaluation"))) {
      if (step->status == Status::active) step->ended = now;
      step->status = Status::done;
    } else if (step == current || training_goes_on) {
      if (step->began == 0) step->began = now;
      step->status = ended_badly ? Status::failed : Status::active;
    } else {
      step->status = Status::waiting;
    }
    if (step == current) {
      if (!progress.detail.empty()) step->detail = QString::fromStdString(progress.detail);
      step->done = progress.done;
      step->total = progress.total;
    }
    if (is_training && run) {
      step->done = run->summary.step;
      step->total = run->summary.total_steps;
    }
  }
}

void Journey::set_result(const QString& phase, const QString& result) {
  for (Step& step : steps_)
    if (step.phase == phase) step.result = result;
}

bool Journey::is_preparing() const {
  return steps_[2].status == Status::waiting && steps_[3].status == Status::waiting;
}

JourneyStrip::JourneyStrip(QWidget* parent) : QFrame(parent) {
  setObjectName(QStringLiteral("strip"));
  setAccessibleName(tr("What this run goes through"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 8, 8, 8);
  column->setSpacing(4);
  auto* top = new QHBoxLayout;
  auto* texts = new QVBoxLayout;
  texts->setSpacing(2);
  title_ = new TextLabel(TextRole::body, Token::text, true, this);
  sentence_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
  sentence_->setWordWrap(true);
  texts->addWidget(title_);
  texts->addWidget(sentence_);
  close_ = make_button(tr("Close introduction"), {}, this);
  connect(close_, &QPushButton::clicked, this, &JourneyStrip::dismissed);
  top->addLayout(texts, 1);
  top->addWidget(close_, 0, Qt::AlignTop);
  column->addLayout(top);
  table_ = new QWidget(this);
  grid_ = new QGridLayout(table_);
  grid_->setContentsMargins(0, 2, 4, 0);
  grid_->setHorizontalSpacing(10);
  grid_->setVerticalSpacing(0);
  grid_->setColumnStretch(2, 1);
  column->addWidget(table_);
}

void JourneyStrip::set_texts(const QString& title, const QString& sentence) {
  title_->set_full_text(title);
  sentence_->set_full_text(sentence);
}

void JourneyStrip::set_closable(bool closable) { close_->setVisible(closable); }

void JourneyStrip::set_plain() {
  setObjectName(QStringLiteral("plainStrip"));
  for (QWidget* part : std::initializer_list<QWidget*>{title_, sentence_, close_}) part->hide();
}

void JourneyStrip::set_folded(bool folded) { table_->setVisible(!folded); }

void JourneyStrip::show_journey(const Journey& journey, double now, double left_seconds, double tokens_per_second) {
  const auto& steps = journey.steps();
  while (rows_.size() < steps.size()) {
    const int line = static_cast<int>(rows_.size());
    Row row;
    row.glyph = new GlyphLabel(table_);
    row.title = new TextLabel(TextRole::body, Token::text, false, table_);
    row.bar = new ThinProgress(table_);
    row.detail = new TextLabel(TextRole::secondary, Token::text2, false, table_);
    row.detail->set_elided(true);
    row.aside = new TextLabel(TextRole::secondary, Token::text2, false, table_);
    row.aside->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    grid_->addWidget(row.glyph, line, 0);
    grid_->addWidget(row.title, line, 1);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(10);
    middle->addWidget(row.bar);
    middle->addWidget(row.detail, 1);
    grid_->addLayout(middle, line, 2);
    grid_->addWidget(row.aside, line, 3);
    grid_->setRowMinimumHeight(line, metrics().small_control());
    row.bar->setFixedWidth(metrics().scaled(120));
    row.bar->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    rows_.push_back(row);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Journey::Step& step = steps[i];
    Row& row = rows_[i];
    grid_->setRowMinimumHeight(static_cast<int>(i), metrics().small_control());
    const bool waiting = step.status == Journey::Status::waiting;
    const bool active = step.status == Journey::Status::active;
    const bool training = step.phase == QLatin1String("training");
    row.title->set_full_text(step.title);
    row.title->set_color(waiting ? Token::text3 : Token::text);
    row.detail->set_color(waiting ? Token::text3 : Token::text2);
    switch (step.status) {
      case Journey::Status::waiting:
        row.glyph->set(Glyph::circle, Token::text3);
        break;
      case Journey::Status::active:
        row.glyph->set(Glyph::play, Token::info);
        break;
      case Journey::Status::done:
        row.glyph->set(Glyph::check, Token::good);
        break;
      case Journey::Status::failed:
        row.glyph->set(Glyph::cross, Token::bad);
        break;
    }
    const bool bar = active && step.total > 0;
    row.bar->setVisible(bar);
    if (bar) row.bar->set(static_cast<double>(step.done) / static_cast<double>(step.total), Token::info);
    QString detail = step.status == Journey::Status::done && !step.result.isEmpty() ? step.result : step.detail, aside;
    if (training && step.done > 0) {
      detail = tr("step %1 of %2").arg(format_count(step.done), format_count(step.total));
      if (tokens_per_second > 0) detail += tr(", %1 tok/s").arg(format_compact(tokens_per_second));
    }
    if (training && active && left_seconds >= 0)
      aside = tr("%1 left").arg(format_duration(left_seconds));
    else if (active && step.began > 0 && now - step.began >= 1)
      aside = format_duration(std::floor(now - step.began));
    else if (step.status == Journey::Status::done && step.began > 0 && step.ended > step.began)
      aside = format_duration(step.ended - step.began);
    row.detail->set_full_text(detail);
    row.aside->set_full_text(aside);
  }
}

}  // namespace stacklab::ui

#include <moc_journey.cpp>
