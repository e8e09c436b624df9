#include "ui/shell/first_start.h"

#include <QScrollArea>
#include <QVBoxLayout>

#include "ui/frame/run_head.h"
#include "ui/pages/monitor/journey.h"
#include "ui/pages/monitor/monitor_charts.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

QFrame* make_box(QWidget* parent) {
  auto* box = new QFrame(parent);
  box->setObjectName(QStringLiteral("box"));
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(1, 1, 1, 1);
  column->setSpacing(0);
  return box;
}

TextLabel* make_label(const QString& words, TextRole role, Token color, bool bold, QWidget* parent) {
  auto* label = new TextLabel(role, color, bold, parent);
  label->set_full_text(words);
  return label;
}

}  // namespace

FirstStart::FirstStart(WorkspaceLink* link, CurveChart* loss, QWidget* parent) : QWidget(parent), loss_(loss) {
  setObjectName(QStringLiteral("firstStart"));
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  whole->addWidget(scroll);
  auto* body = new QWidget(scroll);
  body->setObjectName(QStringLiteral("inspector"));
  body->setAttribute(Qt::WA_StyledBackground);
  scroll->setWidget(body);
  auto* columns = new QHBoxLayout(body);
  columns->setContentsMargins(24, 20, 24, 20);
  columns->setSpacing(24);

  auto* left = new QVBoxLayout;
  left->setSpacing(10);
  title_ = make_label(tr("Your first model is being prepared"), TextRole::body, Token::text, true, body);
  sentence_ = make_label({}, TextRole::body, Token::text2, false, body);
  sentence_->setWordWrap(true);
  left->addWidget(title_);
  left->addWidget(sentence_);
  auto* run = make_box(body);
  auto* head = new QHBoxLayout;
  head->setContentsMargins(12, 8, 12, 4);
  head->setSpacing(8);
  head_ = new RunHead(run);
  pause_ = make_button(tr("Pause"), QStringLiteral("media-playback-pause"), run);
  stop_ = make_button(tr("Stop"), QStringLiteral("media-playback-stop"), run);
  monitor_ = make_button(tr("Open in Monitor"), QStringLiteral("monitor"), run);
  head->addWidget(head_, 1);
  for (QPushButton* button : {pause_, stop_, monitor_}) head->addWidget(button, 0, Qt::AlignTop);
  strip_ = new JourneyStrip(run);
  strip_->set_closable(false);
  strip_->set_plain();
  auto* run_column = static_cast<QVBoxLayout*>(run->layout());
  run_column->addLayout(head);
  run_column->addWidget(strip_);
  left->addWidget(run);
  panel_ = new ChartPanel({QStringLiteral("first-loss"), tr("Loss"), tr("nats per token")}, &view_, body);
  panel_->setMinimumHeight(metrics().scaled(260));
  left->addWidget(panel_, 1);
  left->addWidget(make_label(tr("Every run appears on this page as one row of a table. This one becomes the first when "
                                "you close the introduction."),
                             TextRole::secondary, Token::text2, false, body));
  columns->addLayout(left, 58);

  auto* right = new QVBoxLayout;
  right->setSpacing(10);
  right->addWidget(make_label(tr("Start something of your own"), TextRole::body, Token::text, true, body));
  auto* drop_note = make_label(tr("Or drop a text file, a config or a checkpoint anywhere on this window."),
                               TextRole::body, Token::text2, false, body);
  drop_note->setWordWrap(true);
  right->addWidget(drop_note);
  auto* links = make_box(body);
  links_ = static_cast<QVBoxLayout*>(links->layout());
  right->addWidget(links);
  right->addSpacing(6);
  auto* computer = make_box(body);
  auto* computer_title = make_label(tr("This computer"), TextRole::body, Token::text, true, computer);
  computer_title->setContentsMargins(12, 8, 12, 4);
  computer_ = new FactGrid(computer);
  auto* computer_column = static_cast<QVBoxLayout*>(computer->layout());
  computer_column->addWidget(computer_title);
  computer_column->addWidget(computer_);
  right->addWidget(computer);
  right->addStretch();
  columns->addLayout(right, 42);

  connect(link, &WorkspaceLink::chunk_ready, this, [this] {
    if (isVisible()) panel_->chart()->mark_dirty();
  });
  panel_->chart()->set_empty_text(tr("The first loss comes when the text is ready and the first step is done."));
}

