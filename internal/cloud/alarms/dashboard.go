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
	half, graphHeight = 12, 6
	period            = 60 // in seconds
)

func dashboard(s *Settings) string {
	widgets := []widget{{Type: "text", Width: 24, Height: 1,
		Properties: map[string]any{"markdown": "# tendril environment " + s.Environment}}}
	y, column := 1, 0
	graph := func(title, stat string, metrics ...[]any) {
		if len(metrics) == 0 {
			return
		}
		widgets = append(widgets, widget{Type: "metric", X: column * half, Y: y, Width: half, Height: graphHeight,
			Properties: map[string]any{"title": title, "metrics": metrics, "region": s.Region, "stat": stat, "period": period,
				"view": "timeSeries", "yAxis": map[string]any{"left": map[string]any{"min": 0}}}})
		column++
		if column == 2 {
			y, column = y+graphHeight, 0
		}
	}
	if s.Publishes && s.HealthName != "" {
		state := func(name string) []any {
			return []any{telemetry.HealthNamespace, name, "EnvironmentName", s.HealthName}
		}
		graph("Status: 0 Ok, 15 Warning, 20 Degraded, 25 Severe", "Maximum", state("EnvironmentHealth"))
		if s.Periodic {
			graph("Leader of the periodic tasks", "Maximum", state("Leader"))
		}
	}

	for i := range s.Queues {
		q := &s.Queues[i]
		if q.OnSQS {
			of := func(queue, name string, options map[string]any) []any {
				return []any{sqsNamespace, name, "QueueName", queue, options}
			}
			graph(q.Name+": age of the oldest message (s)", "Maximum", of(q.Name, "ApproximateAgeOfOldestMessage", label("age")))
			messages := [][]any{of(q.Name, "ApproximateNumberOfMessagesVisible", label("visible")),
				of(q.Name, "ApproximateNumberOfMessagesNotVisible", label("in flight"))}
			if q.DeadLetter != "" {
				messages = append(messages, of(q.DeadLetter, "ApproximateNumberOfMessagesVisible", label("dead letters")))
			}
			graph(q.Name+": messages", "Maximum", messages...)
		}
		if s.Publishes {
			of := func(name string, options map[string]any) []any {
				return []any{telemetry.NamespacePrefix + s.Environment, name, "Queue", q.Name, options}
			}
			graph(q.Name+": deliveries", "Sum", of("MessagesProcessed", label("deliveries")),
				of("MessagesFailed", label("failed")))
			graph(q.Name+": duration of deliveries (ms)", "Average", of("Duration", label("average")),
				of("Duration", map[string]any{"label": "longest", "stat": "Maximum"}))
		}
	}

	body, err := json.Marshal(map[string]any{"widgets": widgets})
	if err != nil {
		panic(err) // cannot happen
	}

	return string(body)
}

func label(text string) map[string]any { return map[string]any{"label": text} }
