package environment

import (
	"slices"
	"testing"
)

func TestQueuesWithOneTargetShareALimit(t *testing.T) {
	t.Parallel()
	r, _ := configured(t, "queues:\n  - name: a\n    http_path: /a\n  - name: b\n    http_path: /b\n"+
		"  - name: c\n    target: http://127.0.0.1:2/\n", nil, "TENDRIL_RATE=5/s")
	limits, readings := r.Status().Limits, r.work.limitReadings()
	if len(limits) != 2 || len(readings) != 2 {
		t.Fatalf("the status has %+v, the metrics %+v", limits, readings)
	}
	for i, want := range [][]string{{"a", "b"}, {"c"}} {
		if limits[i].Target != readings[i].Target || !slices.Equal(limits[i].Queues, want) {
			t.Errorf("limit %d is %+v in the status, %+v in the metrics", i, limits[i], readings[i])
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("the end: %v", err)
	}
}
