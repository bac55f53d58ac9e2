package alarms

import (
	"encoding/json"

	"tendril/internal/observe/telemetry"
)

// widget is part of a dashboard, which is 24 columns wide. Source: CloudWatch API Reference, "Dashboard body structure
// and syntax".
type widget struct {
	Type       string         `json:"type"`
	X          int            `json:"x"`
	Y          int            `json:"y"`
	Width      int            `json:"width"`
	Height     int            `json:"height"`
	Properties map[string]any `json:"properties"`
}

const (
	graphWidth, graphHeight = 12, 6
	graphPeriod             = 60 // seconds
)

func dashboardBody(s *Settings) string {
	d := &dashboardMaker{settings: s, widgets: []widget{{Type: "text", Width: 24, Height: 1,
		Properties: map[string]any{"markdown": "# tendril environment " + s.Environment}}}}

	if s.Publishes && s.HealthName != "" {
		d.addHealth()
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		if q.OnSQS {
			d.addMessages(q)
		}
		if s.Publishes {
			d.addDeliveries(q)
		}
	}

	body, err := json.Marshal(map[string]any{"widgets": d.widgets})
	if err != nil {
		panic(err) // cannot happen
	}
	return string(body)
}

type dashboardMaker struct {
	settings *Settings
	widgets  []widget // the title, then graphs in two columns
}

func (d *dashboardMaker) addGraph(title, stat string, metrics ...[]any) {
	graphs := len(d.widgets) - 1
	d.widgets = append(d.widgets, widget{
		Type: "metric", X: graphs % 2 * graphWidth, Y: 1 + graphs/2*graphHeight, Width: graphWidth, Height: graphHeight,
		Properties: map[string]any{"title": title, "metrics": metrics, "region": d.settings.Region, "stat": stat,
			"period": graphPeriod, "view": "timeSeries", "yAxis": map[string]any{"left": map[string]any{"min": 0}}},
	})
}

func (d *dashboardMaker) addHealth() {
	metric := func(name string) []any {
		return []any{telemetry.HealthNamespace, name, "EnvironmentName", d.settings.HealthName}
	}
	d.addGraph("Status: 0 Ok, 15 Warning, 20 Degraded, 25 Severe", "Maximum", metric("EnvironmentHealth"))
	if d.settings.Periodic {
		d.addGraph("Leader of the periodic tasks", "Maximum", metric("Leader"))
	}
}

func (d *dashboardMaker) addMessages(q *Queue) {
	metric := func(queue, name string, options map[string]any) []any {
		return []any{sqsNamespace, name, "QueueName", queue, options}
	}
	d.addGraph(q.Name+": age of the oldest message (s)", "Maximum",
		metric(q.Name, "ApproximateAgeOfOldestMessage", label("age")))

	messages := [][]any{metric(q.Name, "ApproximateNumberOfMessagesVisible", label("visible")),
		metric(q.Name, "ApproximateNumberOfMessagesNotVisible", label("in flight"))}
	if q.DeadLetter != "" {
		messages = append(messages, metric(q.DeadLetter, "ApproximateNumberOfMessagesVisible", label("dead letters")))
	}
	d.addGraph(q.Name+": messages", "Maximum", messages...)
}

func (d *dashboardMaker) addDeliveries(q *Queue) {
	metric := func(name string, options map[string]any) []any {
		return []any{telemetry.NamespacePrefix + d.settings.Environment, name, "Queue", q.Name, options}
	}
	d.addGraph(q.Name+": deliveries", "Sum", metric("MessagesProcessed", label("deliveries")),
		metric("MessagesFailed", label("failed")))
	d.addGraph(q.Name+": duration of deliveries (ms)", "Average", metric("Duration", label("average")),
		metric("Duration", map[string]any{"label": "longest", "stat": "Maximum"}))
}

func label(text string) map[string]any { return map[string]any{"label": text} }
