#include "ui/pages/runs/launch_dialog.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QListWidget>
#include <QScrollArea>
#include <QVBoxLayout>
#include <cmath>

#include "engine/base/atomic_file.h"
#include "engine/config/config_io.h"
#include "engine/service/model_facts.h"
#include "ui/models/state_look.h"
#include "ui/pages/runs/launch_command.h"
#include "ui/pages/runs/presets.h"
#include "ui/pages/runs/run_control.h"
#include "ui/theme/fact_grid.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

QString part_title(const std::string& part) {
  static const std::map<std::string, QString> titles = {
      {"parameter", LaunchDialog::tr("Parameters")}, {"gradient", LaunchDialog::tr("Gradients")},
      {"optimiser", LaunchDialog::tr("Optimiser")},  {"activation", LaunchDialog::tr("Activations")},
      {"workspace", LaunchDialog::tr("Workspace")},  {"cache", LaunchDialog::tr("Caches")},
      {"input", LaunchDialog::tr("Input")},          {"output", LaunchDialog::tr("Output")},
      {"scalar", LaunchDialog::tr("Scalars")},       {"gaps", LaunchDialog::tr("Between buffers")}};
  const auto at = titles.find(part);
  return at == titles.end() ? text(part) : at->second;
}

QString hours(double seconds) {
  if (seconds <= 0) return missing();
  return format_duration(seconds);
}

}  // namespace

QColor MemoryBar::color(std::size_t part) { return theme().run_color(static_cast<std::int64_t>(part)); }

void MemoryBar::set(const std::vector<std::pair<QString, std::int64_t>>& parts, std::int64_t free) {
  parts_ = parts;
  free_ = free;
  QString said;
  for (const auto& [name, bytes] : parts) said += name + QLatin1Char(' ') + format_bytes(bytes) + QStringLiteral(", ");
  setAccessibleName(tr("Memory"));
  setAccessibleDescription(tr("%1free %2").arg(said, format_bytes(free)));
  update();
}

void MemoryBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Theme& t = theme();
  const QRectF box = QRectF(rect()).adjusted(.5, .5, -.5, -.5);
  std::int64_t sum = 0;
  for (const auto& part : parts_) sum += part.second;
  const double whole = static_cast<double>(std::max<std::int64_t>({free_, sum, 1}));
  qreal x = box.left();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const qreal width = box.width() * static_cast<double>(parts_[i].second) / whole;
    painter.fillRect(QRectF(x, box.top(), width, box.height()), color(i));
    x += width;
  }
  painter.setPen(t[Token::strong]);
  painter.drawRect(box);
  if (sum > free_ && free_ > 0) {
    const qreal at = box.left() + box.width() * static_cast<double>(free_) / whole;
    painter.setPen(QPen(t[Token::bad], 2));
    painter.drawLine(QPointF(at, box.top() - 1), QPointF(at, box.bottom() + 1));
  }
}

