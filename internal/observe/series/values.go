package series

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// none is the value where nothing is known.
var none = float32(math.NaN())

// Values are the points of one curve, the oldest first: NaN where nothing is known, null in JSON.
type Values []float32

// MarshalJSON writes four significant digits: what a chart can show.
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

// UnmarshalJSON reads what MarshalJSON writes.
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

// Newest returns the newest point of a period that is over; false where nothing is known.
func (v Values) Newest() (value float32, known bool) {
	if len(v) < 2 {
		return 0, false
	}
	value = v[len(v)-2]
	return value, !isNone(value)
}

// isNone reports whether a value is [none].
func isNone(value float32) bool { return value != value }

// Curves are all curves of one range, 180 points each. The values belong to the times with the same index.
type Curves struct {
	// At are the ends of the periods, in seconds since 1970, the oldest first. The newest may not be over.
	At     []int64            `json:"at"`
	Series Environment        `json:"series"`
	Queues map[string]Traffic `json:"queues"`
	// Marks are what happened in the range, the oldest first.
	Marks []Mark `json:"marks"`
}

// Traffic is how many messages came and were done, in messages a second.
type Traffic struct {
	In  Values `json:"in"`
	Out Values `json:"out"`
}

// Environment are the curves of all queues together.
type Environment struct {
	Traffic
	// InFlight is how many messages the target had on average, Limit the most that it would have been given.
	InFlight Values `json:"in_flight"`
	Limit    Values `json:"limit"`
	// P50MS, P95MS and P99MS are percentiles of the duration of deliveries that were answered, in milliseconds.
	P50MS Values `json:"p50_ms"`
	P95MS Values `json:"p95_ms"`
	P99MS Values `json:"p99_ms"`
	// OldestSeconds is the greatest age of a message in any of the queues that are worked on.
	OldestSeconds Values `json:"oldest_seconds"`
}

// Mark is something that happened at one moment, for the time axis.
type Mark struct {
	At   int64  `json:"at"`   // seconds since 1970
	Kind string `json:"kind"` // "deploy" or "leadership"
	Text string `json:"text"`
}

// timeRange is one of the ranges that are kept.
type timeRange struct {
	name string        // as in a query: "15m"
	step time.Duration // of one point
}

// points is how many points a range has.
const points = 180

// ranges are those that are kept, the shortest first.
var ranges = [...]timeRange{{"15m", 5 * time.Second}, {"3h", time.Minute}, {"24h", 8 * time.Minute}}

// Ranges names the ranges, the shortest first.
func Ranges() (names []string) {
	for _, r := range ranges {
		names = append(names, r.name)
	}
	return names
}
