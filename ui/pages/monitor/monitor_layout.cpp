// How the monitor page is put together.
#include <QCheckBox>
#include <QComboBox>
#include <QMenu>
#include <QSlider>
#include <QStackedLayout>
#include <QToolButton>

#include "ui/pages/monitor/monitor_page.h"
#include "ui/plots/export.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int list_width = 226;

QToolButton* tool(const QString& icon_name, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setIcon(icon(icon_name, Token::text2));
  scale_icon(button);
  button->setToolTip(name);
  button->setAccessibleName(name);
  return button;
}

QToolButton* toggle(const QString& text, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(text);
  button->setCheckable(true);
  button->setProperty("toggle", true);
  button->setToolTip(name);
  button->setAccessibleName(name);
  return button;
}

}  // namespace

MonitorPage::MonitorPage(WorkspaceLink* link, QUndoStack* undo, QWidget* parent)
    : Page(parent),
      link_(link),
      runs_(new RunListModel(this)),
      events_(new EventListModel(this)),
      inspector_(new Inspector(events_)),
      charts_(new MonitorCharts(link, this)) {
  setAccessibleName(tr("Monitor"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  build_header();
  build_tools();
  build_content();
  list_->set_undo_stack(undo);
  column->addWidget(header_);
  stack_ = new QStackedLayout;
  stack_->addWidget(content_);
  notice_ = new Notice(this);
  stack_->addWidget(notice_);
  column->addLayout(stack_, 1);
  connect(notice_->button(), &QPushButton::clicked, this, &MonitorPage::start_requested);

  connect(link_, &WorkspaceLink::snapshot_ready, this, &MonitorPage::take_snapshot);
  connect(link_, &WorkspaceLink::chunk_ready, charts_, &MonitorCharts::take);
  connect(link_, &WorkspaceLink::events_ready, this, &MonitorPage::take_events);
  connect(runs_, &RunListModel::shown_changed, this, [this] {
    update_curves();
    if (snapshot_) update_header();
  });
  connect(runs_, &RunListModel::marks_changed, this, [this] {
    if (snapshot_) update_curves();
  });
  connect(charts_, &MonitorCharts::facts_changed, this, [this] {
    if (!snapshot_) return;
    update_header();
    update_inspector();
  });
  connect(inspector_, &Inspector::stop_requested, this, &MonitorPage::stop_selected);
  connect(inspector_, &Inspector::resume_requested, this, &MonitorPage::resume_selected);
  connect(inspector_, &Inspector::trace_requested, this, &MonitorPage::trace_selected);
  connect(inspector_, &Inspector::event_chosen, this,
          [this](qint64 step) { charts_->go_to_step(static_cast<double>(step)); });
  connect(charts_, &MonitorCharts::panels_changed, this, [this] {
    curves_signature_.clear();
    if (snapshot_) update_curves();
    emit state_changed();
  });
  for (PanelFrame* panel : charts_->grid()->panels())
    connect(panel, &PanelFrame::saved, this, [this](const QString& path, const QString& error) {
      emit message(error.isEmpty() ? tr("Saved %1").arg(path) : error);
    });
  const auto heights = [this] {
    header_->setFixedHeight(metrics().page_header());
    tools_->setFixedHeight(metrics().tool_row());
    list_box_->setFixedWidth(metrics().scaled(list_width));
    fit_tools();
  };
  heights();
  connect(&look(), &Look::changed, this, heights);
}

void MonitorPage::build_header() {
  header_ = new QWidget(this);
  header_->setObjectName(QStringLiteral("pageHeader"));
  auto* row = new QHBoxLayout(header_);
  row->setContentsMargins(16, 0, 12, 0);
  row->setSpacing(8);
  auto* title = new TextLabel(TextRole::title, Token::text, true, header_);
  title->set_full_text(tr("Monitor"));
  facts_ = new TextLabel(TextRole::body, Token::text2, false, header_);
  points_ = new TextLabel(TextRole::secondary, Token::text3, false, header_);
  points_->set_numbers(true);
  first_non_finite_ = make_button(tr("First non-finite"), QStringLiteral("dialog-error"), header_);
  first_non_finite_->hide();
  export_ = make_button(tr("Export"), QStringLiteral("document-send"), header_);
  row->addWidget(title);
  row->addWidget(facts_);
  row->addStretch();
  row->addWidget(points_);
  row->addWidget(first_non_finite_);
  row->addWidget(export_);
  connect(first_non_finite_, &QPushButton::clicked, this, &MonitorPage::go_to_first_non_finite);
  connect(export_, &QPushButton::clicked, this, [this] {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Panels as picture…"), this, &MonitorPage::ask_export_picture);
    menu->addAction(tr("Visible values of all panels (CSV)…"), this, &MonitorPage::ask_export_values);
    menu->popup(export_->mapToGlobal(QPoint(0, export_->height())));
  });
}

void MonitorPage::build_tools() {
  SharedView* view = charts_->view();
  tools_ = new QWidget(this);
  tools_->setObjectName(QStringLiteral("toolRow"));
  tools_->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(tools_);
  row->setContentsMargins(12, 0, 12, 0);
  row->setSpacing(6);
  back_ = tool(QStringLiteral("go-previous"), tr("Back to the view before"), tools_);
  forward_ = tool(QStringLiteral("go-next"), tr("Forward to the next view"), tools_);
  auto* fit = tool(QStringLiteral("zoom-fit-best"), tr("Show everything"), tools_);
  log_x_ = toggle(tr("log x"), tr("Logarithmic x axis"), tools_);
  log_y_ = toggle(tr("log y"), tr("Logarithmic y axes"), tools_);
  x_kind_ = new QComboBox(tools_);
  x_kind_->setAccessibleName(tr("X axis"));
  x_kind_->setToolTip(tr("What the x axis of all panels counts"));
  for (const XKind kind : x_kinds) x_kind_->addItem(x_name(kind));
  layout_ = new QComboBox(tools_);
  layout_->setAccessibleName(tr("Layout of the panels"));
  layout_->setToolTip(tr("An arrangement of panels; what you change of it is kept"));
  for (const auto& [name, layout] : MonitorCharts::perspectives()) layout_->addItem(name);
  add_panel_ = make_button(tr("Add panel"), QStringLiteral("list-add"), tools_);
  auto* label = new TextLabel(TextRole::body, Token::text2, false, tools_);
  label->set_full_text(tr("Smoothing"));
  smoothing_ = new QSlider(Qt::Horizontal, tools_);
  smoothing_->setRange(0, 99);
  smoothing_->setValue(qRound(view->smoothing() * 100));
  smoothing_->setFixedWidth(metrics().scaled(96));
  smoothing_->setAccessibleName(tr("Smoothing"));
  smoothing_->setToolTip(tr("Weight of the past in an exponential average, without its bias towards 0"));
  smoothing_value_ = new TextLabel(TextRole::body, Token::text, false, tools_);
  smoothing_value_->set_numbers(true);
  raw_ = new QCheckBox(tr("Raw"), tools_);
  raw_->setChecked(view->raw_shown());
  raw_->setToolTip(tr("Show the raw values, faint, behind the smoothed line"));
  robust_ = new QCheckBox(tr("Robust range"), tools_);
  robust_->setToolTip(tr("Fit the y axes to the middle 98 % of the values"));
  for (QCheckBox* box : {raw_, robust_}) box->setAccessibleName(box->text());
  for (QWidget* widget : std::initializer_list<QWidget*>{back_, forward_, fit}) row->addWidget(widget);
  row->addSpacing(6);
  row->addWidget(x_kind_);
  row->addWidget(log_x_);
  row->addWidget(log_y_);
  row->addSpacing(8);
  for (QWidget* widget : std::initializer_list<QWidget*>{label, smoothing_, smoothing_value_}) row->addWidget(widget);
  row->addSpacing(6);
  row->addWidget(raw_);
  row->addWidget(robust_);
  row->addStretch();
  row->addWidget(layout_);
  row->addWidget(add_panel_);
  spare_tools_ = {label, layout_, add_panel_, robust_, raw_, smoothing_value_, smoothing_};
  // A narrow window, or a large text, must not be widened by its tools.
  tools_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  build_layout_choice();

  connect(back_, &QToolButton::clicked, view, &SharedView::back);
  connect(forward_, &QToolButton::clicked, view, &SharedView::forward);
  connect(fit, &QToolButton::clicked, view, &SharedView::reset);
  connect(log_x_, &QToolButton::toggled, view, &SharedView::set_log_x);
  connect(log_y_, &QToolButton::toggled, this, [this](bool on) {
    if (on != charts_->log_y()) charts_->set_log_y(on);
  });
  connect(smoothing_, &QSlider::valueChanged, view, [view](int value) { view->set_smoothing(value / 100.0); });
  connect(raw_, &QCheckBox::toggled, view, &SharedView::set_raw_shown);
  connect(robust_, &QCheckBox::toggled, view, &SharedView::set_robust);
  const auto follow = [this, view] {
    back_->setEnabled(view->can_go_back());
    forward_->setEnabled(view->can_go_forward());
    smoothing_value_->set_full_text(format_fixed(view->smoothing(), 2));
    robust_->setChecked(view->robust());
    raw_->setChecked(view->raw_shown());
    log_x_->setChecked(view->log_x());
    log_y_->setChecked(charts_->log_y());
    x_kind_->setCurrentIndex(static_cast<int>(view->x_kind()));
    if (view->x_kind() != curves_kind_) {
      curves_kind_ = view->x_kind();
      curves_signature_.clear();
      if (snapshot_) update_curves();
    }
    emit state_changed();
  };
  follow();
  connect(view, &SharedView::changed, this, follow);
  connect(x_kind_, &QComboBox::currentIndexChanged, view, [view](int i) { view->set_x_kind(x_kinds[i]); });
  for (ChartPanel* panel : charts_->panels()) connect(panel, &ChartPanel::log_y_changed, this, follow);
}

void MonitorPage::fit_tools() {
  // The Chart menu has them too, all but the smoothing, which goes last.
  for (QWidget* tool : spare_tools_) tool->show();
  for (QWidget* tool : spare_tools_) {
    if (tools_->layout()->sizeHint().width() <= width()) return;
    tool->hide();
    tools_->layout()->invalidate();
  }
}

void MonitorPage::resizeEvent(QResizeEvent* event) {
  Page::resizeEvent(event);
  fit_tools();
}

void MonitorPage::build_layout_choice() {
  const auto name_it = [this] {
    const auto known = MonitorCharts::perspectives();
    const auto same = std::find_if(known.begin(), known.end(),
                                   [this](const auto& p) { return p.second == charts_->grid()->layout(); });
    const QSignalBlocker blocker(layout_);
    // What the user has made of it has no name of its own.
    while (layout_->count() > static_cast<int>(known.size())) layout_->removeItem(layout_->count() - 1);
    if (same == known.end()) layout_->addItem(tr("Own"));
    layout_->setCurrentIndex(static_cast<int>(same - known.begin()));
    add_panel_->setEnabled(charts_->grid()->layout().panels().size() < charts_->grid()->ids().size());
    add_panel_->setToolTip(add_panel_->isEnabled() ? tr("Panels that are not shown") : tr("All panels are shown."));
  };
  name_it();
  connect(charts_->grid(), &PanelGrid::layout_changed, this, name_it);
  connect(layout_, &QComboBox::activated, this, [this](int i) {
    const auto known = MonitorCharts::perspectives();
    if (i < static_cast<int>(known.size())) charts_->grid()->set_layout(known[static_cast<std::size_t>(i)].second);
  });
  connect(add_panel_, &QPushButton::clicked, this, [this] {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (PanelFrame* panel : charts_->grid()->panels())
      if (!charts_->grid()->shows(panel->id()))
        menu->addAction(panel->title(), this, [this, id = panel->id()] { charts_->grid()->show_panel(id); });
    menu->popup(add_panel_->mapToGlobal(QPoint(0, add_panel_->height())));
  });
}

QJsonObject MonitorPage::state() const {
  const SharedView* view = charts_->view();
  QJsonObject log_y;
  for (const ChartPanel* panel : charts_->panels()) log_y[panel->id()] = panel->own_log_y();
  return {{"version", state_version},
          {"layout", charts_->grid()->layout().to_json()},
          {"x", x_word(view->x_kind())},
          {"log_x", view->log_x()},
          {"raw", view->raw_shown()},
          {"robust", view->robust()},
          {"log_y", log_y},
          {"all_log_y", charts_->log_y()}};
}

void MonitorPage::restore(const QJsonObject& state) {
  if (state["version"].toInt() != state_version) return;
  SharedView* view = charts_->view();
  view->set_x_kind(x_kind_from_word(state["x"].toString()));
  view->set_log_x(state["log_x"].toBool());
  view->set_raw_shown(state["raw"].toBool(true));
  view->set_robust(state["robust"].toBool());
  const QJsonObject log_y = state["log_y"].toObject();
  for (ChartPanel* panel : charts_->panels())
    if (log_y.contains(panel->id())) panel->set_log_y(log_y[panel->id()].toBool());
  charts_->set_log_y(state["all_log_y"].toBool());
  const PanelLayout layout = PanelLayout::from_json(state["layout"].toArray(), charts_->grid()->ids());
  if (!layout.rows.empty()) charts_->grid()->set_layout(layout);
}

void MonitorPage::build_content() {
  content_ = new QWidget(this);
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tools_);
  auto* row = new QHBoxLayout;
  row->setSpacing(0);
  column->addLayout(row, 1);

  list_box_ = new QFrame(content_);
  list_box_->setObjectName(QStringLiteral("list"));
  auto* list_column = new QVBoxLayout(list_box_);
  list_column->setContentsMargins(0, 0, 1, 0);
  list_column->setSpacing(0);
  auto* head = new QHBoxLayout;
  head->setContentsMargins(11, 6, 11, 6);
  head->setSpacing(12);
  list_count_ = new TextLabel(TextRole::secondary, Token::text3, false, list_box_);
  list_count_->set_shrinking();
  list_count_->setObjectName(QStringLiteral("list-count"));
  auto* last = new TextLabel(TextRole::secondary, Token::text3, false, list_box_);
  last->set_full_text(tr("last loss"));
  head->addWidget(list_count_, 1);
  head->addWidget(last);
  list_ = new RunListView(runs_, list_box_);
  filter_ = new RunFilterBox(link_, list_->order(), list_box_);
  auto* filter_row = new QHBoxLayout;
  filter_row->setContentsMargins(8, 8, 8, 0);
  filter_row->addWidget(filter_);
  list_column->addLayout(filter_row);
  list_column->addLayout(head);
  list_column->addWidget(make_line(Qt::Horizontal, list_box_));
  connect(filter_, &RunFilterBox::answered, this, [this] {
    update_list_head();
    // The run that is looked at stays so, whether it is listed or not.
    list_->setCurrentIndex(list_->order()->index_of(selected_));
  });
  connect(list_, &RunListView::pin_wanted, this, &MonitorPage::pin_wanted);
  connect(list_, &RunListView::baseline_wanted, this, &MonitorPage::baseline_wanted);
  list_column->addWidget(list_, 1);
  list_column->addWidget(make_line(Qt::Horizontal, list_box_));
  auto* hint = new TextLabel(TextRole::small, Token::text3, false, list_box_);
  hint->setContentsMargins(11, 5, 8, 5);
  hint->setWordWrap(true);
  hint->set_full_text(tr("Click a line: hide. Alt+click: solo."));
  list_column->addWidget(hint);
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& index) {
    if (index.isValid() && !list_->order()->is_changing()) select(list_->order()->run_at(index).summary.id);
  });

  auto* panels = new QVBoxLayout;
  panels->setContentsMargins(8, 8, 8, 8);
  panels->setSpacing(8);
  failure_ = new QFrame(content_);
  failure_->setObjectName(QStringLiteral("failure"));
  failure_->setAccessibleName(tr("What went wrong"));
  auto* failure_row = new QHBoxLayout(failure_);
  failure_row->setContentsMargins(12, 8, 8, 8);
  auto* failure_texts = new QVBoxLayout;
  failure_texts->setSpacing(2);
  failure_title_ = new TextLabel(TextRole::body, Token::bad, true, failure_);
  failure_text_ = new TextLabel(TextRole::body, Token::text, false, failure_);
  failure_text_->setWordWrap(true);
  failure_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  failure_texts->addWidget(failure_title_);
  failure_texts->addWidget(failure_text_);
  failure_resume_ = make_button(tr("Resume"), QStringLiteral("media-playback-start"), failure_);
  failure_clone_ = make_button(tr("Clone and edit…"), {}, failure_);
  failure_close_ = make_button(tr("Dismiss"), {}, failure_);
  failure_row->addLayout(failure_texts, 1);
  failure_row->addWidget(failure_resume_, 0, Qt::AlignTop);
  failure_row->addWidget(failure_clone_, 0, Qt::AlignTop);
  failure_row->addWidget(failure_close_, 0, Qt::AlignTop);
  failure_->hide();
  connect(failure_resume_, &QPushButton::clicked, this, &MonitorPage::resume_selected);
  connect(failure_clone_, &QPushButton::clicked, this, [this] { emit clone_wanted(selected_); });
  connect(failure_close_, &QPushButton::clicked, this, [this] {
    dismissed_failure_ = failure_title_->full_text() + failure_text_->full_text();
    failure_->hide();
  });

  strip_ = new JourneyStrip(content_);
  strip_->hide();
  connect(strip_, &JourneyStrip::dismissed, this, [this] {
    set_introduction(false);
    emit introduction_closed();
  });
  panels->addWidget(failure_);
  panels->addWidget(strip_);
  panels->addWidget(charts_, 1);
  row->addWidget(list_box_);
  row->addLayout(panels, 1);
}

