package series

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

var none = float32(math.NaN())

// Values are the points of a curve, oldest first. Unknown values are NaN, or null in JSON.
type Values []float32

// MarshalJSON writes four significant digits.
func (v Values) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, 8*len(v)+2), '[')
	for i, value := range v {
		if i > 0 {
			text = append(text, ',')
		}
		if isNone(value) {
			text = append(text, "null"...)
			continue
		}
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(float64(value), 'g', 4, 32), 64)
		text = strconv.AppendFloat(text, rounded, 'f', -1, 64)
	}
	return append(text, ']'), nil
}

// UnmarshalJSON reads the output of MarshalJSON.
func (v *Values) UnmarshalJSON(text []byte) error {
	var read []*float32
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*v = make(Values, len(read))
	for i, value := range read {
		(*v)[i] = none
		if value != nil {
			(*v)[i] = *value
		}
	}
	return nil
}

// Newest returns the newest completed point, and false if unknown.
func (v Values) Newest() (value float32, known bool) {
	if len(v) < 2 {
		return 0, false
	}
	value = v[len(v)-2]
	return value, !isNone(value)
}

func isNone(value float32) bool { return value != value }

// Curves holds the curves of one range, with 180 points each.
type Curves struct {
	// At holds the periods' ends in Unix seconds, oldest first. The newest may be in progress.
	At     []int64            `json:"at"`
	Series Environment        `json:"series"`
	Queues map[string]Traffic `json:"queues"`
	Marks  []Mark             `json:"marks"`
}

// Traffic holds incoming and finished messages per second.
type Traffic struct {
	In  Values `json:"in"`
	Out Values `json:"out"`
}

// Environment holds the curves of all queues together.
type Environment struct {
	Traffic
	InFlight Values `json:"in_flight"`
	Limit    Values `json:"limit"`
	// Percentiles of the durations of answered deliveries.
	P50MS         Values `json:"p50_ms"`
	P95MS         Values `json:"p95_ms"`
	P99MS         Values `json:"p99_ms"`
	OldestSeconds Values `json:"oldest_seconds"`
}

// Mark is a mark on the time axis.
type Mark struct {
	At   int64  `json:"at"`   // Unix seconds
	Kind string `json:"kind"` // "deploy" or "leadership"
	Text string `json:"text"`
}

type timeRange struct {
	name string
	step time.Duration
}

const points = 180

var ranges = [...]timeRange{{"15m", 5 * time.Second}, {"3h", time.Minute}, {"24h", 8 * time.Minute}}

// Ranges returns the names of the ranges, shortest first.
func Ranges() (names []string) {
	for _, r := range ranges {
		names = append(names, r.name)
	}
	return names
}