LaunchDialog::LaunchDialog(RunControl* control, const LaunchStart& start, LaunchPlanner::Work work, QWidget* parent)
    : QDialog(parent), control_(control), from_(start) {
  setWindowTitle(start.title.isEmpty() ? tr("New run") : tr("New run: %1").arg(start.title));
  setAttribute(Qt::WA_DeleteOnClose);
  planner_ = new LaunchPlanner(std::move(work), this);
  form_ = new LaunchForm(this);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* middle = new QHBoxLayout;
  middle->setSpacing(0);
  sections_ = new QListWidget(this);
  sections_->setAccessibleName(tr("Sections"));
  sections_->setFixedWidth(side_width(190, 18));
  sections_->setFrameShape(QFrame::NoFrame);
  sections_->setStyleSheet(
      QStringLiteral(
          "QListWidget{background:transparent;} QListWidget::item{padding:0 8px;height:%1px;border-radius:4px;}"
          "QListWidget::item:selected{background:%2;color:%3;} QListWidget::item:hover:!selected{background:%4;}")
          .arg(metrics().control())
          .arg(theme()[Token::soft].name(), theme()[Token::text].name(), theme()[Token::hover].name()));
  for (const auto& section : form_->sections()) sections_->addItem(section.title);
  sections_->setCurrentRow(0);
  auto* left = new QVBoxLayout;
  left->setContentsMargins(6, 10, 6, 10);
  if (!start.parent.empty()) {
    auto* label = new TextLabel(TextRole::secondary, Token::text2, false, this);
    label->set_full_text(tr("Goes on after"));
    checkpoint_ = new QComboBox(this);
    checkpoint_->setAccessibleName(tr("Checkpoint to go on from"));
    for (const std::int64_t step : start.checkpoints)
      checkpoint_->addItem(tr("step %1").arg(format_count(step)), static_cast<qlonglong>(step));
    checkpoint_->setCurrentIndex(checkpoint_->count() - 1);
    left->addWidget(label);
    left->addWidget(checkpoint_);
    left->addSpacing(8);
  } else {
    auto* label = new TextLabel(TextRole::secondary, Token::text2, false, this);
    label->set_full_text(tr("Start from"));
    from_box_ = new QComboBox(this);
    from_box_->setAccessibleName(tr("Start from"));
    from_box_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    from_box_->addItem(start.title.isEmpty() ? tr("the defaults") : start.title);
    for (const Preset& preset : presets()) from_box_->addItem(preset.title);
    connect(from_box_, &QComboBox::activated, this, &LaunchDialog::start_from);
    left->addWidget(label);
    left->addWidget(from_box_);
    left->addSpacing(8);
  }
  left->addWidget(sections_, 1);
  auto* legend = new TextLabel(TextRole::small, Token::text3, false, this);
  legend->setWordWrap(true);
  legend->set_full_text(tr("Numbers count the fields that differ from where you began."));
  left->addWidget(legend);
  middle->addLayout(left);
  middle->addWidget(make_line(Qt::Vertical, this));
  middle->addWidget(form_, 1);
  middle->addWidget(make_line(Qt::Vertical, this));
  middle->addWidget(build_facts());
  column->addLayout(middle, 1);
  column->addWidget(make_line(Qt::Horizontal, this));

  auto* foot = new QHBoxLayout;
  foot->setContentsMargins(14, 10, 14, 10);
  foot->setSpacing(8);
  auto* config = new TextLabel(TextRole::secondary, Token::text3, false, this);
  config->set_full_text(tr("Config"));
  hash_ = new TextLabel(TextRole::secondary, Token::text, false, this);
  hash_->set_mono(true);
  known_ = new TextLabel(TextRole::secondary, Token::text3, false, this);
  known_->setWordWrap(true);
  detached_ = new QCheckBox(tr("Run detached"), this);
  detached_->setToolTip(tr("A process of its own trains it, which keeps running when the window closes."));
  detached_->setAccessibleDescription(detached_->toolTip());
  detached_->setVisible(start.parent.empty());
  save_ = make_button(tr("Save config…"), {}, this);
  copy_ = make_button(tr("Copy command"), {}, this);
  copy_->setToolTip(tr("Words for a terminal, here or on another computer, that start the same run"));
  copy_->setAccessibleDescription(copy_->toolTip());
  cancel_ = make_button(tr("Cancel"), {}, this);
  queue_ = make_button(tr("Add to queue"), {}, this);
  start_ = make_button(start.parent.empty() ? tr("Start now") : tr("Fork and start"),
                       QStringLiteral("media-playback-start"), this);
  make_primary(start_);
  start_->setIcon(icon(QStringLiteral("media-playback-start"), Token::on_accent));
  for (QPushButton* button : {save_, copy_, cancel_, queue_, remedy_, anyway_}) button->setAutoDefault(false);
  start_->setDefault(true);
  queue_->setVisible(start.parent.empty());
  foot->addWidget(config);
  foot->addWidget(hash_);
  foot->addStretch(1);
  foot->addWidget(detached_);
  foot->addSpacing(8);
  for (QPushButton* button : {save_, copy_, cancel_, queue_, start_}) foot->addWidget(button);
  auto* said = new QHBoxLayout;
  said->setContentsMargins(14, 8, 14, 0);
  said->addWidget(known_, 1);
  column->addLayout(said);
  column->addLayout(foot);

  connect(sections_, &QListWidget::currentRowChanged, form_, &LaunchForm::setCurrentIndex);
  connect(form_, &LaunchForm::currentChanged, sections_, [this](int row) { sections_->setCurrentRow(row); });
  connect(form_, &LaunchForm::sections_changed, this, &LaunchDialog::show_sections);
  connect(form_, &LaunchForm::edited, this, &LaunchDialog::judge);
  connect(planner_, &LaunchPlanner::planned, this, &LaunchDialog::show_plan);
  connect(cancel_, &QPushButton::clicked, this, &QDialog::reject);
  connect(start_, &QPushButton::clicked, this, [this] { begin(false); });
  connect(queue_, &QPushButton::clicked, this, [this] { begin(true); });
  connect(save_, &QPushButton::clicked, this, &LaunchDialog::save);
  connect(copy_, &QPushButton::clicked, this, &LaunchDialog::copy);
  connect(remedy_, &QPushButton::clicked, this, [this] {
    const std::vector<std::string> settings = plan_ ? plan_->facts.memory_settings : std::vector<std::string>();
    for (const std::string& setting : settings)
      form_->type(text(setting).section(QLatin1Char('='), 0, 0), text(setting).section(QLatin1Char('='), 1));
  });
  connect(anyway_, &QPushButton::clicked, this,
          [this] { form_->type(QStringLiteral("run.memory_guard"), QStringLiteral("false")); });
  form_->set_config(start.config, start.config);
  // Large text does not carry it over the edge of the window.
  resize(QSize(metrics().scaled(1120), metrics().scaled(740))
             .boundedTo(parent ? parent->window()->size() : QSize(1600, 1000)));
  start_->setFocus();
}

