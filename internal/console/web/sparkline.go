package web

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"tendril/internal/observe/series"
)

// curvesFor is how long curves are shown before they are asked for again. A new point comes every five seconds.
const curvesFor = 2 * time.Second

// recentCurves are the curves of the last 15 minutes, read once for all pages that are live. Everybody may see them.
type recentCurves struct {
	mu     sync.Mutex
	readAt time.Time
	queues map[string]series.Traffic
}

// of returns the traffic of each queue, by name; none where the process keeps no curves.
func (c *recentCurves) of(v *visit) map[string]series.Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.now.Sub(c.readAt) < curvesFor {
		return c.queues
	}
	read, err := v.api.Series(v.ctx, series.Ranges()[0])
	if err != nil {
		return nil
	}
	c.readAt, c.queues = v.now, read.Queues
	return c.queues
}

// perSecond is the newest rate of a curve, as 'tendril top' has it: "–" where it is not known.
func perSecond(v series.Values) string {
	rate, known := v.Newest()
	switch {
	case !known:
		return "–"
	case rate == 0:
		return "0"
	case rate < 10:
		return fmt.Sprintf("%.1f", rate)
	}
	return number(int64(rate + 0.5))
}

const (
	sparkWidth, sparkHeight = 100, 20 // of the viewBox of a sparkline
	sparkColumns            = 60      // points that are drawn
)

// sparkline is the shape of a queue's last 15 minutes.
type sparkline struct {
	In, Out string // data of SVG paths
	Words   string // the same for those who do not see it
}

// sparklineOf draws the periods that are over; nil where none is known.
func sparklineOf(t series.Traffic) *sparkline {
	in, out := means(t.In), means(t.Out)
	peakIn, knownIn := peak(in)
	peakOut, knownOut := peak(out)
	if !knownIn && !knownOut {
		return nil
	}
	most := max(peakIn, peakOut)
	return &sparkline{In: sparkPath(in, most), Out: sparkPath(out, most),
		Words: "Last 15 minutes: at most " + perSecond(series.Values{peakIn, 0}) + " in and " +
			perSecond(series.Values{peakOut, 0}) + " out per second"}
}

// means are the averages of neighbouring points, one for each column, without those that are not known.
func means(v series.Values) series.Values {
	if len(v) < 2 {
		return nil
	}
	v = v[:len(v)-1] // the newest is not over
	columns := make(series.Values, min(sparkColumns, len(v)))
	for i := range columns {
		var sum, n float32
		for _, value := range v[i*len(v)/len(columns) : (i+1)*len(v)/len(columns)] {
			if value == value { // NaN stands for not known
				sum, n = sum+value, n+1
			}
		}
		columns[i] = sum / n
	}
	return columns
}

func peak(v series.Values) (most float32, known bool) {
	for _, value := range v {
		if value == value {
			most, known = max(most, value), true
		}
	}
	return most, known
}

// sparkPath is the line of values from the bottom to most, with a gap where nothing is known.
func sparkPath(v series.Values, most float32) string {
	var path strings.Builder
	step, pen := float64(sparkWidth)/float64(max(len(v)-1, 1)), "M"
	for i, value := range v {
		if value != value {
			pen = "M"
			continue
		}
		height := 0.0
		if most > 0 {
			height = float64(value/most) * (sparkHeight - 2)
		}
		path.WriteString(pen + tenths(float64(i)*step) + " " + tenths(sparkHeight-1-height))
		if pen == "M" {
			path.WriteString("h.1") // a point on its own is visible too
		}
		pen = "L"
	}
	return path.String()
}

func tenths(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