QPushButton* FirstStart::add_link(const QString& icon_name, const QString& title, const QString& help) {
  if (links_->count() > 0) links_->addWidget(make_line(Qt::Horizontal, this));
  auto* button = new QPushButton(this);
  button->setProperty("commandLink", true);
  button->setAccessibleName(title);
  button->setAccessibleDescription(help);
  auto* row = new QHBoxLayout(button);
  row->setContentsMargins(12, 8, 12, 8);
  row->setSpacing(12);
  auto* picture = new QLabel(button);
  auto* words = new QVBoxLayout;
  words->setSpacing(1);
  auto* first = make_label(title, TextRole::body, Token::accent, false, button);
  auto* second = make_label(help, TextRole::secondary, Token::text2, false, button);
  for (TextLabel* line : {first, second}) {
    line->set_elided(true);
    words->addWidget(line);
  }
  auto* arrow = make_label(QStringLiteral("›"), TextRole::title, Token::text3, false, button);
  row->addWidget(picture);
  row->addLayout(words, 1);
  row->addWidget(arrow);
  for (QWidget* inside : std::initializer_list<QWidget*>{picture, first, second, arrow})
    inside->setAttribute(Qt::WA_TransparentForMouseEvents);
  const auto restyle = [button, picture, icon_name] {
    picture->setPixmap(
        icon(icon_name, Token::accent).pixmap(QSize(1, 1) * metrics().scaled(16), picture->devicePixelRatioF()));
    const int lines =
        QFontMetrics(look().font(TextRole::body)).height() + QFontMetrics(look().font(TextRole::secondary)).height();
    // The sheet's own minimum would take the place of one that is set.
    button->setStyleSheet(QStringLiteral("QPushButton{min-height:%1px;max-height:%1px;}").arg(lines + 20));
  };
  restyle();
  connect(&look(), &Look::changed, button, restyle);
  links_->addWidget(button);
  return button;
}

void FirstStart::show_journey(const Journey& journey, const QString& title, const QString& sentence, double now,
                              double left_seconds, double tokens_per_second) {
  title_->set_full_text(title);
  sentence_->set_full_text(sentence);
  strip_->show_journey(journey, now, left_seconds, tokens_per_second);
}

void FirstStart::show_run(const RunInfo& run, double now, bool can_steer) {
  head_->show_run(run, now);
  const bool running = run.summary.state == RunState::running;
  for (QPushButton* button : {pause_, stop_}) {
    button->setEnabled(running && can_steer);
    button->setToolTip(running ? QString() : tr("It is not running."));
  }
  CurveChart* chart = panel_->chart();
  chart->set_curves(loss_->curves());
  chart->set_expected_end(static_cast<double>(run.summary.total_steps));
  if (const auto blind = blind_guess(run)) chart->set_reference_lines({*blind});
}

void FirstStart::show_system(const SystemInfo& info) {
  computer_->set(tr("Processor"), tr("%1, %2 threads, %3").arg(text(info.cpu)).arg(info.threads).arg(text(info.isa)));
  computer_->set(tr("GPU"), info.gpus.empty() ? text(info.gpu_note) : text(info.gpus.front()));
  computer_->set(tr("Memory"),
                 tr("%1 free of %2").arg(format_bytes(info.memory_free), format_bytes(info.memory_total)));
  computer_->set(tr("Disk"), tr("%1 free").arg(format_bytes(info.disk_free)));
}

}  // namespace stacklab::ui

#include <moc_first_start.cpp>