// Of what stands beside the form: with large text not more than its share of the window.
int LaunchDialog::side_width(double at_13px, int percent) const {
  const int window = parentWidget() ? parentWidget()->window()->width() : 1600;
  return std::min(metrics().scaled(at_13px), window * percent / 100);
}

QWidget* LaunchDialog::build_facts() {
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setFixedWidth(side_width(316, 26));
  auto* body = new QWidget(scroll);
  auto* outer = new QVBoxLayout(body);
  outer->setContentsMargins(0, 8, 0, 8);
  auto* said = new QHBoxLayout;
  said->setContentsMargins(12, 6, 12, 6);
  trouble_ = new TextLabel(TextRole::secondary, Token::text2, false, body);
  trouble_->setWordWrap(true);
  said->addWidget(trouble_);
  outer->addLayout(said);
  facts_ = new QWidget(body);
  outer->addWidget(facts_);
  outer->addStretch();
  auto* column = new QVBoxLayout(facts_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  const auto heading = [&](const QString& title, QWidget* beside = nullptr) {
    auto* row = new QHBoxLayout;
    row->setContentsMargins(12, 6, 12, 2);
    auto* label = new TextLabel(TextRole::secondary, Token::text, true, body);
    label->set_full_text(title);
    row->addWidget(label);
    row->addStretch();
    if (beside) row->addWidget(beside);
    column->addLayout(row);
  };
  const auto note = [&] {
    auto* row = new QHBoxLayout;
    row->setContentsMargins(12, 0, 12, 6);
    auto* label = new TextLabel(TextRole::small, Token::text3, false, body);
    label->setWordWrap(true);
    row->addWidget(label);
    column->addLayout(row);
    return label;
  };
  planning_ = new TextLabel(TextRole::small, Token::text3, false, body);
  fits_ = new StatePill(body);
  heading(tr("Memory"), fits_);
  auto* bar_row = new QHBoxLayout;
  bar_row->setContentsMargins(12, 2, 12, 2);
  bar_ = new MemoryBar(body);
  bar_->setFixedHeight(metrics().scaled(16));
  bar_row->addWidget(bar_);
  column->addLayout(bar_row);
  memory_note_ = note();
  remedy_note_ = note();
  auto* remedies = new QHBoxLayout;
  remedies->setContentsMargins(12, 0, 12, 6);
  remedy_ = make_button(tr("Use what fits"), {}, body);
  anyway_ = make_button(tr("Run anyway"), {}, body);
  anyway_->setToolTip(tr("Turns the memory guard off: the system may end the run, or others."));
  anyway_->setAccessibleDescription(anyway_->toolTip());
  for (QPushButton* button : {remedy_, anyway_}) remedies->addWidget(button);
  remedies->addStretch();
  column->addLayout(remedies);
  memory_ = new FactGrid(body);
  column->addWidget(memory_);
  column->addWidget(make_line(Qt::Horizontal, body));
  heading(tr("Time and cost"), planning_);
  time_ = new FactGrid(body);
  column->addWidget(time_);
  time_note_ = note();
  column->addWidget(make_line(Qt::Horizontal, body));
  heading(tr("Model"));
  model_ = new FactGrid(body);
  column->addWidget(model_);
  column->addWidget(make_line(Qt::Horizontal, body));
  heading(tr("Checkpoints"));
  disk_ = new FactGrid(body);
  column->addWidget(disk_);
  scroll->setWidget(body);
  return scroll;
}

void LaunchDialog::show_sections() {
  for (int i = 0; i < sections_->count(); ++i) {
    const LaunchForm::Section& section = form_->sections()[static_cast<std::size_t>(i)];
    QString title = section.title;
    if (section.wrong > 0)
      title += QStringLiteral("   ⚠");
    else if (section.changed > 0)
      title += QStringLiteral("   %1").arg(section.changed);
    QListWidgetItem* item = sections_->item(i);
    item->setText(title);
    item->setForeground(theme()[section.wrong > 0 ? Token::bad : Token::text]);
    item->setData(Qt::AccessibleTextRole, section.wrong > 0 ? tr("%1: something is wrong").arg(section.title)
                                          : section.changed > 0
                                              ? tr("%1: %2 changed").arg(section.title).arg(section.changed)
                                              : section.title);
  }
}

void LaunchDialog::judge() {
  problem_ = form_->own_problem();
  if (problem_.isEmpty()) {
    // Every field holds by itself; now all together.
    QString named;
    if (const Status whole = check_launch(form_->config()); !whole) {
      const std::string& what = whole.error().what;
      named = text(what.substr(0, what.find_first_of(": ")));
      problem_ = text(what);
      if (problem_.startsWith(named + QStringLiteral(": "))) problem_ = problem_.mid(named.size() + 2);
      if (!problem_.isEmpty()) problem_[0] = problem_[0].toUpper();
      if (!whole.error().remedy.empty()) problem_ += QStringLiteral(": ") + text(whole.error().remedy);
      problem_ += QLatin1Char('.');
    }
    form_->set_whole_problem(named, problem_);
  } else {
    form_->set_whole_problem({}, {});
  }
  const bool can = problem_.isEmpty() && control_->can_steer();
  const QString why = !control_->can_steer() ? tr("This workspace is open for reading only.") : problem_;
  for (QPushButton* button : {start_, queue_}) {
    button->setEnabled(can);
    button->setToolTip(can ? QString() : why);
    button->setAccessibleDescription(can ? QString() : why);
  }
  for (QPushButton* button : {save_, copy_}) button->setEnabled(problem_.isEmpty());
  if (!problem_.isEmpty()) {
    planner_->forget();
    return show_nothing(problem_);
  }
  hash_->set_full_text(text(config_hash(form_->config())));
  known_->set_full_text({});
  planning_->set_full_text(tr("working it out"));
  planner_->plan(form_->config());
}

// The button says what it does to the run that has this config already.
void LaunchDialog::name_start(const std::optional<RunState>& known) {
  if (!from_.parent.empty()) return;
  start_->setText(!known                       ? tr("Start now")
                  : *known == RunState::paused ? tr("Resume")
                  : *known == RunState::failed || *known == RunState::killed || *known == RunState::lost
                      ? tr("Go on with it")
                      : tr("Start now"));
}

void LaunchDialog::show_nothing(const QString& why) {
  plan_.reset();
  facts_->hide();
  trouble_->set_full_text(why);
  trouble_->show();
  planning_->set_full_text({});
  name_start(std::nullopt);
  hash_->set_full_text(missing());
  known_->set_full_text({});
}

void LaunchDialog::show_plan(const LaunchPlanPtr& plan) {
  if (plan->error) return show_nothing(text(plan->error->message()));
  plan_ = plan;
  const LaunchFacts& f = plan->facts;
  facts_->show();
  trouble_->hide();
  planning_->set_full_text({});
  std::vector<std::pair<QString, std::int64_t>> parts;
  if (!f.memory_error)
    for (const auto& [name, bytes] : f.memory_parts) parts.emplace_back(part_title(name), bytes);
  bar_->set(parts, f.memory_free);
  static const char* all[] = {"parameter", "gradient", "optimiser", "activation", "workspace",
                              "cache",     "input",    "output",    "scalar",     "gaps"};
  for (const char* name : all) {
    std::int64_t bytes = 0;
    for (const auto& [part, size] : f.memory_parts)
      if (part == name) bytes = size;
    memory_->set(part_title(name), bytes > 0 && !f.memory_error ? format_bytes(bytes) : QString());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) memory_->set_swatch(parts[i].first, MemoryBar::color(i));
  fits_->setVisible(!f.memory_error);
  fits_->set_state(f.memory_fits ? Glyph::check : Glyph::cross, f.memory_fits ? tr("fits") : tr("does not fit"),
                   f.memory_fits ? Token::good : Token::warn, f.memory_fits ? Token::good_soft : Token::warn_soft);
  memory_note_->set_full_text(
      f.memory_error ? text(f.memory_error->message())
                     : tr("%1 this run; %2 free now").arg(format_bytes(f.memory_peak), format_bytes(f.memory_free)));
  show_remedy(f);
  memory_->set(tr("Micro-batch"),
               f.memory_error ? QString()
                              : tr("%1 sequences; largest that fits: %2")
                                    .arg(format_count(f.micro_batch),
                                         f.largest_micro_batch > 0 ? format_count(f.largest_micro_batch) : tr("none")));
  const RunConfig& config = form_->config();
  time_->set(tr("Tokens"), format_amount(static_cast<double>(config.train.tokens)));
  time_->set(tr("Steps"), format_count(f.steps));
  time_->set(tr("Model FLOPs"), QString::number(f.flops, 'e', 2).replace(QStringLiteral("e+"), QStringLiteral("e")));
  time_->set(tr("Will take"),
             f.seconds > 0 ? tr("%1   (%2 to %3)").arg(hours(f.seconds), hours(f.seconds_least), hours(f.seconds_most))
                           : missing());
  const BudgetConfig& budget = config.run.budget;
  const auto money = [&](double seconds) { return format_money(seconds / 3600 * budget.usd_per_hour); };
  time_->set(tr("Will cost"),
             budget.usd_per_hour > 0 && f.seconds > 0
                 ? tr("%1   (%2 to %3)").arg(money(f.seconds), money(f.seconds_least), money(f.seconds_most))
                 : QString());
  time_->set(tr("Stops at"), budget.usd > 0 ? format_money(budget.usd) : QString());
  time_note_->set_full_text(f.seconds <= 0        ? tr("Nothing is known of this device's speed.")
                            : f.earlier_runs == 1 ? tr("From one earlier run on this device.")
                            : f.earlier_runs > 1
                                ? tr("From %1 earlier runs on this device.").arg(f.earlier_runs)
                                : tr("From the measured rate of matrix products: the first run here will tell more."));
  model_->set(tr("Parameters"), format_count(f.parameters));
  model_->set(tr("Body"), format_count(f.body));
  model_->set(tr("KV cache"), tr("%1 per token, bf16").arg(format_bytes(f.kv_bytes_per_token)));
  disk_->set(tr("Each"), format_bytes(f.checkpoint_bytes));
  disk_->set(tr("At once"), format_count(f.checkpoints));
  const QString sum = format_bytes(f.checkpoint_bytes * f.checkpoints),
                free = f.disk_free >= 0 ? format_bytes(f.disk_free) : missing();
  disk_->set(tr("In all"),
             f.disk_fits() ? tr("%1; %2 free").arg(sum, free) : tr("%1, but only %2 free").arg(sum, free));
  hash_->set_full_text(text(f.hash));
  known_->set_full_text(f.known_as.empty() ? tr("new; no run has it yet")
                        : f.known_state == RunState::finished
                            ? tr("%1 has it and is finished: nothing of it is left to train").arg(text(f.known_as))
                            : tr("%1 has it and is %2: starting it goes on with that run")
                                  .arg(text(f.known_as), look_of(f.known_state, false).word));
  name_start(f.known_as.empty() ? std::nullopt : std::optional(f.known_state));
  known_->set_color(f.known_as.empty() ? Token::text3 : Token::warn);
}

// The same words as a run that is refused is told.
void LaunchDialog::show_remedy(const LaunchFacts& f) {
  const bool guarded = form_->config().run.memory_guard, tight = !f.memory_error && !f.memory_fits;
  remedy_note_->set_full_text(
      !tight    ? QString()
      : guarded ? tr("It would be refused. %1").arg(text(f.memory_remedy))
                : tr("It is started all the same: the memory guard is off. %1").arg(text(f.memory_remedy)));
  remedy_note_->setVisible(tight);
  remedy_->setVisible(tight && !f.memory_settings.empty());
  QStringList settings;
  for (const std::string& setting : f.memory_settings) settings << text(setting);
  remedy_->setToolTip(tr("Sets %1").arg(settings.join(QStringLiteral(", "))));
  remedy_->setAccessibleDescription(remedy_->toolTip());
  anyway_->setVisible(tight && guarded);
}

QString LaunchDialog::command() const {
  if (!problem_.isEmpty()) return {};
  if (!from_.parent.empty())
    return fork_command(from_.parent, checkpoint_->currentData().toLongLong(), from_.config, form_->config(),
                        from_.workspace);
  return train_command(form_->config(), from_.workspace, detached_->isChecked());
}

void LaunchDialog::copy() {
  QApplication::clipboard()->setText(command());
  known_->set_color(Token::text3);
  known_->set_full_text(tr("the command is in the clipboard"));
}

QString LaunchDialog::footer() const { return hash_->full_text() + QLatin1Char(' ') + known_->full_text(); }

QString LaunchDialog::facts_text() const {
  QStringList lines{trouble_->full_text(), memory_note_->full_text(), remedy_note_->full_text(),
                    time_note_->full_text()};
  for (const FactGrid* grid : {memory_, time_, model_, disk_})
    for (const QLabel* label : grid->findChildren<QLabel*>())
      if (const auto* words = dynamic_cast<const TextLabel*>(label)) lines << words->full_text();
  return lines.join(QLatin1Char('\n'));
}

void LaunchDialog::begin(bool queued) {
  if (!start_->isEnabled()) return;
  RunConfig config = form_->config();
  if (!from_.parent.empty())
    control_->fork(from_.parent, checkpoint_->currentData().toLongLong(), config);
  else if (queued)
    control_->add_to_queue(config);
  else
    control_->start(config, detached_->isChecked());
  accept();
}

void LaunchDialog::start_from(int choice) {
  const RunConfig& config = choice == 0 ? from_.config : presets()[static_cast<std::size_t>(choice) - 1].config;
  form_->set_config(config, config);
}

void LaunchDialog::save() {
  auto* dialog =
      new QFileDialog(this, tr("Save the config"),
                      QString::fromStdString(form_->config().name) + QStringLiteral(".json"), tr("Configs (*.json)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(QStringLiteral("json"));
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
    auto written = std::make_shared<Status>();
    control_->link()->in_background([written, path = file.toStdString(),
                                     json = to_json(form_->config())] { *written = write_file_atomically(path, json); },
                                    [self = QPointer<LaunchDialog>(this), written, file] {
                                      if (self)
                                        self->known_->set_full_text(*written ? LaunchDialog::tr("saved as %1").arg(file)
                                                                             : text(written->error().message()));
                                    });
  });
  dialog->open();
}

void LaunchDialog::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
    // From any field: what one typed last counts, and what cannot be started says why.
    if (start_->isEnabled()) return begin(false);
    const QString key = form_->problem_key();
    if (!key.isEmpty()) form_->reveal(key);
    return;
  }
  QDialog::keyPressEvent(event);
}

}  // namespace stacklab::ui

#include <moc_launch_dialog.cpp>