void MonitorPage::export_values(const QString& path) {
  std::vector<CurveExtract> curves;
  for (ChartPanel* panel : charts_->panels())
    if (panel->isVisible())
      for (CurveExtract& curve : extract(*panel->chart())) curves.push_back(std::move(curve));
  charts_->whole_values(std::move(curves), [this, path](std::vector<CurveExtract> whole) {
    save_values_later(this, std::move(whole), path, [this, path](const QString& error) {
      emit message(error.isEmpty() ? tr("Saved %1").arg(path) : error);
    });
  });
}

void MonitorPage::ask_export_values() {
  ask_save_path(this, tr("Save values"), QStandardPaths::DocumentsLocation, QStringLiteral("monitor"),
                {QStringLiteral("csv")}, [this](const QString& path) { export_values(path); });
}

void MonitorPage::export_picture(const QString& path) {
  save_widget_later(this, *charts_, charts_->caption(), path, [this, path](const QString& error) {
    emit message(error.isEmpty() ? tr("Saved %1").arg(path) : error);
  });
}

void MonitorPage::ask_export_picture() {
  ask_save_path(this, tr("Save picture"), QStandardPaths::PicturesLocation, QStringLiteral("monitor"),
                {QStringLiteral("png"), QStringLiteral("svg"), QStringLiteral("pdf")},
                [this](const QString& path) { export_picture(path); });
}

}  // namespace stacklab::ui
