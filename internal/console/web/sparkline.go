package web

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/observe/series"
)

// curvesFor is shorter than the five seconds between new points.
const curvesFor = 2 * time.Second

// The curves are public, so all live pages share them.
type recentCurves struct {
	mu     sync.Mutex
	readAt time.Time
	queues map[string]series.Traffic
}

func (c *recentCurves) read(v *visit) map[string]series.Traffic {
	if subject := v.subject(); !subject.This {
		read, _ := fromOne(v, subject, readCurves)
		return trafficOf(&read)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if v.now.Sub(c.readAt) < curvesFor {
		return c.queues
	}
	read, err := readCurves(v.ctx, v.api)
	if err != nil {
		return nil
	}
	c.readAt = v.now
	c.queues = trafficOf(&read)
	return c.queues
}

func readCurves(ctx context.Context, c *api.Client) (series.Curves, error) {
	return c.Series(ctx, series.Ranges()[0])
}

func trafficOf(read *series.Curves) map[string]series.Traffic {
	queues := map[string]series.Traffic{}
	start := min(firstKnown(read.Series.In), firstKnown(read.Series.Out))
	for name, t := range read.Queues {
		queues[name] = series.Traffic{In: valuesFrom(t.In, start), Out: valuesFrom(t.Out, start)}
	}
	return queues
}

func firstKnown(v series.Values) int {
	if i := slices.IndexFunc(v, isKnown); i >= 0 {
		return i
	}
	return len(v)
}

func isKnown(value float32) bool { return !math.IsNaN(float64(value)) }

func valuesFrom(v series.Values, start int) series.Values { return v[min(start, len(v)):] }

func perSecond(v series.Values) string {
	rate, known := v.Newest()
	if !known {
		return "–"
	}
	return rateText(rate)
}

func rateText(rate float32) string {
	switch {
	case rate == 0:
		return "0"
	case rate < 10:
		return fmt.Sprintf("%.1f", rate)
	}
	return number(int64(rate + 0.5))
}

const (
	sparkWidth, sparkHeight = 100, 20
	sparkColumns            = 60
)

type sparkline struct {
	In, Out string
	Words   string
}

func sparklineOf(t series.Traffic) *sparkline {
	in, out := means(t.In), means(t.Out)
	peakIn, knownIn := peak(in)
	peakOut, knownOut := peak(out)
	if !knownIn && !knownOut {
		return nil
	}
	most := max(peakIn, peakOut)
	return &sparkline{In: sparkPath(in, most), Out: sparkPath(out, most),
		Words: "Last 15 minutes: at most " + rateText(peakIn) + " in and " + rateText(peakOut) + " out per second"}
}

func means(v series.Values) series.Values {
	if len(v) < 2 {
		return nil
	}
	v = v[:len(v)-1] // the newest period may be in progress
	columns := make(series.Values, min(sparkColumns, len(v)))
	for i := range columns {
		var sum, n float32
		for _, value := range v[i*len(v)/len(columns) : (i+1)*len(v)/len(columns)] {
			if isKnown(value) {
				sum, n = sum+value, n+1
			}
		}
		columns[i] = sum / n // NaN if unknown
	}
	return columns
}

func peak(v series.Values) (most float32, known bool) {
	for _, value := range v {
		if isKnown(value) {
			most, known = max(most, value), true
		}
	}
	return most, known
}

func sparkPath(v series.Values, most float32) string {
	var path strings.Builder
	const moveTo, lineTo = "M", "L"
	command := moveTo
	step := float64(sparkWidth) / float64(max(len(v)-1, 1))
	for i, value := range v {
		if !isKnown(value) {
			command = moveTo
			continue
		}

		height := 0.0
		if most > 0 {
			height = float64(value/most) * (sparkHeight - 2)
		}
		path.WriteString(command + tenths(float64(i)*step) + " " + tenths(sparkHeight-1-height))
		if command == moveTo {
			path.WriteString("h.1") // makes a single point visible
		}
		command = lineTo
	}

	return path.String()
}

func tenths(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
